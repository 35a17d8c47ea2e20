"""Run suites of measurements in separate processes, so that a suite that fails does not affect the others."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection

from benchmarks._base import Failure, Line, attempt, describe_exit


def run_suite(module: str) -> Iterator[Line]:
    """Yield the lines of a suite as they are measured, and a `Failure` if it raises or its process dies.

    `module` is the importable name of a module with a generator `measure()`.
    """
    # Spawn starts a new interpreter, so that torch's threads, settings and memory do not affect other suites.
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
    """Send the lines of the suite, then None. Runs in the process of the suite."""
    for line in attempt(_rest(module), lambda: import_module(module).measure()):
        sender.send(line)
    sender.send(None)


def _rest(module: str) -> str:
    return f"the remaining lines of {module.rpartition('.')[2]}"
