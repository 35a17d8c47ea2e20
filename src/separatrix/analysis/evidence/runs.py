"""Training runs through a sweep: missing runs are computed, and all of them are read from the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from separatrix.analysis.evidence.training_result import Curve
from separatrix.core.errors import SeparatrixError
from separatrix.sweeps.executors import Executor
from separatrix.sweeps.progress import Tell
from separatrix.sweeps.run import run
from separatrix.sweeps.store import Address, Store, frame, open_store
from separatrix.sweeps.store.files import read_curves
from separatrix.sweeps.store.filters import read_filter
from separatrix.sweeps.sweep import executor_for, stop_on_signals
from separatrix.sweeps.work import WorkItem, WorkList

StoredRow = dict[str, Any]


class Stopped(SeparatrixError):
    """The user stopped training; finished runs are kept."""


@dataclass(frozen=True)
class TrainingSession:
    """A store of runs, and the executor that computes missing ones."""

    store: Store
    executor: Executor
    tell: Tell
    stop: Callable[[], bool]
    say: Callable[[str], None]
    requested: list[tuple[str, WorkItem]] = field(default_factory=list)
    """All work so far, with the name of its part."""

    def fetch_rows(self, name: str, works: Sequence[WorkItem]) -> dict[str, StoredRow]:
        """Compute missing work, and return the stored rows of all work by identity, failed ones included."""
        # Experiments of one report may share runs; a work list must not have duplicates.
        works = list({work.id: work for work in works}.values())
        if not works:
            return {}
        self.say(f"{name}: {len(works)} runs")
        items = [(name, work) for work in works]
        self.requested.extend(items)
        sweep = self._run(WorkList(name, tuple(items), "\n".join(map(str, works))))
        rows = dict[str, StoredRow]()
        # Training runs and floors have different columns, so each kind is read as a table of its own.
        for kind in dict.fromkeys(work.kind for work in works):
            stored_rows = frame(self.store, read_filter({}, kind=kind), sweep).iter_rows(named=True)
            rows |= {row["id"]: row for row in stored_rows}
        return {work.id: rows[work.id] for work in works}

    def keep_as_sweep(self, name: str, text: str) -> None:
        """Keep all work so far as one sweep, for `results` and `report`."""
        # All of it is stored by now, so this computes nothing.
        self._run(WorkList(name, tuple(self.requested), text))

    def _run(self, plan: WorkList) -> int | None:
        """Run a plan, and return the number of the sweep."""
        progress = run(plan, self.store, self.executor, tell=self.tell, stop=self.stop)
        if progress.stopped:
            count = f"{progress.finished} of {progress.total} runs"
            raise Stopped(f"stopped after {count}; the same command goes on from there")
        return progress.number


@contextmanager
def open_session(
    store: str | Address,
    workers: int | None,
    scheduler: str | None,
    tell: Tell,
    hear: Callable[[], None],
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[TrainingSession]:
    """Open a store for training on local processes or a Dask cluster, until a signal stops it."""
    with stop_on_signals(hear) as stop, closing(executor_for(workers, scheduler)) as executor:
        yield TrainingSession(open_store(store, create=True, check=True), executor, tell, stop, say)


def read_curve(store: Store, run: str) -> Curve:
    """Return the scores of a stored run on the validation samples, by step."""
    rows = read_curves(store, run).filter(name="validation")
    return tuple(zip(rows["step"], rows["value"], strict=True))
