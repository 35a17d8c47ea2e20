"""How the explorer ends: at once and without a word, whatever is being computed."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

LONGEST = 1
"""Seconds that answers which are under way may take to be sent."""


def configured(app: ASGIApp) -> uvicorn.Config:
    """How an application is served: it says nothing but what is wrong."""
    return uvicorn.Config(
        app, log_level="error", access_log=False, server_header=False, timeout_graceful_shutdown=LONGEST
    )


class QuietServer(uvicorn.Server):
    """Tells the application first that it ends, so that nobody waits for what is being computed."""

    def __init__(self, config: uvicorn.Config, let_go: Callable[[], None]) -> None:
        super().__init__(config)
        self._let_go = let_go

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close all connections; what is cut off now is no error to be told."""
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL + 1)
        self._let_go()
        await super().shutdown(sockets)
