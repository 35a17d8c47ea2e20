"""Training runs through a sweep: what the store lacks is computed, and all of it is read back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from separatrix.analysis.evidence.found import Curve
from separatrix.core.errors import SeparatrixError
from separatrix.core.tensors import torch
from separatrix.sweeps.executors import Executor
from separatrix.sweeps.progress import Progress, Tell
from separatrix.sweeps.run import run
from separatrix.sweeps.store import Store, frame
from separatrix.sweeps.store.files import read_curves
from separatrix.sweeps.store.filters import read_filter
from separatrix.sweeps.work import Work, WorkList

Row = dict[str, Any]


class Stopped(SeparatrixError):
    """The user stopped it; what was finished is kept."""


@dataclass(frozen=True)
class Laboratory:
    """Where runs are kept, and who computes them."""

    store: Store
    executor: Executor
    tell: Tell = lambda _: None
    stop: Callable[[], bool] = lambda: False
    say: Callable[[str], None] = lambda _: None
    asked: list[tuple[str, Work]] = field(default_factory=list)
    """All work so far, with the name of its part."""

    def rows(self, name: str, works: Sequence[Work]) -> dict[str, Row]:
        """The stored rows of work by identity, those of failed ones too, once all are there."""
        works = list({work.id: work for work in works}.values())
        if not works:
            return {}
        self.say(f"{name}: {len(works)} runs")
        named = [(name, work) for work in works]
        self.asked.extend(named)
        sweep = self._run(WorkList(name, tuple(named), "\n".join(map(str, works))))
        found = dict[str, Row]()
        for kind in dict.fromkeys(work.kind for work in works):
            rows = frame(self.store, read_filter({}, kind=kind), sweep).iter_rows(named=True)
            found |= {row["id"]: row for row in rows}
        return {work.id: found[work.id] for work in works}

    def gather(self, name: str, text: str) -> None:
        """Keep all work so far as one sweep, for `results` and `report`."""
        self._run(WorkList(name, tuple(self.asked), text))

    def _run(self, plan: WorkList) -> int | None:
        """The number of the sweep, once all of it is stored."""
        done = run(plan, self.store, self.executor, tell=self.tell, stop=self.stop)
        if done.stopped:
            raise Stopped(_stopped(done))
        return done.sweep

    def curve(self, run: str) -> Curve:
        """The scores of a run on the validation samples, by step."""
        return curve_of(self.store, run)


def curve_of(store: Store, run: str) -> Curve:
    """The scores of a stored run on the validation samples, by step."""
    rows = read_curves(store, run).filter(name="validation")
    return tuple(zip(rows["step"], rows["value"], strict=True))


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread of the caller, as in a worker: others are busy with training."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _stopped(done: Progress) -> str:
    return f"stopped after {done.finished} of {done.total} runs; the same command goes on from there"
