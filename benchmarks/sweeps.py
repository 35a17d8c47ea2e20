"""Sweeps: overhead per cell, speed-up by a second worker, and time and memory of a large sweep."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from benchmarks._base import Line, Measurement, at_least, at_most, attempt, require
from separatrix.sweeps.executors import LocalExecutor
from separatrix.sweeps.plan import read_plan
from separatrix.sweeps.run import run
from separatrix.sweeps.store import frame, open_store
from separatrix.sweeps.work import WorkBatch

MIB = 2**20
HEAD = """
construction = "spike"
mechanisms = ["softmax", "linear"]
[parameters]
d = 102
m = 12
a0 = 0.01
a1 = 1.2
b = 0.2
c = 0.1
"""
CHEAP = (
    HEAD
    + """
[[sweep]]
engine = "closed"
parameters = { a1 = "0.5:1.5:100", n = "1e3:1e18:100:log" }
"""
)
DEAR = (
    HEAD
    + """
[[sweep]]
engine = "dense"
seeds = "0:39"
draws = 400
parameters = { n = 1000 }
"""
)
LARGE = (
    HEAD
    + """
[[sweep]]
engine = "closed"
parameters = { a1 = "0.5:1.5:250", n = "1e3:1e18:200:log" }
"""
)


def measure() -> Iterator[Line]:
    """Yield the measurements of this file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield at_most("local sweep, overhead per cell", lambda: overhead(folder), "ms", 1.0)
        yield from attempt("two workers against one", lambda: two_workers(folder))
        yield from attempt("100,000 exact cells", lambda: large_sweep(folder))


def overhead(folder: Path) -> float:
    """Return the milliseconds per cell in addition to its computation."""
    wall, computed, cells, _ = time_sweep(CHEAP, 2, folder / "cheap.db")
    return 1e3 * (wall - computed / 2) / cells


def two_workers(folder: Path) -> Iterator[Measurement]:
    """Measure the speed-up by a second worker."""
    alone, _, _, mean = time_sweep(DEAR, 1, folder / "one.db")
    both, _, _, _ = time_sweep(DEAR, 2, folder / "two.db")
    require(mean >= 0.05, f"cells of {mean:.3f} s are too short to compare workers")
    yield at_least(f"two workers against one, cells of {1e3 * mean:.0f} ms", alone / both, "x", 1.8)


def large_sweep(folder: Path) -> Iterator[Measurement]:
    """Measure the time and memory of a large sweep."""
    taken, peak = time_large_sweep(folder)
    yield at_most("100,000 exact cells planned, computed, stored", taken, "s", 60.0)
    yield at_most("100,000 exact cells, resident memory of all processes", peak / MIB, "MiB", 500.0)


def time_sweep(text: str, workers: int, file: Path) -> tuple[float, float, int, float]:
    """Return the wall time after the workers have started; total time, number and mean time of the cells."""
    plan, store, executor = read_plan(text), open_store(str(file), create=True), LocalExecutor(workers)
    try:
        first = next(iter(plan))[1]
        for _ in range(2 * workers):
            executor.submit(WorkBatch((first,)))
        while executor.is_busy:
            executor.wait(1.0)
        start = time.perf_counter()
        done = run(plan, store, executor)
        wall = time.perf_counter() - start
    finally:
        executor.close()
    seconds = frame(store)["seconds"]
    require(done.done == plan.count == len(seconds), "some cells are missing")
    return wall, float(seconds.sum()), len(seconds), float(seconds.sum()) / len(seconds)


def time_large_sweep(folder: Path) -> tuple[float, int]:
    """Return the seconds of the command and the peak bytes of its processes, shared memory counted once."""
    (folder / "large.toml").write_text(LARGE)
    command = [sys.executable, "-c", "from separatrix.cli import main; main()", "sweep", "large.toml"]
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, start_new_session=True)
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(map(memory, session_processes(process.pid))))
        time.sleep(0.5)
    taken = time.perf_counter() - start
    require(process.returncode == 0, "the large sweep failed")
    require(frame(open_store(str(folder / "results.db")))["id"].n_unique() == 100_000, "some cells are missing")
    return taken, peak


def session_processes(leader: int) -> list[int]:
    """Return the process identifiers of a session: a command and the processes that it started."""
    processes = []
    for entry in Path("/proc").iterdir():
        with suppress(ProcessLookupError):
            if entry.name.isdigit() and os.getsid(int(entry.name)) == leader:
                processes.append(int(entry.name))
    return processes


def memory(pid: int) -> int:
    """Return the resident bytes of a process, with its proportional share of shared memory."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    return 0
