"""The store that the page was started with, for the parts that show it."""

from __future__ import annotations

import time

from separatrix.core.errors import UsageError
from separatrix.core.secrets import Secret
from separatrix.web.settings import Settings


def store_of(settings: Settings) -> str:
    """The address of the store, for a process that reads it: never for a page or a log."""
    if settings.store is None:
        raise UsageError(
            "the page was started without a store; start it with: separatrix explore --store "
            "sqlite:///results.db"
        )
    return settings.store.reveal()


def shown_store(settings: Settings) -> str | None:
    """The address of the store as it may be shown; None without one."""
    if settings.store is None:
        return None
    from separatrix.sweeps.store import parse_address

    return parse_address(settings.store).shown


def state_of(store: Secret | None) -> str:
    """Changes whenever the store does, so that an answer is kept no longer than it is right."""
    if store is None:
        return "none"
    from separatrix.sweeps.store import parse_address

    path = parse_address(store).path
    if path is None:
        return str(time.time_ns())  # a server does not say whether anything was written
    seen = []
    for each in (path, path.with_name(f"{path.name}-wal")):
        try:
            stat = each.stat()
        except OSError:
            continue
        if stat.st_size:
            seen.append(f"{stat.st_ino}:{stat.st_size}:{stat.st_mtime_ns}")
    return " ".join(seen) or str(time.time_ns())
