"""Executors, which compute batches: the interface, and worker processes on this machine."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.context import BaseContext

from separatrix.core.parameters import SeparatrixError
from separatrix.core.startup import follow_parent, process_context, start_process
from separatrix.sweeps.work import BatchResults, WorkBatch
from separatrix.sweeps.worker import work

BATCHES_PER_WORKER = 2
"""Batches that a worker has at once: one that it computes, and one that waits."""
MAX_FAILED_STARTS = 3
"""Workers that may die in a row before they begin; then something is wrong with all of them."""
PRELOADED = "separatrix.sweeps.preload"


@dataclass(frozen=True)
class BatchOutcome:
    """A batch that came back from a worker."""

    batch: WorkBatch
    results: BatchResults | None
    """The results of its first items, the last perhaps a checkpoint; None if its worker died."""
    is_late: bool = False
    """Whether its worker was ended because an item took too long."""


class Executor(ABC):
    """Takes batches and returns results, in any order."""

    def __init__(self, cell_timeout: float | None = None) -> None:
        self.cell_timeout = cell_timeout
        """Seconds that a cell may take; None for no limit."""
        self._failure: BaseException | None = None
        """The reason why nothing more can be computed; raised once all results are handed over."""

    @property
    @abstractmethod
    def workers(self) -> int:
        """The number of batches that are computed at once."""

    @property
    @abstractmethod
    def vacancies(self) -> int:
        """The number of further batches that would not have to wait long."""

    @property
    @abstractmethod
    def is_busy(self) -> bool:
        """Whether a batch has not come back yet."""

    @abstractmethod
    def submit(self, batch: WorkBatch) -> None:
        """Accept a batch."""

    @abstractmethod
    def wait(self, seconds: float) -> list[BatchOutcome]:
        """Return the batches that came back, after at most so many seconds."""

    @abstractmethod
    def close(self) -> None:
        """End all workers at once; unfinished work is lost."""


class _Worker:
    """A process and its batches."""

    def __init__(self, context: BaseContext) -> None:
        self.pool = ProcessPoolExecutor(1, context, initializer=follow_parent)
        self.greeting: Future[None] = self.pool.submit(greet)
        self.waiting: dict[Future[BatchResults], WorkBatch] = {}
        self.since = time.monotonic()
        """The latest time at which it can have begun with the first of its batches."""
        self.greeting.add_done_callback(lambda _: self.set_time())

    def set_time(self) -> None:
        """Record that the worker begins with a batch now."""
        self.since = time.monotonic()

    def end(self) -> None:
        """End the process at once."""
        for process in list((self.pool._processes or {}).values()):
            process.kill()

    @property
    def has_begun(self) -> bool:
        """Whether the worker ever ran anything."""
        return self.greeting.done() and self.greeting.exception() is None


class LocalExecutor(Executor):
    """Worker processes on this machine, each with a pool of its own: one that dies affects no other."""

    def __init__(self, workers: int, context: BaseContext | None = None, cell_timeout: float | None = None) -> None:
        super().__init__(cell_timeout)
        self._context = context or process_context(PRELOADED)
        self._workers = [self._start() for _ in range(workers)]
        self._outcomes: list[BatchOutcome] = []
        self._failed_starts = 0

    def _start(self) -> _Worker:
        return start_process(lambda: _Worker(self._context), PRELOADED)

    @property
    def workers(self) -> int:
        return len(self._workers)

    @property
    def vacancies(self) -> int:
        waiting = sum(len(worker.waiting) for worker in self._workers)
        return 0 if self._failure else BATCHES_PER_WORKER * self.workers - waiting

    @property
    def is_busy(self) -> bool:
        return bool(self._outcomes or self._failure or any(worker.waiting for worker in self._workers))

    def submit(self, batch: WorkBatch) -> None:
        while not self._failure:
            index = min(range(self.workers), key=lambda i: len(self._workers[i].waiting))
            worker = self._workers[index]
            try:
                future = worker.pool.submit(work, *batch.arguments)
            except BrokenProcessPool:
                self._replace(index)
            else:
                if not worker.waiting:
                    worker.set_time()
                worker.waiting[future] = batch
                return

    def wait(self, seconds: float) -> list[BatchOutcome]:
        if not self._outcomes and not self._failure:
            wait([future for worker in self._workers for future in worker.waiting], seconds, FIRST_COMPLETED)
        for index in range(self.workers):
            self._collect(index)
            if self._is_late(self._workers[index]):
                self._workers[index].end()
                self._replace(index, is_late=True)
        outcomes, self._outcomes = self._outcomes, []
        if self._failure and not outcomes:
            raise self._failure
        return outcomes

    def _collect(self, index: int) -> None:
        worker = self._workers[index]
        for future in [future for future in worker.waiting if future.done()]:
            error = future.exception()
            if isinstance(error, BrokenProcessPool):
                self._replace(index)
                return
            batch = worker.waiting.pop(future)
            worker.set_time()
            if error is None:
                self._failed_starts = 0
                self._outcomes.append(BatchOutcome(batch, future.result()))
            else:
                self._failure = self._failure or error

    def _is_late(self, worker: _Worker) -> bool:
        """Whether a cell takes longer than it may; several cells have the time of a batch in addition."""
        first = next(iter(worker.waiting.values()), None)
        if self.cell_timeout is None or first is None or not worker.has_begun:
            return False
        turn = first.items[0].turn_seconds if len(first.items) > 1 else 0.0
        return time.monotonic() - worker.since > self.cell_timeout + turn

    def _replace(self, index: int, is_late: bool = False) -> None:
        """Replace a worker. Its first batch was being computed and is lost; the others are sent again."""
        dead = self._workers[index]
        batches = list(dead.waiting.values())
        dead.pool.shutdown(wait=False)
        if dead.has_begun:
            self._outcomes += [BatchOutcome(batch, None, is_late) for batch in batches[:1]]
            batches = batches[1:]
        else:
            self._failed_starts += 1
        try:
            if self._failed_starts >= MAX_FAILED_STARTS:
                raise SeparatrixError(
                    "worker processes die before they begin; in a script, call sx.sweep below "
                    "`if __name__ == '__main__':`, and check that there is enough memory"
                )
            self._workers[index] = self._start()
        except SeparatrixError as error:
            dead.waiting.clear()
            self._failure = SeparatrixError(f"{error}; finished results are stored")
            return
        for batch in batches:
            self.submit(batch)

    def close(self) -> None:
        for worker in self._workers:
            worker.end()
            worker.pool.shutdown(wait=True, cancel_futures=True)


def greet() -> None:
    """Do nothing: once this first task of a worker is done, the worker has begun."""
