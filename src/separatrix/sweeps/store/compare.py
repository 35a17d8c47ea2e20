"""Comparison of two sweeps: the same requests, and whether they have the same answers."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from separatrix.core.documents import Document, Inlined, shown
from separatrix.core.lazy import pl
from separatrix.core.parameters import UsageError
from separatrix.sweeps.store.errors import Damage
from separatrix.sweeps.store.selection import REQUESTED, select_cells
from separatrix.sweeps.store.store import Store
from separatrix.sweeps.store.sweep_list import find_sweep

REQUEST = ("construction", "mechanism", "parameters", *REQUESTED)
"""Cells that agree in all of these are the same request."""
TOLERANCE = 1e-12
"""Exact probabilities that differ by no more are the same: engines round."""
MAX_CHANGES = 100


@dataclass(frozen=True)
class SweepAnswer(Document):
    """The answer of one sweep."""

    word: str
    """The verdict; the status of the cell if it has none."""
    distinguish: float | None
    low: float | None
    high: float | None
    """Equal to `low` if P is exact."""
    engine: str | None


@dataclass(frozen=True)
class Change(Document):
    """One request with two different answers."""

    construction: str
    mechanism: str
    parameters: Mapping[str, str]
    how: Mapping[str, str | float]
    """The requested engine, delta, and the settings for sampling."""
    one: SweepAnswer
    other: SweepAnswer
    other_verdict: bool
    other_probability: bool

    @property
    def request(self) -> dict[str, str]:
        """Parameters and settings as text."""
        return {name: str(value) for name, value in (*self.parameters.items(), *self.how.items())}


@dataclass(frozen=True)
class Comparison(Document):
    """The number of cells that agree; a cell can differ both in its verdict and in P."""

    same: int
    other_verdict: int
    other_probability: int
    """Two exact P differ by more than 1e-12; if one is sampled, their intervals do not overlap."""
    changed: int
    """Cells that differ in the verdict, in P, or in both."""
    only_one: int
    only_other: int
    largest: tuple[Change, ...]
    """At most a hundred, the largest difference of P first; those without a P in one sweep last."""

    @shown
    def identical(self) -> bool:
        """Whether both have the same cells with the same answers."""
        return self.changed == self.only_one == self.only_other == 0

    def describe_counts(self, one: str, other: str) -> list[tuple[str, str]]:
        """Return the counts in words, with the names of the sweeps."""
        counts = {
            "the same answer": self.same,
            "another verdict": self.other_verdict,
            "another P": self.other_probability,
            f"only in {one}": self.only_one,
            f"only in {other}": self.only_other,
        }
        return [(term, f"{count:,}") for term, count in counts.items()]

    @property
    def common(self) -> dict[str, str]:
        """The settings that all of the largest changes share."""
        requests = [change.request for change in self.largest]
        first = requests[0] if len(requests) > 1 else {}
        return {name: value for name, value in first.items() if all(x.get(name) == value for x in requests)}


@dataclass(frozen=True)
class StoreDamage(Document):
    """The damage of one store."""

    store: str
    damage: Inlined[Damage]


@dataclass(frozen=True)
class ComparedSweeps(Document):
    """Two sweeps, how they differ, and the damage of their stores."""

    one: str
    """`sweep 1`, with its store if there are two."""
    other: str
    comparison: Inlined[Comparison]
    damaged: tuple[StoreDamage, ...]


@dataclass(frozen=True)
class StoreReport(Document):
    """The files of a report about a sweep, and its content in numbers."""

    page: Path
    tables: tuple[Path, ...]
    sweep: int | None
    name: str | None
    cells: dict[str, int]
    """The number of cells by status."""
    comparison: Comparison | None
    damaged: Damage | None
    """The rows of the store that were left out."""


def compare_sweeps(store: Store, one: str, other: str, other_store: Store | None = None) -> ComparedSweeps:
    """Compare two sweeps by their names or numbers; they may be in two stores."""
    second = other_store or store
    numbers = find_sweep(store, one), find_sweep(second, other)
    if other_store is None and numbers[0] == numbers[1]:
        raise UsageError(f"{one} and {other} are both sweep {numbers[0]}; give two numbers: separatrix list sweeps")
    with select_cells(store, None, numbers[0]) as first_cells, select_cells(second, None, numbers[1]) as second_cells:
        comparison = compare(first_cells.frames(), second_cells.frames())
    damages = (first_cells.damage, second_cells.damage)
    names = (f"sweep {one}", f"sweep {other}")
    if other_store is not None:
        names = (f"{names[0]} of {store.location}", f"{names[1]} of {second.location}")
    store_damages = tuple(StoreDamage(damage.store, damage) for damage in damages if damage)
    return ComparedSweeps(*names, comparison, store_damages)


BOTH = """
CREATE TEMP VIEW both AS SELECT one.position, one.request,
  one.distinguish, one.low, one.high, one.engine, one.word,
  other.distinguish AS distinguish_other, other.low AS low_other, other.high AS high_other,
  other.engine AS engine_other, other.word AS word_other,
  abs(one.distinguish - other.distinguish) AS difference,
  one.word <> other.word AS verdict_differs,
  coalesce(CASE WHEN one.low = one.high AND other.low = other.high
    THEN abs(one.distinguish - other.distinguish) > {tolerance}
    ELSE one.low > other.high OR other.low > one.high END, 0) AS probability_differs
FROM one JOIN other ON one.digest = other.digest
"""
CHANGED = "(verdict_differs OR probability_differs)"
COUNTS = f"SELECT count(*), total(verdict_differs), total(probability_differs), total({CHANGED}) FROM both"
LARGEST = f"""
SELECT * FROM both WHERE {CHANGED} ORDER BY difference DESC NULLS LAST, position LIMIT {MAX_CHANGES}
"""


def compare(one: Iterable[pl.DataFrame], other: Iterable[pl.DataFrame]) -> Comparison:
    """Compare two sets of stored cells, each in chunks; a cell in several parts counts once.

    The answers are joined in a temporary file, so that many need no more memory than few.
    """
    with closing(sqlite3.connect("")) as scratch:
        scratch.row_factory = sqlite3.Row
        first_count, second_count = _fill(scratch, "one", one), _fill(scratch, "other", other)
        scratch.execute(BOTH.format(tolerance=TOLERANCE))
        common_count, verdicts, probabilities, changed_count = map(int, scratch.execute(COUNTS).fetchone())
        largest = tuple(map(_make_change, scratch.execute(LARGEST)))
    return Comparison(
        same=common_count - changed_count,
        other_verdict=verdicts,
        other_probability=probabilities,
        changed=changed_count,
        only_one=first_count - common_count,
        only_other=second_count - common_count,
        largest=largest,
    )


def _fill(scratch: sqlite3.Connection, table: str, chunks: Iterable[pl.DataFrame]) -> int:
    """Write the answers of one side into a table, each request once; return their number."""
    scratch.execute(
        f"CREATE TABLE {table} (position INTEGER PRIMARY KEY, digest BLOB UNIQUE, request, distinguish, low, "
        "high, engine, word)"
    )
    insert = f"INSERT OR IGNORE INTO {table} VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)"
    for chunk in chunks:
        scratch.executemany(insert, map(_make_answer, chunk.iter_rows(named=True)))
    return int(scratch.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def _make_answer(row: Mapping[str, Any]) -> tuple[Any, ...]:
    request = {**{name: row[name] for name in REQUEST}, "parameters": json.loads(row["parameters"])}
    digest = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).digest()
    # SQLite stores NaN as null. A missing interval is P itself.
    p, low, high = (None if row[name] != row[name] else row[name] for name in ("distinguish", "low", "high"))
    word = (row["status"] if p is None else row["verdict"]) or "none"
    interval = (p if low is None else low, p if high is None else high)
    return digest, json.dumps(request), p, *interval, row["engine"], word


def _make_change(row: sqlite3.Row) -> Change:
    request = json.loads(row["request"])
    answers = [
        SweepAnswer(*(row[f"{name}{end}"] for name in ("word", "distinguish", "low", "high", "engine")))
        for end in ("", "_other")
    ]
    return Change(
        construction=request["construction"],
        mechanism=request["mechanism"],
        parameters=request["parameters"],
        how={name: request[name] for name in REQUESTED if request[name] is not None},
        one=answers[0],
        other=answers[1],
        other_verdict=bool(row["verdict_differs"]),
        other_probability=bool(row["probability_differs"]),
    )
