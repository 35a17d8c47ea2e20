"""Running a plan: every cell that is not in the store is computed and kept, whatever happens on the way."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from separatrix.sweeps.backlog import Backlog
from separatrix.sweeps.batches import Batcher
from separatrix.sweeps.executors import Executor, Finished
from separatrix.sweeps.progress import Progress, Tell
from separatrix.sweeps.store import Checkpoint, Result, Store, StoreError
from separatrix.sweeps.store.files import checkpoints, keep_checkpoint
from separatrix.sweeps.work import Batch, Planned, Work
from separatrix.sweeps.worker import MOST_DEATHS, died, timed_out

PATIENCE = 0.5
"""Seconds between two looks at whether to stop."""
END = object()
"""There are no more cells."""


def run(
    plan: Planned,
    store: Store,
    executor: Executor,
    *,
    retry_failed: bool = False,
    tell: Tell = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> Progress:
    """Compute the cells that a store lacks of a plan; once `stop` says so, only what is begun is finished."""
    sweep = _Run(plan, store, executor, retry_failed, tell, stop)
    sweep.run()
    return sweep.progress


class _Run:
    """One run of a plan, with what is between the plan and the store."""

    def __init__(
        self,
        plan: Planned,
        store: Store,
        executor: Executor,
        retry_failed: bool,
        tell: Tell,
        stop: Callable[[], bool],
    ) -> None:
        self.store, self.executor, self.tell, self.stop = store, executor, tell, stop
        self.progress = Progress(plan.count, notes=executor.notes, plan=plan.name, store=store.where)
        self.backlog, self.batcher = Backlog(plan, store, retry_failed, self.progress), Batcher()
        self.again: deque[Batch] = deque()
        """Batches that were taken, and have to be computed again or further."""

    def run(self) -> None:
        try:
            self._run()
        except StoreError as error:
            self.backlog.abandon()
            lost = self.backlog.flying
            some = "1 cell that was" if lost == 1 else f"{lost:,} cells that were"
            raise StoreError(f"{error} ({some} computed or begun could not be stored)") from None
        except BaseException:
            with suppress(StoreError):
                self.backlog.release()
            raise
        self.backlog.release()

    def _run(self) -> None:
        planned, more = self.batcher.batches(self.backlog.found(), self.backlog.take), True
        self.tell(self.progress)
        while True:
            looking = False
            while (more or self.again) and self.executor.vacancies > 0 and not self._stopping():
                batch = self.again.popleft() if self.again else next(planned, END)
                more = more and batch is not END
                looking = batch is None
                if not isinstance(batch, Batch):
                    break
                self.executor.submit(self._resumed(batch))
            patience = 0.0 if looking and not self.backlog.waiting else PATIENCE
            if self.executor.busy:
                for finished in self.executor.wait(patience):
                    self._take(finished)
            elif self._stopping() or not (more or self.again):
                break
            else:
                time.sleep(patience)
            self.backlog.renew()
            self.tell(self.progress)
        self.tell(self.progress)

    def _resumed(self, batch: Batch) -> Batch:
        """A batch with the checkpoints that an earlier run left."""
        if not batch.cells[0].resumes or batch.checkpoints:
            return batch
        return replace(batch, checkpoints=checkpoints(self.store, [cell.id for cell in batch.cells]))

    def _stopping(self) -> bool:
        self.progress.stopped = self.progress.stopped or self.stop()
        return self.progress.stopped

    def _take(self, finished: Finished) -> None:
        """Keep what a batch brought, and see to the rest of it."""
        batch, back = finished.batch, finished.results
        if back is None:
            self.progress.lost += not finished.late
            self._alone(batch, finished.late)
            return
        self.batcher.learn(batch, [each.seconds for each in back])
        results = [each for each in back if isinstance(each, Result)]
        done, rest = batch.cells[: len(results)], batch.cells[len(results) :]
        self._keep(list(zip(done, results, strict=True)))
        known = {**batch.checkpoints}
        if isinstance(last := back[-1], Checkpoint):
            limit = self.executor.cell_timeout
            if limit is not None and last.seconds > limit:
                self._keep([(rest[0], timed_out(limit))])
                rest = rest[1:]
            else:
                self._keep_checkpoint(rest[0], last)
                known[rest[0].id] = last
        if rest:
            self.again.append(Batch(rest, checkpoints=known))

    def _keep_checkpoint(self, cell: Work, checkpoint: Checkpoint) -> None:
        """What cannot be kept for a later run is no reason to end this one, which still has it."""
        try:
            keep_checkpoint(self.store, cell.id, checkpoint)
        except StoreError as error:
            note = f"a checkpoint of {cell} is not kept, and it goes on without: {error}"
            if note not in self.progress.notes:
                self.progress.notes.append(note)

    def _keep(self, finished: list[tuple[Work, Result]]) -> None:
        self.store.add((cell.id, cell.asked(), result) for cell, result in finished)
        for cell, result in finished:
            self.backlog.land(cell, result.status)
            name = str(result.status)
            setattr(self.progress, name, getattr(self.progress, name) + 1)

    def _alone(self, batch: Batch, late: bool) -> None:
        """A batch killed its worker or took too long: try its cells one by one, and give up on the guilty."""
        losses = batch.losses + (not late)
        limit = self.executor.cell_timeout
        if len(batch.cells) > 1:
            self.again.extend(Batch((cell,), losses, batch.checkpoints) for cell in batch.cells)
        elif late and limit is not None:
            self._keep([(batch.cells[0], timed_out(limit))])
        elif losses < MOST_DEATHS:
            self.again.append(replace(batch, losses=losses))
        else:
            self._keep([(batch.cells[0], died(losses))])
