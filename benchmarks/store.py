"""A store of a million cells: time of queries and of additions, and memory of commands."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import event, select

from benchmarks._base import Line, Measurement, at_most, attempt, ratio, require
from separatrix.sweeps.store import CellResult, Environment, Store, open_store, results, schema
from separatrix.sweeps.verdict_cells import DrawSettings, VerdictCell

CELLS = 1_000_000
MAX_SLOWDOWN = 4.0
"""The largest slowdown by the verification of every row and the exact comparison of numbers."""
AT_ONCE, BATCH = 100_000, 2000
FEW, MANY = 3000, 300_000
HERE = Environment("here", {"python": "3.11"})
MECHANISMS = ("softmax", "linear", "power:beta=2", "taylor:order=3", "elu", "relu", "local:window=64", "flat")
FIXED = {"d": "102", "m": "12", "a0": "0.01", "b": "0.2", "c": "0.1", "form": "ones"}
N, A1 = (f"CAST(json_extract(parameters, '$.{name}') AS REAL)" for name in ("n", "a1"))
QUERIES = {
    "mechanism=softmax n=1e5:1.5e5": (51 * 250, f"mechanism = 'softmax' AND {N} BETWEEN 1e5 AND 1.5e5"),
    "verdict=undecided": (CELLS // 100, "verdict = 'undecided'"),
    "a1=0.2:0.203": (4 * 8 * 500, f"{A1} BETWEEN 0.2 AND 0.203"),
    "seed=3": (CELLS // 100, "seed = 3"),
    "n=1e3:5e5 verdict=undecided": (CELLS // 100, f"{N} BETWEEN 1e3 AND 5e5 AND verdict = 'undecided'"),
}
"""Conditions, the number of cells that satisfy them, and the same conditions in SQL."""


def measure() -> Iterator[Line]:
    """Yield the measurements of this file."""
    yield from attempt(f"queries on and additions to {CELLS:,} cells", speed)
    yield from attempt(f"memory of commands over {MANY:,} cells", memory)


def speed() -> Iterator[Measurement]:
    """Time queries on a large store and additions to it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.db"
        store = open_store(f"sqlite:///{path}", create=True)
        fill(store)
        for query, (count, condition) in QUERIES.items():
            slowdown = partial(compare_with_sqlite, store, path, query, count, condition)
            title = f"results {query} of {CELLS:,} cells against plain sqlite3"
            yield at_most(title, slowdown, "times", MAX_SLOWDOWN)
        yield at_most(f"adding a cell to {CELLS:,}", lambda: microseconds_added(store), "µs", 100.0)


def compare_with_sqlite(store: Store, path: Path, query: str, count: int, condition: str) -> float:
    """Return the time of `results` relative to the same query in plain sqlite3, which verifies nothing.

    Both must find `count` cells.
    """
    conditions: dict[str, Any] = dict(word.split("=") for word in query.split())
    with closing(sqlite3.connect(path)) as connection:

        def read_plain() -> int:
            return len(connection.execute(f"SELECT * FROM cells WHERE {condition}").fetchall())

        require(results(store, **conditions).height == read_plain() == count, f"results {query}")
        return ratio(lambda: results(store, **conditions), read_plain, 2)


def memory() -> Iterator[Measurement]:
    """Measure the memory of commands for a large store relative to a small one."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {count: Path(folder) / f"{count}.db" for count in (FEW, MANY)}
        for count, path in paths.items():
            fill(open_store(str(path), create=True), count)
        for words in ("results", "results --csv", "results --json", "results --out results.parquet"):
            title = f"memory of {words} over {MANY:,} cells against {FEW:,}"
            yield at_most(title, partial(growth, words, paths, folder), "times", 1.5)
        for path in paths.values():
            gather(open_store(str(path)))
        for words in ("report", "compare 1 2"):
            title = f"memory of {words} over {MANY:,} cells against {FEW:,}"
            yield at_most(title, partial(growth, words, paths, folder), "times", 2.0)


def growth(words: str, paths: dict[int, Path], folder: str) -> float:
    """Return the peak memory of a command on the large store relative to the small one."""
    few, many = (peak(path, count, words.split(), folder) for count, path in paths.items())
    return many / few


def cells(first: int, last: int) -> Iterator[tuple[str, dict[str, Any], CellResult]]:
    """Yield cells of a grid of mechanisms, n and a1, and beyond its end cells with other values of a1."""
    for number in range(first, last):
        place, mechanism = divmod(number, len(MECHANISMS))
        n, a1 = 1000 * (1 + place % 500), 100 + place // 500
        point = {**FIXED, "n": str(n), "a1": f"0.{a1}"}
        draws = DrawSettings(1000, number % 100, 0.99, "float64", False)
        cell = VerdictCell("spike", MECHANISMS[mechanism], point, "grouped", "0.01", draws, "c0de" * 8)
        chance = number / CELLS
        yield (
            cell.id,
            cell.row(),
            CellResult(
                seconds=0.001,
                finished="2026-01-02T03:04:05+00:00",
                environment=HERE,
                findings={
                    "verdict": "undecided" if number % 100 == 7 else "blind",
                    "engine": "grouped",
                    "evidence": "1000 draws of the reader's signs",
                    "p0": repr(chance / 3),
                    "p1": repr(chance / 2),
                    "q": repr(chance / 7),
                    "distinguish": chance,
                    "low": chance / 2,
                    "high": chance,
                    "fire_d0": chance / 5,
                    "fire_d1": chance / 11,
                    "margin": chance / 13,
                },
            ),
        )


def fill(store: Store, count: int = CELLS) -> None:
    """Add cells as a sweep does, but in large batches and without waiting for the disk."""

    def hurry(connection: Any, _: object) -> None:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -500000")

    event.listen(store.engine, "connect", hurry)
    for first in range(0, count, AT_ONCE):
        store.add(cells(first, min(first + AT_ONCE, count)))
    event.remove(store.engine, "connect", hurry)


def gather(store: Store) -> None:
    """Record two sweeps, each with all cells."""
    ids = [id_ for (id_,) in store.select(select(schema.cells.c.id))]
    for name in ("first", "second"):
        number = store.begin_sweep(name, name, "")
        for first in range(0, len(ids), AT_ONCE):
            store.add_members(number, ((id_, "part") for id_ in ids[first : first + AT_ONCE]))


PROGRAM = """
import atexit, sys
from separatrix.cli import main
most = lambda: next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
atexit.register(lambda: sys.stderr.write("\\n" + most()))
main()
"""
"""Runs `separatrix` and writes its peak memory in kB as the last line of stderr."""


def peak(path: Path, count: int, words: list[str], folder: str) -> float:
    """Return the peak memory of a command in kB, measured in a new process."""
    command = [sys.executable, "-c", PROGRAM, *words, "--store", str(path)]
    with (Path(folder) / "out").open("wb") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, cwd=folder, text=True, check=False)
    # Progress, if the command takes long enough to announce itself, comes before the last line.
    last = (done.stderr.splitlines() or [""])[-1]
    require(done.returncode == 0 and last.isdecimal(), f"{words[0]} of {count:,} cells: {done.stderr}")
    return float(last)


def microseconds_added(store: Store, batches: int = 5) -> float:
    """Return the microseconds per cell of the fastest of a few batches, including the commit."""
    best = float("inf")
    for number in range(batches):
        more = list(cells(CELLS + BATCH * number, CELLS + BATCH * (number + 1)))
        start = time.perf_counter()
        store.add(more)
        best = min(best, time.perf_counter() - start)
    return best / BATCH * 1e6
