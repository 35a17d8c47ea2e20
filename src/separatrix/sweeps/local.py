"""Worker processes on this machine."""

from __future__ import annotations

import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import BaseContext

from separatrix.core.parameters import SeparatrixError
from separatrix.core.startup import follow_parent, process_context, start_process
from separatrix.sweeps.executors import AHEAD, Executor, Finished
from separatrix.sweeps.work import Back, Batch
from separatrix.sweeps.worker import work

MOST_STILLBORN = 3
"""Workers that die one after another before they have begun: then something is wrong with all of them."""
PRELOADED = "separatrix.sweeps.preload"


class _Worker:
    """A process, and the batches it has."""

    def __init__(self, context: BaseContext) -> None:
        self.pool = ProcessPoolExecutor(1, context, initializer=follow_parent)
        self.greeting: Future[None] = self.pool.submit(greet)
        self.waiting: dict[Future[Back], Batch] = {}
        self.since = time.monotonic()
        """When it began with the first of its batches, at the latest."""
        self.greeting.add_done_callback(lambda _: self.note_time())

    def note_time(self) -> None:
        """Note that the worker begins with a batch now."""
        self.since = time.monotonic()

    def end(self) -> None:
        """End the process at once."""
        for process in list((self.pool._processes or {}).values()):
            process.kill()

    @property
    def has_begun(self) -> bool:
        """Whether the worker ever did anything."""
        return self.greeting.done() and self.greeting.exception() is None


class LocalExecutor(Executor):
    """One pool for each worker, so that a worker that dies takes only its own batches with it."""

    def __init__(
        self, workers: int, context: BaseContext | None = None, cell_timeout: float | None = None
    ) -> None:
        super().__init__(cell_timeout)
        self._context = context or process_context(PRELOADED)
        self._workers = [self._start() for _ in range(workers)]
        self._back: list[Finished] = []
        self._stillborn = 0

    def _start(self) -> _Worker:
        return start_process(lambda: _Worker(self._context), PRELOADED)

    @property
    def workers(self) -> int:
        return len(self._workers)

    @property
    def vacancies(self) -> int:
        return (
            0
            if self._failure
            else AHEAD * self.workers - sum(len(worker.waiting) for worker in self._workers)
        )

    @property
    def busy(self) -> bool:
        return bool(self._back or self._failure or any(worker.waiting for worker in self._workers))

    def submit(self, batch: Batch) -> None:
        while not self._failure:
            place = min(range(self.workers), key=lambda i: len(self._workers[i].waiting))
            try:
                future = self._workers[place].pool.submit(work, *batch.order)
            except BrokenProcessPool:
                self._replace(place)
            else:
                if not self._workers[place].waiting:
                    self._workers[place].note_time()
                self._workers[place].waiting[future] = batch
                return

    def wait(self, seconds: float) -> list[Finished]:
        if not self._back and not self._failure:
            wait([future for worker in self._workers for future in worker.waiting], seconds, FIRST_COMPLETED)
        for place in range(self.workers):
            self._collect(place)
            if self._is_late(self._workers[place]):
                self._workers[place].end()
                self._replace(place, late=True)
        found, self._back = self._back, []
        if self._failure and not found:
            raise self._failure
        return found

    def _collect(self, place: int) -> None:
        waiting = self._workers[place].waiting
        for future in [each for each in waiting if each.done()]:
            error = future.exception()
            if isinstance(error, BrokenProcessPool):
                self._replace(place)
                return
            batch = waiting.pop(future)
            self._workers[place].note_time()
            if error is None:
                self._stillborn = 0
                self._back.append(Finished(batch, future.result()))
            else:
                self._failure = self._failure or error

    def _is_late(self, worker: _Worker) -> bool:
        """Whether it computes a cell for longer than it may; several have the time of a batch as well."""
        first = next(iter(worker.waiting.values()), None)
        if self.cell_timeout is None or first is None or not worker.has_begun:
            return False
        allowed = self.cell_timeout + (first.cells[0].turn if len(first.cells) > 1 else 0.0)
        return time.monotonic() - worker.since > allowed

    def _replace(self, place: int, late: bool = False) -> None:
        """The first batch was being computed, so it is lost; those that waited behind it are handed on."""
        dead = self._workers[place]
        batches = list(dead.waiting.values())
        dead.pool.shutdown(wait=False)
        if dead.has_begun:
            self._back += [Finished(batch, None, late) for batch in batches[:1]]
            batches = batches[1:]
        else:
            self._stillborn += 1
        if self._stillborn >= MOST_STILLBORN:
            dead.waiting.clear()
            self._failure = SeparatrixError(
                "worker processes die before they begin; in a script, call sx.sweep below "
                "`if __name__ == '__main__':`, and see whether there is enough memory"
            )
            return
        try:
            self._workers[place] = self._start()
        except SeparatrixError as error:
            dead.waiting.clear()
            self._failure = SeparatrixError(f"{error}; what was finished is stored")
            return
        for batch in batches:
            self.submit(batch)

    def close(self) -> None:
        for worker in self._workers:
            worker.end()
            worker.pool.shutdown(wait=True, cancel_futures=True)


def greet() -> None:
    """The first task of a worker: once it is done, the worker has begun."""
