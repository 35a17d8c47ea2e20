"""Processes that answer requests, one at a time each: what takes too long, or nobody waits for, is ended.

A request goes to the first process that is free. Where the one who asked goes away, a process may still
finish within `PATIENCE` (a new one costs more than a map); after that it is ended and another started. So is
one that died; what it was asked before it began is asked again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from multiprocessing.context import BaseContext
from typing import Any, TypeVar

from separatrix.core.errors import SeparatrixError
from separatrix.web.workers import Call, Died, Refused, Slow, Tell, Unavailable, Worker, WorkerDied, start

Found = TypeVar("Found")
PATIENCE = 0.5
"""Seconds that a process has to finish what nobody waits for."""
MOST_WAITING = 400
"""Requests that may wait for a free process."""


class Busy(Unavailable):
    """Too many wait already."""


class TooLong(Unavailable):
    """It took longer than it may."""


@dataclass
class Lane:
    """Some processes, and who waits for them."""

    name: str
    size: int
    seconds: float
    """The longest an answer may take."""
    context: BaseContext
    niceness: int = 0
    """How far its processes stand back for others."""
    longest_wait: float = 600.0
    """Seconds that one may wait for a free process."""
    _slots: asyncio.Semaphore = field(init=False)
    """One for each process that works, is being started or being ended: never more than `size`."""
    _idle: list[Worker] = field(default_factory=list)
    _workers: set[Worker] = field(default_factory=set)
    _waiting: int = 0
    _closed: bool = False
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.size)

    async def open(self) -> None:
        """Start the processes, and wait until each can be asked."""
        await asyncio.gather(*(self._start_one() for _ in range(self.size)))

    async def _start_one(self) -> None:
        async with self._slots:
            self._idle.append(await self._start())

    async def _start(self) -> Worker:
        worker = await asyncio.to_thread(start, self.context, self.niceness)
        self._workers.add(worker)
        return worker

    @property
    def processes(self) -> frozenset[int]:
        """Their numbers."""
        return frozenset(worker.process.pid for worker in self._workers)

    async def ask(self, call: Call, tell: Tell = lambda _: None) -> bytes:
        """The answer, once a process is free; cancelling it ends the work."""
        while True:
            worker = await self._free()
            try:
                worker.send(call)
            except Died:
                self._let_go(worker)
            else:
                return await self._answer(worker, tell)

    async def _free(self) -> Worker:
        """A process that nobody else has, once there is one."""
        if self._waiting >= MOST_WAITING:
            raise Busy("too many requests wait already; try again in a moment")
        self._waiting += 1
        try:
            async with asyncio.timeout(self.longest_wait):
                await self._slots.acquire()
        except TimeoutError:
            raise Busy(
                f"no process was free for this within {self.longest_wait:.0f} s: others compute what was "
                "asked before; try again in a moment, or give the command in a terminal"
            ) from None
        finally:
            self._waiting -= 1
        if self._idle:
            return self._idle.pop()
        try:
            return await self._start()
        except BaseException:
            self._slots.release()
            raise

    async def _answer(self, worker: Worker, tell: Tell) -> bytes:
        work = self._do(worker.answer(tell))
        try:
            async with asyncio.timeout(self.seconds):
                answer = await asyncio.shield(work)
        except asyncio.CancelledError:
            self._let_go(worker, work, PATIENCE)
            raise
        except TimeoutError:
            self._let_go(worker, work)
            raise TooLong(
                f"this takes longer than {self.seconds:.0f} s, which is as long as the page waits; "
                "give the command in a terminal"
            ) from None
        except Died:
            self._let_go(worker)
            raise WorkerDied(
                "the process that computed this died, perhaps for want of memory; try again, or ask for less"
            ) from None
        except (Refused, Slow):
            self._give_back(worker)
            raise
        except BaseException:
            self._let_go(worker, work)
            raise
        self._give_back(worker)
        return answer

    def _give_back(self, worker: Worker) -> None:
        self._idle.append(worker)
        self._slots.release()

    def _let_go(self, worker: Worker, work: asyncio.Task[bytes] | None = None, patience: float = 0.0) -> None:
        """Wait a little for work that nobody waits for; then another process takes the place of this one."""
        if not self._closed:
            self._do(self._leave(worker, work, patience))

    async def _leave(self, worker: Worker, work: asyncio.Task[bytes] | None, patience: float) -> None:
        try:
            if work is not None:
                await asyncio.wait([work], timeout=patience)
                if work.done() and not work.cancelled() and not isinstance(work.exception(), Died):
                    self._idle.append(worker)
                    return
                work.cancel()
                await asyncio.wait([work])
            self._workers.remove(worker)
            await asyncio.to_thread(worker.end)
            self._idle.append(await self._start())
        except SeparatrixError:
            pass  # whoever takes the place next starts a process, or hears why there is none
        finally:
            self._slots.release()

    def _do(self, work: Coroutine[Any, Any, Found]) -> asyncio.Task[Found]:
        """Begin something that `close` ends."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """End all of them."""
        self._closed = True
        running = list(self._tasks)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.end()
