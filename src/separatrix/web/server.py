"""Listening, on this machine's own address unless asked otherwise, and opening the page."""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
import time
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass

from separatrix.core.errors import UsageError
from separatrix.core.startup import process_context
from separatrix.web.guard import LOOPBACK, is_loopback
from separatrix.web.settings import Settings
from separatrix.web.workers import PRELOADED

PORT = 8310
ANY = ("0.0.0.0", "::")
"""Addresses that mean all addresses of the machine."""


@dataclass(frozen=True)
class Exploring:
    """Where the page is."""

    address: str
    others: bool
    """Whether other machines reach it."""
    missing: str | None = None
    """The file of the store that was named, where there is none yet."""


def explore(
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    allow_others: bool = False,
    browser: bool = True,
    tell: Callable[[Exploring], None] = lambda _: None,
) -> None:
    """Serve the page until it is interrupted; `tell` hears where it is once it answers.

    `port` 0 is any free one. Other machines reach it only with `allow_others`.
    """
    if not is_loopback(host) and not allow_others:
        raise UsageError(
            f"--host {host} lets other machines in, who would see your stores and use this machine; "
            "add --allow-others if that is what you want"
        )
    missing = _missing(settings)
    bound = _bind(host, port)
    process_context(PRELOADED)  # it imports what the processes need while this one imports the rest
    try:
        from separatrix.web.app import make_app
        from separatrix.web.ending import QuietServer, configured
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the explorer needs {error.name}, which is not installed: pip install 'separatrix[explore]'"
        ) from None
    number = bound.getsockname()[1]
    names = (*LOOPBACK, host, socket.gethostname()) if allow_others else LOOPBACK
    app = make_app(settings, names, any_address=host in ANY)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{'127.0.0.1' if host in ANY else shown}:{number}/"
    exploring = Exploring(address, not is_loopback(host), missing)
    server = QuietServer(configured(app), lambda: app.state.desk.end())
    threading.Thread(target=_announce, args=(server, exploring, browser, tell), daemon=True).start()
    try:
        asyncio.run(server.serve([bound]))
    finally:
        bound.close()


def _missing(settings: Settings) -> str | None:
    """The file of the store where there is none yet; an address that can be no store is refused."""
    if settings.store is None:
        return None
    from separatrix.sweeps.store import DEFAULT, parse_address

    address = parse_address(settings.store)
    if address.path is None:
        return None
    if address.path.is_dir():
        raise UsageError(f"--store {address.shown} is a folder; name a file, for example {DEFAULT}")
    return None if address.path.exists() else str(address.path)


def _bind(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise UsageError(f"--port {port} is out of range; ports are 0 (any that is free) to 65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        why = (error.strerror or str(error)).lower()
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            raise UsageError(
                f"--host {host} is no address of this machine ({why}); leave it out, or name one that it has"
            ) from None
        raise UsageError(
            f"port {port} of {host} cannot be had ({why}); name another with --port, or --port 0 for any"
        ) from None
    return bound


def _announce(server: object, exploring: Exploring, browser: bool, tell: Callable[[Exploring], None]) -> None:
    """Say where the page is once it answers, and open it."""
    while not getattr(server, "started", False):
        if getattr(server, "should_exit", False):
            return
        time.sleep(0.02)
    tell(exploring)
    if browser:
        webbrowser.open(exploring.address)
