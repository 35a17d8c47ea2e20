"""Run suites of measurements, each in a process of its own, so that one that fails or dies ends no other."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection

from benchmarks._base import Failure, Line, attempt, describe_exit


def run_suite(module: str) -> Iterator[Line]:
    """The lines of a suite as they are measured; if it raises or its process dies, a `Failure` as the last.

    `module` is the importable name of a module with a generator `measure()`.
    """
    # A fresh interpreter: threads of torch, settings and memory of one suite do not reach the next.
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(module, sender))
    process.start()
    sender.close()
    try:
        while (line := receiver.recv()) is not None:
            yield line
    except EOFError:
        process.join()
        yield Failure(_rest(module), describe_exit(process.exitcode))
    finally:
        receiver.close()
        process.join()


def _measure(module: str, sender: Connection) -> None:
    """In the process of the suite: send its lines, then None."""
    for line in attempt(_rest(module), lambda: import_module(module).measure()):
        sender.send(line)
    sender.send(None)


def _rest(module: str) -> str:
    return f"the remaining lines of {module.rpartition('.')[2]}"
