"""Running a plan: every cell that is not in the store is computed and stored, whatever fails on the way."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from separatrix.sweeps.backlog import Backlog
from separatrix.sweeps.executors import BatchOutcome, Executor
from separatrix.sweeps.progress import Progress, Tell
from separatrix.sweeps.store import CellResult, Checkpoint, Store, StoreError
from separatrix.sweeps.store.files import read_checkpoints, write_checkpoint
from separatrix.sweeps.work import WorkBatch, WorkItem, WorkPlan
from separatrix.sweeps.worker import MAX_DEATHS, make_failure

POLL_SECONDS = 0.5
"""Seconds between two looks at whether to stop."""
END = object()
"""Marks the end of the backlog."""


def run(
    plan: WorkPlan,
    store: Store,
    executor: Executor,
    *,
    retry_failed: bool = False,
    tell: Tell = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> Progress:
    """Compute the cells of a plan that a store lacks; after `stop`, finish only what is being computed."""
    progress = Progress(plan.count, sweep=plan.name, store=store.location, taken=plan.reference_defaults)
    _Run(store, executor, tell, stop, progress, Backlog(plan, store, retry_failed, progress)).run()
    return progress


@dataclass(frozen=True)
class _Run:
    """One run of a plan."""

    store: Store
    executor: Executor
    tell: Tell
    stop: Callable[[], bool]
    progress: Progress
    backlog: Backlog
    repeats: deque[WorkBatch] = field(default_factory=deque)
    """Leased batches that have to be computed again, or continued."""

    def run(self) -> None:
        try:
            self._run()
        except StoreError as error:
            self.backlog.leases.abandon()
            unstored_count = self.backlog.leased_count
            cells = "1 cell that was" if unstored_count == 1 else f"{unstored_count:,} cells that were"
            raise StoreError(f"{error} ({cells} computed or begun could not be stored)") from None
        except BaseException:
            with suppress(StoreError):
                self.backlog.leases.release()
            raise
        self.backlog.leases.release()

    def _run(self) -> None:
        batches, has_more = self.backlog.batches(), True
        self.tell(self.progress)
        while True:
            is_looking = False
            while (has_more or self.repeats) and self.executor.vacancies > 0 and not self._is_stopping():
                batch = self.repeats.popleft() if self.repeats else next(batches, END)
                has_more = has_more and batch is not END
                is_looking = batch is None
                if not isinstance(batch, WorkBatch):
                    break
                self.executor.submit(self._add_checkpoints(batch))
            seconds = 0.0 if is_looking and not self.backlog.is_waiting else POLL_SECONDS
            if self.executor.is_busy:
                for outcome in self.executor.wait(seconds):
                    self._process(outcome)
            elif self._is_stopping() or not (has_more or self.repeats):
                break
            else:
                time.sleep(seconds)
            self.backlog.leases.renew()
            self.tell(self.progress)
        self.tell(self.progress)

    def _add_checkpoints(self, batch: WorkBatch) -> WorkBatch:
        """The batch with the checkpoints that an earlier run left."""
        if not batch.items[0].has_checkpoints or batch.checkpoints:
            return batch
        return replace(batch, checkpoints=read_checkpoints(self.store, [item.id for item in batch.items]))

    def _is_stopping(self) -> bool:
        self.progress.stopped = self.progress.stopped or self.stop()
        return self.progress.stopped

    def _process(self, outcome: BatchOutcome) -> None:
        """Store the results of a batch, and repeat or continue the rest of it."""
        batch, outputs = outcome.batch, outcome.results
        if outputs is None:
            self.progress.lost += not outcome.is_late
            self._process_loss(batch, outcome.is_late)
            return
        self.backlog.sizes.learn(batch, [output.seconds for output in outputs])
        results = [output for output in outputs if isinstance(output, CellResult)]
        self._store_results(list(zip(batch.items, results, strict=False)))
        remaining, checkpoints = batch.items[len(results) :], {**batch.checkpoints}
        if isinstance(last := outputs[-1], Checkpoint):
            limit = self.executor.cell_timeout
            if limit is not None and last.seconds > limit:
                self._store_timeout(remaining[0], limit)
                remaining = remaining[1:]
            else:
                self._store_checkpoint(remaining[0], last)
                checkpoints[remaining[0].id] = last
        if remaining:
            self.repeats.append(WorkBatch(remaining, checkpoints=checkpoints))

    def _store_checkpoint(self, item: WorkItem, checkpoint: Checkpoint) -> None:
        try:
            write_checkpoint(self.store, item.id, checkpoint)
        except StoreError as error:  # this run still has the checkpoint, so it can continue
            note = f"a checkpoint of {item} could not be stored: {error}"
            if note not in self.progress.notes:
                self.progress.notes.append(note)

    def _store_results(self, results: list[tuple[WorkItem, CellResult]]) -> None:
        self.store.add((item.id, item.row(), result) for item, result in results)
        for item, result in results:
            self.backlog.note_stored(item, result.status)
            name = str(result.status)
            setattr(self.progress, name, getattr(self.progress, name) + 1)

    def _store_timeout(self, item: WorkItem, limit: float) -> None:
        self._store_results([(item, make_failure(f"it took longer than {limit:g} s, the limit for a cell", limit))])

    def _process_loss(self, batch: WorkBatch, is_late: bool) -> None:
        """Try the items of a batch one by one after a death or a timeout, and give up on the cause."""
        deaths, limit = batch.deaths + (not is_late), self.executor.cell_timeout
        if len(batch.items) > 1:
            self.repeats.extend(WorkBatch((item,), deaths, batch.checkpoints) for item in batch.items)
        elif is_late and limit is not None:
            self._store_timeout(batch.items[0], limit)
        elif deaths < MAX_DEATHS:
            self.repeats.append(replace(batch, deaths=deaths))
        else:
            message = f"its worker died {deaths} times; it may need more memory than there is"
            self._store_results([(batch.items[0], make_failure(message))])
