"""Processes that compute for the page: how one is started, what it is sent, and what comes back."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

from separatrix.core.errors import SeparatrixError, UsageError, user_lines
from separatrix.core.startup import follow_parent, signals_held_back, start_process

PRELOADED = "separatrix.web.preload"
_STARTING = threading.Lock()
"""Processes are started one after another: meanwhile the environment is not as usual."""

Tell = Callable[[Mapping[str, Any]], None]
"""Hears how far an answer is."""


@dataclass(frozen=True)
class Call:
    """A function of `separatrix.web.answers`, by name, and its arguments."""

    name: str
    arguments: Mapping[str, Any]
    check: str | None = None
    """The function that refuses wrong arguments at once, before the call waits for a slow process."""


class Unavailable(SeparatrixError):
    """The request may be fine, but there is no answer now; the page answers with 503."""


class WorkerDied(Unavailable):
    """The process that computed an answer died over it, or could not be started."""


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


class Died(Exception):
    """The process is dead."""


@dataclass(eq=False)
class Worker:
    """A process and the line to it."""

    process: Any
    line: Connection

    def send(self, call: Call) -> None:
        """Give it something to do; `Died` where it died before."""
        try:
            self.line.send((call.name, dict(call.arguments)))
        except OSError:
            raise Died from None

    async def answer(self, tell: Tell) -> bytes:
        """What comes back, once the answer is there; `Died` where it dies over it."""
        while True:
            kind, what = await self._heard()
            if kind == "step":
                tell(what)
            elif kind == "answer":
                return bytes(what)
            elif kind == "slow":
                raise Slow(what)
            else:
                raise Refused(*what)

    async def _heard(self) -> tuple[str, Any]:
        """The next message."""
        loop, number = asyncio.get_running_loop(), self.line.fileno()
        ready = loop.create_future()

        def wake() -> None:
            if not ready.done():
                ready.set_result(None)

        loop.add_reader(number, wake)
        try:
            await ready
        finally:
            loop.remove_reader(number)
        try:
            message: tuple[str, Any] = self.line.recv()
        except (OSError, EOFError):
            raise Died from None
        return message

    def end(self) -> None:
        """End it at once."""
        self.process.kill()
        self.line.close()
        self.process.join()


def start(context: BaseContext, niceness: int) -> Worker:
    """Start a process, and wait until it can be asked."""

    def begin() -> Worker:
        ours, theirs = context.Pipe()
        with theirs, signals_held_back():
            process = context.Process(target=work_off, args=(theirs, folder, niceness), daemon=True)  # type: ignore[attr-defined]
            process.start()
        return Worker(process, ours)

    folder = str(Path.cwd())
    try:
        with _STARTING:
            worker = start_process(begin, PRELOADED)
    except SeparatrixError as error:
        raise WorkerDied(str(error)) from None
    try:
        worker.line.recv()
    except (OSError, EOFError):
        raise WorkerDied(
            "a process that computes for the page dies before it begins; see whether there is enough memory"
        ) from None
    return worker


def work_off(line: Connection, folder: str, niceness: int) -> None:
    """What a process does: answer calls until the line is closed."""
    from separatrix.core.tensors import torch
    from separatrix.web.answers import answer_named

    follow_parent()
    os.nice(niceness)
    torch.set_num_threads(1)
    os.chdir(folder)
    line.send(("ready", None))
    while True:
        try:
            name, arguments = line.recv()
        except (OSError, EOFError):
            return
        try:
            found = answer_named(name)(**arguments, tell=lambda step: line.send(("step", step)))
        except Slow as error:
            line.send(("slow", str(error)))
        except TooManyCells as error:
            line.send(("refused", ("\n".join(user_lines(error)), error.most)))
        except Exception as error:
            line.send(("refused", ("\n".join(user_lines(error)),)))
        else:
            line.send(("answer", found))
