"""Wall time of commands."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial

from benchmarks._base import Measurement, at_most, ratio, require

POINT = "d=102 m=12 a0=0.01 b=0.2 c=0.1"
CLOSED_FORM = "numpy, flint, pydantic, typer, rich.table, scipy.special"
AT_ONCE = (
    (f"verdict spike softmax n=1000 a1=1.2 {POINT}", CLOSED_FORM, 2.0),
    (f"boundary spike softmax n=1e6 a1=0.5:1.5 {POINT}", CLOSED_FORM, 2.5),
    (f"map spike softmax a1=0.5:1.5:20 n=1e3:1e18:20:log {POINT}", CLOSED_FORM, 2.5),
    ("list mechanisms", CLOSED_FORM, 2.0),
    ("--help", "typer, rich.table", 2.0),
)
"""Commands, modules that a Python process imports for comparison, and the largest ratio of the times."""


def measure() -> Iterator[Measurement]:
    """Yield the measurements of this file."""
    for command, modules, wanted in AT_ONCE:
        taken = partial(ratio, partial(separatrix, *command.split()), partial(python, f"import {modules}"))
        yield at_most(f"separatrix {command.removesuffix(POINT)}", taken, "times the imports", wanted)
    with tempfile.TemporaryDirectory() as folder:
        yield at_most("separatrix reproduce", lambda: seconds_once(folder), "s", 90.0)


def separatrix(*words: str) -> None:
    """Run a command of Separatrix in a new process."""
    python("from separatrix.cli import main; main()", *words)


def python(program: str, *words: str) -> None:
    """Run a Python program and require that it succeeds."""
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
    require(done.returncode == 0, f"{program} {' '.join(words)}: {done.stderr}")


def seconds_once(folder: str) -> float:
    """Return the time of one run without warm-up, like that of a reader of the README."""
    start = time.perf_counter()
    separatrix("reproduce", "--out", folder)
    return time.perf_counter() - start
