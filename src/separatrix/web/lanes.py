"""Worker processes that answer one request at a time each, and that are ended when nobody waits any more.

A request goes to the first idle process. If the client leaves, the process may still finish within
`GRACE_SECONDS` (a new process costs more than a map); after that it is killed and replaced. A process that
died is replaced too; if it died before it began a request, the request goes to another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from multiprocessing.context import BaseContext
from typing import Any, TypeVar

from separatrix.core.errors import SeparatrixError
from separatrix.web.workers import Call, Died, Reply, Report, Unavailable, Worker, WorkerDied, start_worker

Value = TypeVar("Value")
GRACE_SECONDS = 0.5
"""The time that a process has to finish an answer that nobody waits for."""
MAX_WAITING = 400
"""Requests that may wait for a free process."""


class Busy(Unavailable):
    """No process became free in time."""


class TooLong(Unavailable):
    """The computation exceeded its time limit."""


@dataclass
class Lane:
    """A fixed number of processes, and the requests that wait for them."""

    size: int
    max_seconds: float
    """The time limit of an answer."""
    context: BaseContext
    niceness: int = 0
    """By how much the processes lower their priority."""
    max_wait: float = 600.0
    """Seconds that a request may wait for a free process."""
    _slots: asyncio.Semaphore = field(init=False)
    """One for each process that works, starts or ends: together never more than `size`."""
    _idle: list[Worker] = field(default_factory=list)
    _workers: set[Worker] = field(default_factory=set)
    _waiting: int = 0
    _is_closed: bool = False
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.size)

    async def start(self) -> None:
        """Start the processes, and wait until each accepts calls."""
        await asyncio.gather(*(self._add_idle_worker() for _ in range(self.size)))

    async def _add_idle_worker(self) -> None:
        async with self._slots:
            self._idle.append(await self._start_worker())

    async def _start_worker(self) -> Worker:
        worker = await asyncio.to_thread(start_worker, self.context, self.niceness)
        self._workers.add(worker)
        return worker

    @property
    def processes(self) -> frozenset[int]:
        """The process ids."""
        return frozenset(worker.process.pid for worker in self._workers)

    async def ask(self, call: Call, report: Report = lambda _: None) -> Reply:
        """Return the reply, once a process is free; cancelling this ends the computation."""
        while True:
            worker = await self._take_worker()
            try:
                worker.send(call)
            except Died:
                # It died while it was idle and has not seen the request, which can go to another process.
                self._create_task(self._free(worker))
            else:
                return await self._receive_reply(worker, report)

    async def _take_worker(self) -> Worker:
        """Wait for a slot and return a process that nobody else uses."""
        if self._waiting >= MAX_WAITING:
            raise Busy("too many requests are waiting; try again in a moment")
        self._waiting += 1
        try:
            async with asyncio.timeout(self.max_wait):
                await self._slots.acquire()
        except TimeoutError:
            raise Busy(
                f"no process was free for this within {self.max_wait:.0f} s: they are computing earlier "
                "requests; try again in a moment, or give the command in a terminal"
            ) from None
        finally:
            self._waiting -= 1
        if self._idle:
            return self._idle.pop()
        try:
            # A slot without an idle process: the last attempt to replace a dead one failed.
            return await self._start_worker()
        except BaseException:
            self._slots.release()
            raise

    async def _receive_reply(self, worker: Worker, report: Report) -> Reply:
        work = self._create_task(worker.receive_reply(report))
        try:
            async with asyncio.timeout(self.max_seconds):
                # Shielded: if the client leaves, the reply is still read for GRACE_SECONDS, so that the
                # process can be used again. A reply left in the pipe would be taken for the next one.
                return await asyncio.shield(work)
        except TimeoutError:
            raise TooLong(
                f"this takes longer than {self.max_seconds:.0f} s, the limit of the explorer; "
                "give the command in a terminal"
            ) from None
        except Died:
            raise WorkerDied(
                "the process that computed this died, perhaps for want of memory; try again, or ask for less"
            ) from None
        finally:
            self._create_task(self._free(worker, work))

    async def _free(self, worker: Worker, work: asyncio.Task[Reply] | None = None) -> None:
        """Keep the process if its work is done or ends soon; otherwise kill it and start another."""
        if self._is_closed:
            return
        try:
            if work is not None:
                await asyncio.wait([work], timeout=GRACE_SECONDS)
                if work.done() and not work.cancelled() and not isinstance(work.exception(), Died):
                    self._idle.append(worker)
                    return
                work.cancel()
                # The task has to stop watching the pipe before the pipe is closed.
                await asyncio.wait([work])
            self._workers.remove(worker)
            await asyncio.to_thread(worker.end)
            self._idle.append(await self._start_worker())
        except SeparatrixError:
            pass  # the next request for this slot starts a process, or reports why none can be started
        finally:
            self._slots.release()

    def _create_task(self, work: Coroutine[Any, Any, Value]) -> asyncio.Task[Value]:
        # The event loop holds only weak references to tasks; `close` cancels those that are left.
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Cancel all work and kill the processes."""
        self._is_closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # All are killed before any is waited for, so that they end at the same time.
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.end()
