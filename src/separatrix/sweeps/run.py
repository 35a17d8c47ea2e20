"""Running a plan: every cell that is not in the store is computed and kept, whatever happens on the way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from separatrix.store import Result, Status, Store
from separatrix.store.rows import now
from separatrix.sweeps.batches import Batcher
from separatrix.sweeps.cell import Cell
from separatrix.sweeps.executors import Executor, Finished
from separatrix.sweeps.plan import Plan
from separatrix.sweeps.work import Batch, environment

LOOKED_UP = 500
"""Cells that are looked up in the store at once."""
MOST_LOSSES = 3
"""A cell over which so many workers died is not tried again."""
PATIENCE = 0.5
"""Seconds between two looks at whether to stop."""


@dataclass
class Progress:
    """How far a sweep is."""

    total: int
    sweep: int = 0
    """Its number in the store."""
    kept: int = 0
    """Cells that were in the store already."""
    twice: int = 0
    """Cells that were computed in this run already, since another part names them too."""
    done: int = 0
    refused: int = 0
    failed: int = 0
    failed_before: int = 0
    """Cells that are stored as failed and were not tried again."""
    lost: int = 0
    """Batches whose worker died."""
    stopped: bool = False
    """Whether the user stopped it before its end."""

    @property
    def finished(self) -> int:
        """Cells that need nothing more."""
        return self.kept + self.twice + self.done + self.refused + self.failed + self.failed_before


END = object()
"""There are no more cells."""

Tell = Callable[[Progress], None]


def run(
    plan: Plan,
    store: Store,
    executor: Executor,
    *,
    retry_failed: bool = False,
    tell: Tell = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> Progress:
    """Compute what is missing. Once `stop` says so, what is being computed is finished and kept."""
    sweep = _Run(plan, store, executor, retry_failed, tell, stop)
    sweep.run()
    return sweep.progress


class _Run:
    """One run of a plan, with what is between the plan and the store."""

    def __init__(
        self,
        plan: Plan,
        store: Store,
        executor: Executor,
        retry_failed: bool,
        tell: Tell,
        stop: Callable[[], bool],
    ) -> None:
        self.plan, self.store, self.executor = plan, store, executor
        self.retry_failed, self.tell, self.stop = retry_failed, tell, stop
        self.progress = Progress(plan.count)
        self.batcher = Batcher()
        self.again: deque[Batch] = deque()
        self.flying: set[str] = set()
        """Cells that are somewhere between the plan and the store."""
        self.landed: set[str] = set()
        """Cells that were stored since the store was last looked at."""
        self.failed: set[str] = set()
        """Cells that failed in this run: they are not tried twice."""

    def run(self) -> None:
        planned, more = self.batcher.batches(self._missing()), True
        self.tell(self.progress)
        while True:
            looking = False
            while (more or self.again) and self.executor.vacancies > 0 and not self._stopping():
                batch = self.again.popleft() if self.again else next(planned, END)
                more = more and batch is not END
                looking = batch is None
                if not isinstance(batch, Batch):
                    break
                self.executor.submit(batch)
            if self.executor.busy:
                for finished in self.executor.wait(0.0 if looking else PATIENCE):
                    self._take(finished)
            elif self._stopping() or not (more or self.again):
                break
            self.tell(self.progress)
        self.tell(self.progress)

    def _stopping(self) -> bool:
        self.progress.stopped = self.progress.stopped or self.stop()
        return self.progress.stopped

    def _missing(self) -> Iterator[Cell | None]:
        """The cells that are neither stored nor on their way, looked up shortly before they are needed.

        None stands for a look in the store that found nothing missing.
        """
        number = self.store.begin_sweep(self.plan.key, self.plan.name, self.plan.text)
        self.progress.sweep = number
        cells = iter(self.plan)
        while some := list(islice(cells, LOOKED_UP)):
            self.store.belong(number, [(cell.id, part) for part, cell in some])
            self.landed.clear()
            stored = self.store.finished([cell.id for _, cell in some])
            found = 0
            for _, cell in some:
                status = stored.get(cell.id)
                if cell.id in self.flying or cell.id in self.landed or cell.id in self.failed:
                    self.progress.twice += 1
                elif status is Status.FAILED and not self.retry_failed:
                    self.progress.failed_before += 1
                elif status is not None and status is not Status.FAILED:
                    self.progress.kept += 1
                else:
                    found += 1
                    self.flying.add(cell.id)
                    yield cell
            if not found:
                yield None

    def _take(self, finished: Finished) -> None:
        """Keep what a batch brought, and see to the rest of it."""
        batch, results = finished.batch, finished.results
        if results is None:
            self.progress.lost += 1
            self._lost(batch)
            return
        self.batcher.learn(batch, [result.seconds for result in results])
        done, rest = batch.cells[: len(results)], batch.cells[len(results) :]
        self._keep(list(zip(done, results, strict=True)))
        if rest:
            self.again.append(Batch(rest))

    def _keep(self, finished: list[tuple[Cell, Result]]) -> None:
        self.store.add((cell.id, cell.asked(), result) for cell, result in finished)
        for cell, result in finished:
            self.flying.discard(cell.id)
            self.landed.add(cell.id)
            if result.status is Status.FAILED:
                self.failed.add(cell.id)
            name = str(result.status)
            setattr(self.progress, name, getattr(self.progress, name) + 1)

    def _lost(self, batch: Batch) -> None:
        """A worker died over a batch: try its cells one by one, and give up on one that kills them all."""
        losses = batch.losses + 1
        if len(batch.cells) > 1:
            self.again.extend(Batch((cell,), losses) for cell in batch.cells)
        elif losses < MOST_LOSSES:
            self.again.append(replace(batch, losses=losses))
        else:
            self._keep([(batch.cells[0], _killer(losses))])


def _killer(losses: int) -> Result:
    return Result(
        status=Status.FAILED,
        seconds=0.0,
        finished=now(),
        environment=environment(),
        message=f"its worker died {losses} times; it may need more memory than there is",
    )
