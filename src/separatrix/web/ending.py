"""How the explorer ends: at once and without a word, whatever is being computed."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from separatrix.web.connections import (
    ACCEPTED_AT_ONCE,
    WAITING_IN_KERNEL,
    LimitedProtocol,
    QuietErrors,
    max_connections,
)

LONGEST = 1
"""Seconds that answers which are under way may take to be sent."""


def configured(app: ASGIApp) -> uvicorn.Config:
    """How an application is served: it logs errors alone, and limits its connections."""
    return uvicorn.Config(
        app,
        http=LimitedProtocol,
        loop="asyncio",
        backlog=ACCEPTED_AT_ONCE,
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=LONGEST,
    )


class QuietServer(uvicorn.Server):
    """Tells the application first that it ends, so that nobody waits for what is being computed."""

    def __init__(self, config: uvicorn.Config, let_go: Callable[[], None]) -> None:
        super().__init__(config)
        self._let_go = let_go

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, with a limit on connections that fits the descriptors left by now."""
        asyncio.get_running_loop().set_exception_handler(QuietErrors())
        await super().startup(sockets)
        LimitedProtocol.limit = max_connections()
        for listening in sockets or ():
            # The backlog of uvicorn is also the number of connections that asyncio accepts in a row; the
            # kernel may keep more of them waiting.
            listening.listen(WAITING_IN_KERNEL)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close all connections; what is cut off now is no error to be told."""
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL + 1)
        self._let_go()
        await super().shutdown(sockets)
