"""Starting the explorer: it listens on this machine's own address by default, and opens the page."""

from __future__ import annotations

import asyncio
import errno
import socket
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass

from separatrix.core.errors import UsageError
from separatrix.core.startup import process_context
from separatrix.web.guard import LOOPBACK_NAMES, MAX_PORT, is_loopback
from separatrix.web.settings import Settings
from separatrix.web.workers import PRELOADED

PORT = 8310
ANY_ADDRESS = ("0.0.0.0", "::")
"""Addresses that mean all addresses of the machine."""


@dataclass(frozen=True)
class RunningExplorer:
    """The address of the page, and what a user should know about it."""

    address: str
    is_public: bool
    """Whether other machines can reach it."""
    missing_store: str | None = None
    """The file of the store that was named, if it does not exist yet."""


def explore(
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    allow_others: bool = False,
    browser: bool = True,
    announce: Callable[[RunningExplorer], None] = lambda _: None,
) -> None:
    """Serve the page until it is interrupted; `announce` is called once it answers.

    `port` 0 is any free port. Other machines can reach the page only with `allow_others`.
    """
    if not is_loopback(host) and not allow_others:
        raise UsageError(
            f"--host {host} lets other machines in, who would see your stores and use this machine; "
            "add --allow-others if that is what you want"
        )
    missing_store = _find_missing_store(settings)
    listening = _bind_socket(host, port)
    # The fork server imports the packages of the workers while this process imports FastAPI.
    process_context(PRELOADED)
    try:
        from separatrix.web.app import make_app
        from separatrix.web.quiet_server import QuietServer
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the explorer needs {error.name}, which is not installed: pip install 'separatrix[explore]'"
        ) from None
    names = (*LOOPBACK_NAMES, host, socket.gethostname()) if allow_others else LOOPBACK_NAMES
    app = make_app(settings, names, any_address=host in ANY_ADDRESS)
    address = f"[{host}]" if ":" in host else host
    if host in ANY_ADDRESS:
        address = "127.0.0.1"
    explorer = RunningExplorer(f"http://{address}:{listening.getsockname()[1]}/", not is_loopback(host), missing_store)

    def welcome() -> None:
        announce(explorer)
        if browser:
            webbrowser.open(explorer.address)

    server = QuietServer(app, welcome, lambda: app.state.dispatcher.end())
    try:
        asyncio.run(server.serve([listening]))
    finally:
        listening.close()


def _find_missing_store(settings: Settings) -> str | None:
    """Return the file of the store if it does not exist yet; refuse an address that cannot be a store."""
    if settings.store is None:
        return None
    from separatrix.sweeps.store import DEFAULT, parse_address

    address = parse_address(settings.store)
    if address.path is None:
        return None
    if address.path.is_dir():
        raise UsageError(f"--store {address.shown} is a folder; name a file, for example {DEFAULT}")
    return None if address.path.exists() else str(address.path)


def _bind_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address, so that a port in use is reported before anything is imported."""
    if not 0 <= port <= MAX_PORT:
        raise UsageError(f"--port {port} is out of range; ports are 0 (any that is free) to {MAX_PORT}")
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    # Otherwise the port of an explorer that has just ended stays blocked for a minute.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        reason = (error.strerror or str(error)).lower()
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            raise UsageError(
                f"--host {host} is no address of this machine ({reason}); leave it out, or name one that it has"
            ) from None
        raise UsageError(
            f"port {port} of {host} cannot be had ({reason}); name another with --port, or --port 0 for any"
        ) from None
    return listening
