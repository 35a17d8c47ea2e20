"""A small plan, and executors that compute in this process: what tests of sweeps share."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from separatrix.sweeps.executors import BatchOutcome, Executor
from separatrix.sweeps.store import Answer, CellResult, Environment
from separatrix.sweeps.verdict_cells import VerdictCell
from separatrix.sweeps.work import BatchResults, WorkBatch, make_result
from separatrix.sweeps.worker import work

HEAD = """
name = "small"
construction = "spike"
mechanisms = ["softmax", "linear"]
[parameters]
d = 12
m = 12
a0 = 0.01
a1 = 1.2
b = 0.2
c = 0.1
"""
SMALL = (
    HEAD
    + """
[[sweep]]
name = "n"
engine = "closed"
parameters.n = "1e2:1e9:15:log"
[[sweep]]
name = "a1"
parameters = { n = 1000, a1 = "0.5:1.5:11" }
[[sweep]]
name = "drawn"
engine = "dense"
draws = 20
seeds = [0, 1]
parameters.n = 100
"""
)
HERE = Environment("here", {})
PATIENCE = 120
"""Seconds until a process counts as hanging; it ends within two where nothing else runs."""


def is_session_gone(session: int) -> bool:
    """Whether all processes of a session end; waits for them."""

    def belongs(entry: Path) -> bool:
        try:
            return entry.name.isdigit() and os.getsid(int(entry.name)) == session
        except ProcessLookupError:
            return False

    end = time.monotonic() + PATIENCE
    while any(map(belongs, Path("/proc").iterdir())):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def evaluate(cells: Sequence[VerdictCell], here: Environment) -> Iterator[list[CellResult]]:
    """The results of cells, some at a time."""
    for some in VerdictCell.run(cells, here):
        yield [each for each in some if isinstance(each, CellResult)]


class Inline(Executor):
    """Computes at once, in this process; remembers what it was given."""

    def __init__(self, room: int = 2) -> None:
        super().__init__()
        self.room, self.taken, self._waiting = room, list[WorkBatch](), list[WorkBatch]()
        self.most = 0

    @property
    def workers(self) -> int:
        return 1

    @property
    def vacancies(self) -> int:
        return self.room - len(self._waiting)

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting)

    def submit(self, batch: WorkBatch) -> None:
        self.taken.append(batch)
        self._waiting.append(batch)
        self.most = max(self.most, len(self._waiting))

    def wait(self, seconds: float) -> list[BatchOutcome]:
        batch = self._waiting.pop(0)
        return [BatchOutcome(batch, self.compute(batch.items))]

    def compute(self, cells: Sequence[Any]) -> BatchResults | None:
        return work(cells, 60.0)

    def close(self) -> None:
        pass


class Instant(Inline):
    """Answers without computing."""

    def compute(self, cells: Sequence[Any]) -> BatchResults | None:
        return [make_result(Answer({"verdict": "blind", "distinguish": 0.0}), 1e-4, HERE) for _ in cells]
