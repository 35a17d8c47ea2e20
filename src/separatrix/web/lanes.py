"""Processes that answer requests, one at a time each: what takes too long, or nobody waits for, is ended.

A request goes to the first process that is free. Where the one who asked goes away, a process may still
finish within `PATIENCE` (a new one costs more than a map); after that it is ended and another started.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

from separatrix.errors import SeparatrixError, UsageError, told
from separatrix.startup import safe_path, signals_held_back

PATIENCE = 0.5
"""Seconds that a process has to finish what nobody waits for."""
MOST_WAITING = 400
"""Requests that may wait for a free process."""
PRELOADED = "separatrix.web.preload"

Tell = Callable[[Mapping[str, Any]], None]
"""Hears how far an answer is."""


@dataclass(frozen=True)
class Call:
    """A function of `separatrix.web.answers`, by name, and its arguments."""

    name: str
    arguments: Mapping[str, Any]


class Refused(SeparatrixError):
    """What was asked cannot be answered: in the words of the command line."""

    def __init__(self, said: str, most_cells: int | None = None) -> None:
        super().__init__(said)
        self.most_cells = most_cells
        """The most cells that a map like this may have, where it had more."""


class TooManyCells(UsageError):
    """A map has more cells than the page makes."""

    def __init__(self, said: str, most: int) -> None:
        super().__init__(said)
        self.most = most


class Slow(SeparatrixError):
    """It cannot be answered at once; the slow lane may."""


class Busy(SeparatrixError):
    """Too many wait already."""


class TooLong(SeparatrixError):
    """It took longer than it may."""


@dataclass
class Worker:
    """A process and the line to it."""

    process: Any
    line: Connection

    def end(self) -> None:
        """End it at once."""
        self.process.kill()
        self.line.close()
        self.process.join()


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
    _free: asyncio.LifoQueue[Worker] = field(default_factory=asyncio.LifoQueue)
    _waiting: int = 0
    _ending: set[asyncio.Task[None]] = field(default_factory=set)
    _workers: dict[int, Worker] = field(default_factory=dict)

    async def open(self) -> None:
        """Start the processes, and wait until each has answered once."""
        for _ in range(self.size):
            self._free.put_nowait(await self._start())

    async def _start(self) -> Worker:
        worker = await asyncio.to_thread(_start, self.context, self.niceness)
        self._workers[worker.process.pid] = worker
        return worker

    @property
    def processes(self) -> frozenset[int]:
        """Their numbers."""
        return frozenset(self._workers)

    async def ask(self, call: Call, tell: Tell = lambda _: None) -> bytes:
        """The answer, once a process is free; cancelling it ends the work."""
        if self._waiting >= MOST_WAITING:
            raise Busy("too many requests wait already; try again in a moment")
        self._waiting += 1
        try:
            worker = await self._free.get()
        finally:
            self._waiting -= 1
        work = asyncio.create_task(_answered(worker, call, tell))
        try:
            answer = await asyncio.wait_for(asyncio.shield(work), self.seconds)
        except asyncio.CancelledError:
            self._let_go(worker, work, PATIENCE)
            raise
        except TimeoutError:
            self._let_go(worker, work, 0.0)
            raise TooLong(
                f"this takes longer than {self.seconds:.0f} s, which is as long as the page waits; "
                "give the command in a terminal"
            ) from None
        except EOFError:
            self._let_go(worker, work, 0.0)
            raise Refused("the process that computed this died, perhaps for want of memory") from None
        except SeparatrixError:
            self._free.put_nowait(worker)
            raise
        self._free.put_nowait(worker)
        return answer

    def _let_go(self, worker: Worker, work: asyncio.Task[bytes], patience: float) -> None:
        """Wait a little for work that nobody waits for; then another process takes the place of this one."""
        task = asyncio.create_task(self._leave(worker, work, patience))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _leave(self, worker: Worker, work: asyncio.Task[bytes], patience: float) -> None:
        await asyncio.wait([work], timeout=patience)
        done = work.done() and not work.cancelled()
        error = work.exception() if done else None
        if done and not isinstance(error, EOFError):
            self._free.put_nowait(worker)
            return
        work.cancel()
        await asyncio.wait([work])
        del self._workers[worker.process.pid]
        await asyncio.to_thread(worker.end)
        self._free.put_nowait(await self._start())

    async def close(self) -> None:
        """End all of them."""
        for task in list(self._ending):
            task.cancel()
        await asyncio.gather(*self._ending, return_exceptions=True)
        for worker in self._workers.values():
            worker.end()


async def _answered(worker: Worker, call: Call, tell: Tell) -> bytes:
    """Send a call down the line, and hear what comes back until the answer is there."""
    loop = asyncio.get_running_loop()
    worker.line.send((call.name, dict(call.arguments)))
    while True:
        kind, what = await _heard(loop, worker.line)
        if kind == "step":
            tell(what)
        elif kind == "answer":
            return bytes(what)
        elif kind == "slow":
            raise Slow(what)
        else:
            raise Refused(*what)


async def _heard(loop: asyncio.AbstractEventLoop, line: Connection) -> tuple[str, Any]:
    """The next message; EOFError where the process has died."""
    ready = loop.create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(line.fileno(), wake)
    try:
        await ready
    finally:
        loop.remove_reader(line.fileno())
    try:
        message: tuple[str, Any] = line.recv()
    except OSError:
        raise EOFError from None
    return message


def _start(context: BaseContext, niceness: int) -> Worker:
    ours, theirs = context.Pipe()
    with safe_path(), signals_held_back():
        process = context.Process(target=work_off, args=(theirs, str(Path.cwd()), niceness), daemon=True)  # type: ignore[attr-defined]
        process.start()
    theirs.close()
    try:
        ours.recv()
    except EOFError:
        raise SeparatrixError(
            "a process that computes for the page dies before it begins; see whether there is enough memory"
        ) from None
    return Worker(process, ours)


def work_off(line: Connection, folder: str, niceness: int) -> None:
    """What a process does: answer calls until the line is closed."""
    from separatrix.sweeps.local import prepare
    from separatrix.tensors import torch
    from separatrix.web.answers import ANSWERS

    prepare()
    os.nice(niceness)
    torch.set_num_threads(1)
    os.chdir(folder)
    line.send(("ready", None))
    while True:
        try:
            name, arguments = line.recv()
        except EOFError:
            return
        try:
            found = ANSWERS[name](**arguments, tell=lambda step: line.send(("step", step)))
        except Slow as error:
            line.send(("slow", str(error)))
        except TooManyCells as error:
            line.send(("refused", ("\n".join(told(error)), error.most)))
        except Exception as error:
            line.send(("refused", ("\n".join(told(error)),)))
        else:
            line.send(("answer", found))
