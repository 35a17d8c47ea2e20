"""Worker processes: how one is started, what it is sent, and what it sends back."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import signature
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from typing import Any, NamedTuple

from separatrix.core.documents import Document, to_json
from separatrix.core.errors import SeparatrixError, UsageError, user_lines
from separatrix.core.numbers.json import json_text
from separatrix.core.startup import follow_parent, signals_held_back, start_process

PRELOADED = "separatrix.web.preload"
JSON = "application/json"
# `start_process` sets PYTHONSAFEPATH in the environment for a moment and restores it; two threads that did so
# at once could leave it set.
_STARTING = threading.Lock()

Report = Callable[[Mapping[str, Any]], None]
"""Is called with the progress of an answer."""


@dataclass(frozen=True)
class Call:
    """A function of `separatrix.web.endpoints` and its arguments."""

    function: Callable[..., Any]
    """Must be importable by its name: pickle sends only the name."""
    arguments: Mapping[str, Any]
    is_quick: bool = False
    """Whether the function has to answer at once or raise `Slow`."""


class Reply(NamedTuple):
    """The body of a response."""

    body: bytes
    media_type: str = JSON
    file_name: str = ""
    """The name under which a browser saves it; empty for what a page reads."""


class Unavailable(SeparatrixError):
    """The request may be valid, but there is no answer now; the status is 503."""


class WorkerDied(Unavailable):
    """The process that computed an answer died, or could not be started."""


class RefusedRequest(SeparatrixError):
    """The worker refused a request, with the message that the command line shows."""

    def __init__(self, message: str, max_cells: int | None = None) -> None:
        super().__init__(message)
        self.max_cells = max_cells
        """The limit that a map with too many cells exceeded."""


class TooManyCells(UsageError):
    """A map has more cells than the page computes."""

    def __init__(self, message: str, max_cells: int) -> None:
        super().__init__(message)
        self.max_cells = max_cells


class Slow(Exception):
    """The quick lane cannot answer this at once; the slow lane may."""


class Died(Exception):
    """The process is dead."""


@dataclass(eq=False)
class Worker:
    """A process and the pipe to it."""

    process: Any
    pipe: Connection

    def send(self, call: Call) -> None:
        """Start a computation; raise `Died` if the process died while it was idle."""
        try:
            self.pipe.send((call.function, dict(call.arguments), call.is_quick))
        except OSError:
            raise Died from None

    async def receive_reply(self, report: Report) -> Reply:
        """Wait for the reply and pass on progress; raise `Died` if the process dies."""
        while True:
            kind, content = await self._receive()
            if kind == "step":
                report(content)
            elif kind == "reply":
                return Reply(*content)
            elif kind == "slow":
                raise Slow
            else:
                raise RefusedRequest(*content)

    async def _receive(self) -> tuple[str, Any]:
        loop, descriptor = asyncio.get_running_loop(), self.pipe.fileno()
        is_readable = loop.create_future()

        def wake() -> None:
            # The wait may have been cancelled in the same turn of the event loop.
            if not is_readable.done():
                is_readable.set_result(None)

        loop.add_reader(descriptor, wake)
        try:
            await is_readable
        finally:
            loop.remove_reader(descriptor)
        try:
            message: tuple[str, Any] = self.pipe.recv()
        except (OSError, EOFError):
            raise Died from None
        return message

    def end(self) -> None:
        """Kill the process: it may be deep in a computation that heeds no request to stop."""
        self.process.kill()
        self.pipe.close()
        self.process.join()


def start_worker(context: BaseContext, niceness: int) -> Worker:
    """Start a process, and wait until it accepts calls."""

    def start() -> Worker:
        server_end, worker_end = context.Pipe()
        # The server closes its copy of the worker's end, so that reading fails once the worker is dead.
        with worker_end, signals_held_back():
            process = context.Process(target=work_off, args=(worker_end, niceness), daemon=True)  # type: ignore[attr-defined]
            process.start()
        return Worker(process, server_end)

    try:
        with _STARTING:
            worker = start_process(start, PRELOADED)
    except SeparatrixError as error:
        raise WorkerDied(str(error)) from None
    try:
        worker.pipe.recv()
    except (OSError, EOFError):
        raise WorkerDied(
            "a worker process of the explorer died while it started; see whether there is enough memory"
        ) from None
    return worker


def work_off(pipe: Connection, niceness: int) -> None:
    """Answer calls until the pipe is closed; the main function of a worker process."""
    from separatrix.core.tensors import torch

    follow_parent()
    os.nice(niceness)
    # Several workers share the processors; more threads each would only wait for one another.
    torch.set_num_threads(1)
    pipe.send(("ready", None))
    while True:
        try:
            function, arguments, is_quick = pipe.recv()
        except (OSError, EOFError):
            return
        arguments.update(is_quick=is_quick, report=lambda step: pipe.send(("step", step)))
        try:
            reply = make_reply(call_with(function, arguments))
        except Slow:
            pipe.send(("slow", None))
        except TooManyCells as error:
            pipe.send(("refused", ("\n".join(user_lines(error)), error.max_cells)))
        except Exception as error:  # a user's mechanism may raise anything
            pipe.send(("refused", ("\n".join(user_lines(error)),)))
        else:
            pipe.send(("reply", tuple(reply)))


def call_with(function: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    """Call a function with those of the values that its parameters name.

    >>> call_with(lambda options, words: (words, options), {"words": 1, "options": 2, "is_quick": True})
    (1, 2)
    """
    return function(**{name: values[name] for name in parameter_names(function)})


@cache
def parameter_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a function's parameters."""
    return tuple(signature(function).parameters)


def make_reply(result: Any) -> Reply:
    """Return the reply for the result of an endpoint: its JSON document, unless it is a reply already."""
    if isinstance(result, Reply):
        return result
    # Some results define another JSON form than that of their fields, for example a list of their parts.
    document = result.as_json() if isinstance(result, Document) else to_json(result)
    return Reply(json_text(document, indent=None).encode())
