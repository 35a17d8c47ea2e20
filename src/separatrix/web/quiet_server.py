"""The HTTP server: it logs only errors, limits its connections, and ends at once and quietly."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from separatrix.web.connections import ACCEPTED_AT_ONCE, WAITING_IN_KERNEL, LimitedProtocol, max_connections

MAX_SHUTDOWN_SECONDS = 1
"""The time that responses have to be sent after the end."""


class QuietServer(uvicorn.Server):
    """A uvicorn server that calls `welcome` once it answers, and at the end `cancel_requests`."""

    def __init__(self, app: ASGIApp, welcome: Callable[[], None], cancel_requests: Callable[[], None]) -> None:
        config = uvicorn.Config(
            app,
            http=LimitedProtocol,
            loop="asyncio",
            backlog=ACCEPTED_AT_ONCE,
            log_level="error",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=MAX_SHUTDOWN_SECONDS,
        )
        super().__init__(config)
        self._welcome, self._cancel_requests = welcome, cancel_requests

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, with a limit on connections that fits the descriptors left by now."""
        await super().startup(sockets)
        LimitedProtocol.limit = max_connections()
        for listening in sockets or ():
            # The backlog of uvicorn is also the number of connections that asyncio accepts in a row; the
            # kernel may keep more of them waiting.
            listening.listen(WAITING_IN_KERNEL)
        if self.started:
            # A thread, since opening a browser may take seconds.
            threading.Thread(target=self._welcome, daemon=True).start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close all connections."""
        # uvicorn logs an error if it cuts off responses here, which is how the explorer is meant to end.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL + 1)
        self._cancel_requests()
        await super().shutdown(sockets)
