"""Cells in a process of their own, which is ended when one of them takes too long.

For workers that are not ours to end, those of a Dask cluster: each has such a process beside it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from separatrix.core.parameters import SeparatrixError
from separatrix.sweeps.work import Back, Checkpoints, Work
from separatrix.sweeps.worker import MOST_DEATHS, died, finish, joined, timed_out

START = 120.0
"""Seconds in which such a process has to begin."""
PROGRAM = (
    "import sys; from multiprocessing.connection import Connection as C; c = C(int(sys.argv[1])); "
    "sys.path[:] = c.recv(); import separatrix.sweeps.preload; "
    "from separatrix.sweeps.limited import serve; serve(c)"
)

_own = threading.local()


class TooLong(Exception):
    """Nothing came back in time."""


def work_within(cells: Sequence[Work], seconds: float, checkpoints: Checkpoints, limit: float) -> Back:
    """As `work`, where a cell that takes longer than `limit` seconds has failed."""
    deaths = 0
    while deaths < MOST_DEATHS:
        parts: list[Back] = []
        try:
            parts.extend(_process().compute(cells, seconds, checkpoints, limit))
        except TooLong:
            _end()
            if len(cells) == 1:
                parts.append([timed_out(limit)])
        except (EOFError, OSError):
            _end()
            deaths += 1
        if results := joined(parts):
            return results
        cells = cells[:1]  # whether it was this one, it is seen when it is alone
    return [died(deaths)]


class _Process:
    """Computes cells, and sends each result as soon as it is there."""

    def __init__(self) -> None:
        self.ours, theirs = Pipe()
        with theirs:
            command = [sys.executable, "-P", "-c", PROGRAM, str(theirs.fileno())]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        self.ours.send(sys.path)
        self._receive(START)

    def compute(
        self, cells: Sequence[Work], seconds: float, checkpoints: Checkpoints, limit: float
    ) -> Iterator[Back]:
        self.ours.send((cells, seconds, checkpoints))
        while (back := self._receive(limit)) is not None:
            yield back

    def _receive(self, seconds: float) -> Any:
        if not self.ours.poll(seconds):
            raise TooLong
        back = self.ours.recv()
        if isinstance(back, Exception):
            raise back
        return back

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.ours.close()


def _process() -> _Process:
    """The process of this thread."""
    if getattr(_own, "process", None) is None:
        try:
            _own.process = _Process()
        except (TooLong, EOFError, OSError):
            raise SeparatrixError(
                "the process that computes cells within a time limit cannot begin"
            ) from None
    found: _Process = _own.process
    return found


def _end() -> None:
    _process().end()
    _own.process = None


def serve(connection: Connection) -> None:
    """Compute what is sent to this process, until nobody is there."""
    threading.Thread(target=_leave_with, args=(os.getppid(),), daemon=True).start()
    connection.send([])
    with suppress(EOFError, OSError):  # nobody is there
        while True:
            for back in _answers(*connection.recv()):
                connection.send(back)


def _answers(
    cells: Sequence[Work], seconds: float, checkpoints: Checkpoints
) -> Iterator[Back | Exception | None]:
    """Results, some at a time, and None at the end; or why there can be none."""
    try:
        yield from finish(cells, seconds, checkpoints)
        yield None
    except Exception as error:
        yield error


def _leave_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
