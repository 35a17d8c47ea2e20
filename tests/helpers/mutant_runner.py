"""Runs the tests of a package again and again, each time in a fork of a process that has imported the libraries.

`tests/mutants.py` starts it in the environment of the project and sends one request per line. A request without
`reach` records which functions each test calls, and how long the test takes. With `reach`, the tests that call the
changed function run first, the quickest of them first, and the first failure ends the run.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

LIBRARIES = (
    *("flint", "jsonschema", "matplotlib", "mpmath", "numpy", "optuna", "polars", "pydantic", "rich"),
    *("scipy.optimize", "scipy.special", "scipy.stats", "sqlalchemy", "torch", "typer", "yaml"),
)
EXTRA_SECONDS, TEST_FACTOR = 10.0, 10.0
"""A test is stopped after so many seconds of processor time more than this many times its usual time."""
MAX_MEMORY = 8 << 30
Reach = dict[str, dict[str, Any]]


class Recorder:
    """Records the processor time of each test and the functions that it calls below `source`."""

    def __init__(self, source: Path) -> None:
        self.source = str(source.resolve())
        self.reach: Reach = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Trace the calls of one test; lines are not traced."""
        codes: set[CodeType] = set()

        def trace(frame: FrameType, event: str, argument: Any) -> None:
            codes.add(frame.f_code)

        started = time.process_time()
        sys.settrace(trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            called = sorted(
                f"{code.co_filename.removeprefix(self.source)}:{code.co_firstlineno}"
                for code in codes
                if code.co_filename.startswith(self.source)
            )
            self.reach[item.nodeid] = {"seconds": time.process_time() - started, "called": called}


class Order:
    """Runs the tests that call a function first, and limits the processor time of each test."""

    def __init__(self, reach: Reach, function: str) -> None:
        self.reach = reach
        file = function.rpartition(":")[0] + ":"
        self.near = {name for name, test in reach.items() if any(each.startswith(file) for each in test["called"])}
        self.first = {name for name, test in reach.items() if function in test["called"]}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Sort the tests by what they call; the others stay in the order in which they share fixtures."""

        def rank(item: pytest.Item) -> tuple[int, float]:
            seconds = self.reach[item.nodeid]["seconds"] if item.nodeid in self.reach else 0.0
            if item.nodeid in self.first:
                return 0, seconds
            return (1, seconds) if item.nodeid in self.near else (2, 0.0)

        items.sort(key=rank)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Let a test that does not end be killed by the system."""
        usual = self.reach[item.nodeid]["seconds"] if item.nodeid in self.reach else 0.0
        limit = time.process_time() + EXTRA_SECONDS + TEST_FACTOR * usual
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        return (yield)


def run_tests(request: dict[str, Any], folder: Path) -> tuple[int, Reach]:
    """Run pytest in this process."""
    words = ["-q", "-x", "-p", "no:cacheprovider", "-m", "not exhaustive", *request["tests"]]
    if "reach" in request:
        sys.dont_write_bytecode = True  # a fault may have the size and the second of the one before
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
        return int(pytest.main(words, [Order(request["reach"], request["function"])])), {}
    recorder = Recorder(folder / "src" / "separatrix")
    return int(pytest.main(words, [recorder])), recorder.reach


def answer_request(request: dict[str, Any], folder: Path, log: Path) -> dict[str, Any]:
    """Run the tests in a fork; the answer has the exit code of pytest, which is negative if a signal ended it."""
    result = log.with_suffix(".json")
    child = os.fork()
    if child == 0:
        os.setsid()
        target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for number in (0, 1, 2):
            os.dup2(target, number)
        code = 70
        try:
            code, reach = run_tests(request, folder)
            result.write_text(json.dumps(reach))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    deadline = time.monotonic() + request.get("limit", 3600)
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            break
        time.sleep(0.05)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # processes that the tests left
    code = os.waitstatus_to_exitcode(status)
    answer: dict[str, Any] = {"code": code}
    if "reach" not in request and code == 0:
        answer["reach"] = json.loads(result.read_text())
    return answer


def main() -> None:
    """Answer the requests on standard input."""
    folder, log = Path(sys.argv[1]), Path(sys.argv[2])
    os.chdir(folder)
    for name in LIBRARIES:
        importlib.import_module(name)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer_request(json.loads(line), folder, log)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
