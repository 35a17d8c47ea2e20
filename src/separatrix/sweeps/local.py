"""Worker processes on this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection
from multiprocessing.context import BaseContext

from separatrix.store import Result
from separatrix.sweeps.executors import SLICE, Executor, Finished
from separatrix.sweeps.work import Batch, work

AHEAD = 2
"""Batches a worker has at once: one it computes, and one that waits for it."""

PRELOADED = "separatrix.sweeps.preload"

Waiting = dict[Future[list[Result]], Batch]


class LocalExecutor(Executor):
    """One pool for each worker, so that a worker that dies takes only its own batches with it."""

    def __init__(self, workers: int, context: BaseContext | None = None) -> None:
        self._context = context or _context()
        self._pools = [self._pool() for _ in range(workers)]
        self._waiting: list[Waiting] = [{} for _ in range(workers)]

    def _pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, self._context, initializer=prepare)

    @property
    def workers(self) -> int:
        return len(self._pools)

    @property
    def vacancies(self) -> int:
        return AHEAD * self.workers - sum(map(len, self._waiting))

    @property
    def busy(self) -> bool:
        return any(self._waiting)

    def submit(self, batch: Batch) -> None:
        place = min(range(self.workers), key=lambda i: len(self._waiting[i]))
        try:
            future = self._pools[place].submit(work, batch.cells, SLICE)
        except BrokenProcessPool:  # it died just now, with nothing of ours
            self._replace(place)
            future = self._pools[place].submit(work, batch.cells, SLICE)
        self._waiting[place][future] = batch

    def wait(self, seconds: float) -> list[Finished]:
        futures = [future for waiting in self._waiting for future in waiting]
        wait(futures, seconds, FIRST_COMPLETED)
        return [each for place in range(self.workers) for each in self._collect(place)]

    def _collect(self, place: int) -> list[Finished]:
        found: list[Finished] = []
        waiting = self._waiting[place]
        for future in [each for each in waiting if each.done()]:
            if isinstance(future.exception(), BrokenProcessPool):
                return [*found, *self._died(place)]
            found.append(Finished(waiting.pop(future), future.result()))
        return found

    def _died(self, place: int) -> list[Finished]:
        """The first batch was being computed, so it is lost; those that waited behind it are handed on."""
        first, *rest = self._waiting[place].values()
        self._waiting[place] = {}
        self._replace(place)
        for batch in rest:
            self.submit(batch)
        return [Finished(first, None)]

    def _replace(self, place: int) -> None:
        self._pools[place].shutdown(wait=False)
        self._pools[place] = self._pool()

    def close(self) -> None:
        for pool in self._pools:
            for process in list((pool._processes or {}).values()):
                process.kill()
            pool.shutdown(wait=True, cancel_futures=True)


def _context() -> BaseContext:
    """Workers are forked from a server that has imported everything: they start at once, and share memory."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([PRELOADED])
    return context


def prepare() -> None:
    """What a worker does first: leave Ctrl-C to the coordinator, and not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_leave_with, args=(parent.sentinel,), daemon=True).start()


def _leave_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)
