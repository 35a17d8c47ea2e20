"""Training runs through a sweep: what the store lacks is computed, and all of it is read back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from separatrix.errors import SeparatrixError
from separatrix.store import Store, frame
from separatrix.store.files import read_curves
from separatrix.store.filters import read_filter
from separatrix.sweeps.executors import Executor
from separatrix.sweeps.progress import Progress, Tell
from separatrix.sweeps.run import run
from separatrix.sweeps.training_runs import TrainingRun
from separatrix.sweeps.work import WorkList
from separatrix.tensors import torch

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

    def rows(self, name: str, works: Sequence[TrainingRun]) -> dict[str, Row]:
        """The stored rows of runs by identity, those of failed ones too, once all are there."""
        works = list({work.id: work for work in works}.values())
        if not works:
            return {}
        self.say(f"{name}: {len(works)} runs")
        plan = WorkList(name, tuple((name, work) for work in works), "\n".join(map(str, works)))
        done = run(plan, self.store, self.executor, tell=self.tell, stop=self.stop)
        if done.stopped:
            raise Stopped(_stopped(done))
        asked = read_filter({}, kind=TrainingRun.kind)
        found = {row["id"]: row for row in frame(self.store, asked, done.sweep).iter_rows(named=True)}
        return {work.id: found[work.id] for work in works}

    def curve(self, work: TrainingRun) -> tuple[tuple[int, float], ...]:
        """The scores of a run on the validation samples, by step."""
        rows = read_curves(self.store, work.id).filter(name="validation")
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
