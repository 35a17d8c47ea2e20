"""Connections of the explorer: how many are open at once, and for how long one may stay silent.

The limit lies below the number of files that a process may open: at that number asyncio could accept no
connection, would retry without a pause and log a traceback each time.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0
"""Seconds in which a client has to send the whole header of a request."""
MAX_CONNECTIONS = 1000
ACCEPTED_AT_ONCE = 8
"""Connections that asyncio accepts in a row; several such rows are accepted before the first is refused."""
RESERVED_FILES = 5 * ACCEPTED_AT_ONCE + 40
"""Descriptors left for worker processes, files of the page, stores, and connections about to be refused."""
WAITING_IN_KERNEL = 2048
"""Connections that the system keeps until they are accepted."""
FULL = json.dumps({"error": "too many connections are open; try again in a moment", "field": None}).encode()
REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%s" % (len(FULL), FULL)
)


def max_connections() -> int:
    """Return how many connections may be open at once, given the descriptors that this process may use."""
    try:
        import resource

        max_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        in_use = sum(1 for _ in Path("/proc/self/fd").iterdir())
    except (ImportError, OSError):  # there is no such limit, or no /proc
        max_files, in_use = 256, 32
    if max_files < 0:  # RLIM_INFINITY
        return MAX_CONNECTIONS
    return min(MAX_CONNECTIONS, max(1, max_files - in_use - RESERVED_FILES))


class LimitedProtocol(H11Protocol):
    """HTTP/1.1 with a limit on open connections, and on the time that a header may take.

    At the limit a new connection takes the place of the one that has been silent for longest. It is refused
    with 503 where all others are being answered.
    """

    limit = MAX_CONNECTIONS
    _silent_since: float = 0.0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register a connection, and make room for it."""
        super().connection_made(transport)
        self._silent_since = self.loop.time()
        if len(self.connections) > self.limit and not self._make_room():
            transport.write(REFUSAL)
            transport.close()
            return
        self._deadline = self.loop.call_later(HEADER_SECONDS, self._close_if_silent)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request of the connection."""
        self._silent_since = self.loop.time()
        super().on_response_complete()

    @property
    def is_waiting(self) -> bool:
        """Whether the client has to act: send the rest of a header, or read what was sent to it."""
        return self.cycle is None or self.cycle.response_complete or self.flow.write_paused

    def _make_room(self) -> bool:
        """Close the connection that has been silent for longest; False where there is none."""
        others: list[Any] = [connection for connection in self.connections if connection is not self]
        silent = [other for other in others if other.is_waiting and not other.transport.is_closing()]
        if silent:
            min(silent, key=lambda connection: connection._silent_since).transport.abort()
        return bool(silent)

    def _close_if_silent(self) -> None:
        # A long answer is not silence: the time begins when the client has to act.
        is_silent = self.cycle is None or self.cycle.response_complete
        due = (self._silent_since if is_silent else self.loop.time()) + HEADER_SECONDS
        if due <= self.loop.time():
            self.transport.abort()
        else:
            self._deadline = self.loop.call_at(due, self._close_if_silent)
