"""Call `separatrix`: in this process, or in a process of its own."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from separatrix.cli import main
from separatrix.core.interrupts import STOPPING

WIDTH = {"COLUMNS": "80"}
"""The terminal that every call is shown on."""


def run(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Start `separatrix` as a user does, in a new process, and wait for it.

    A new process imports everything again, which takes more than a second. Use `invoke` unless the test is
    about the process: signals, exit, imports, closed streams.
    """
    command = [sys.executable, "-c", "from separatrix.cli import main; main()", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env={**os.environ, **WIDTH}, check=False)


def invoke(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run `separatrix` in this process, and return what `run` returns.

    Errors and exit codes are those of a new process. The supervising parent process is not started.
    """
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)]
    place = chdir(cwd) if cwd else nullcontext()
    with redirect_stdout(streams[0]), redirect_stderr(streams[1]), _eighty_columns(), place:
        code = call_main(*words)
    printed = [stream.buffer.getvalue().decode() for stream in streams]  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(words, code, *printed)


def call_main(*words: str) -> int:
    """Run `separatrix` with this process's streams; return its exit code and restore signal handlers."""
    before = sys.argv, {number: signal.getsignal(number) for number in STOPPING}
    sys.argv = ["separatrix", *words]
    try:
        with pytest.raises(SystemExit) as ended:
            main()
    finally:
        sys.argv, handlers = before
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert isinstance(ended.value.code, int)
    return ended.value.code


@contextmanager
def _eighty_columns() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in WIDTH}
    os.environ.update(WIDTH)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
