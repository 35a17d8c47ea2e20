"""The command line as a user waits for it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from benchmarks._base import Measurement, at_most, require


def measure() -> Iterator[Measurement]:
    """All lines of this file."""
    with tempfile.TemporaryDirectory() as folder:
        taken = seconds_once(folder)
    yield at_most("separatrix reproduce", taken, "s", 90.0)


def separatrix(*words: str) -> None:
    """Run it in a process of its own."""
    command = [sys.executable, "-c", "from separatrix.cli import main; main()", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    require(done.returncode == 0, f"separatrix {' '.join(words)}: {done.stderr}")


def seconds_once(folder: str) -> float:
    """One cold run, as a reader of the README has it."""
    start = time.perf_counter()
    separatrix("reproduce", "--out", folder)
    return time.perf_counter() - start
