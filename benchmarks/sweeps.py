"""Sweeps: what they cost beside the computing, what a second worker brings, and a large one as a whole."""

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
    """All lines of this file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield at_most("local sweep, a cell beside its computing", lambda: overhead(folder), "ms", 1.0)
        yield from attempt("two workers against one", lambda: two_workers(folder))
        yield from attempt("100,000 exact cells", lambda: large_sweep(folder))


def overhead(folder: Path) -> float:
    """Milliseconds that a cell takes beside its computing."""
    wall, computed, cells, _ = swept(CHEAP, 2, folder / "cheap.db")
    return 1e3 * (wall - computed / 2) / cells


def two_workers(folder: Path) -> Iterator[Measurement]:
    """What a second worker brings."""
    alone, _, _, mean = swept(DEAR, 1, folder / "one.db")
    both, _, _, _ = swept(DEAR, 2, folder / "two.db")
    require(mean >= 0.05, f"cells of {mean:.3f} s are too short to compare workers")
    yield at_least(f"two workers against one, cells of {1e3 * mean:.0f} ms", alone / both, "x", 1.8)


def large_sweep(folder: Path) -> Iterator[Measurement]:
    """A large sweep as a whole."""
    taken, together = large(folder)
    yield at_most("100,000 exact cells planned, computed, stored", taken, "s", 60.0)
    yield at_most("the same, resident in all its processes together", together / MIB, "MiB", 500.0)


def swept(text: str, workers: int, file: Path) -> tuple[float, float, int, float]:
    """Wall time once workers have begun, computing time of all cells, their number, and mean time."""
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


def large(folder: Path) -> tuple[float, int]:
    """Seconds of the whole command, and bytes of all its processes, what they share counted once."""
    (folder / "large.toml").write_text(LARGE)
    command = [sys.executable, "-c", "from separatrix.cli import main; main()", "sweep", "large.toml"]
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, start_new_session=True)
    together = 0
    while process.poll() is None:
        together = max(together, sum(map(memory, session(process.pid))))
        time.sleep(0.5)
    taken = time.perf_counter() - start
    require(process.returncode == 0, "the large sweep failed")
    require(
        frame(open_store(str(folder / "results.db")))["id"].n_unique() == 100_000, "some cells are missing"
    )
    return taken, together


def session(leader: int) -> list[int]:
    """The processes that a command has started, and itself."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(ProcessLookupError):
            if entry.name.isdigit() and os.getsid(int(entry.name)) == leader:
                found.append(int(entry.name))
    return found


def memory(pid: int) -> int:
    """Resident bytes of a process; of what it has together with others, its share."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    return 0
