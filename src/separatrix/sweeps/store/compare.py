"""What changed from one sweep to another: the same questions, and whether they have the same answers."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from separatrix.core.parameters import UsageError
from separatrix.sweeps.store.damage import Damage
from separatrix.sweeps.store.selection import selected
from separatrix.sweeps.store.store import Store

if TYPE_CHECKING:
    import polars as pl

QUESTION = (
    "construction",
    "mechanism",
    "parameters",
    "asked",
    "delta",
    "draws",
    "seed",
    "confidence",
    "dtype",
    "until_decided",
)
"""Cells that agree in all of these ask the same."""
CLOSE = 1e-12
"""Exact probabilities that differ by no more are the same: engines round."""
MOST_CHANGES = 100


@dataclass(frozen=True)
class SweepAnswer:
    """What one sweep says."""

    word: str
    """The verdict; how the cell ended where it has none."""
    distinguish: float | None
    low: float | None
    high: float | None
    """Equal to `low` where P is exact."""
    engine: str | None


@dataclass(frozen=True)
class Change:
    """One question with two answers."""

    construction: str
    mechanism: str
    parameters: Mapping[str, str]
    how: Mapping[str, Any]
    """The engine asked for, delta, and how it was to be sampled."""
    one: SweepAnswer
    other: SweepAnswer
    other_verdict: bool
    other_probability: bool

    @property
    def asked(self) -> dict[str, str]:
        """Parameters and how, as text."""
        return {name: str(value) for name, value in (*self.parameters.items(), *self.how.items())}


@dataclass(frozen=True)
class Comparison:
    """How many cells agree; a cell can have another verdict and another P at once."""

    same: int
    other_verdict: int
    other_probability: int
    """Exact against exact by more than 1e-12; where one is sampled, their intervals do not overlap."""
    changed: int
    """Another verdict, another P, or both."""
    only_one: int
    only_other: int
    largest: tuple[Change, ...]
    """At most a hundred, the largest difference of P first; those without a P in one sweep last."""

    @property
    def identical(self) -> bool:
        """Whether both have the same cells with the same answers."""
        return self.changed == self.only_one == self.only_other == 0

    @property
    def common(self) -> dict[str, str]:
        """What all of the largest changes ask alike; only the rest tells them apart."""
        asked = [change.asked for change in self.largest]
        first = asked[0] if len(asked) > 1 else {}
        return {name: value for name, value in first.items() if all(x.get(name) == value for x in asked)}

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {"identical": self.identical, **asdict(self)}


@dataclass(frozen=True)
class ComparedSweeps:
    """Two sweeps side by side."""

    found: Comparison
    names: tuple[str, str]
    """`sweep 1`, with its store where they are in two."""
    damages: tuple[Damage, ...]

    def as_json(self) -> dict[str, Any]:
        """What `separatrix compare --json` prints."""
        damaged = [{"store": damage.where, **damage.as_json()} for damage in self.damages]
        return {
            "one": self.names[0],
            "other": self.names[1],
            **self.found.as_json(),
            "damaged": damaged,
        }


def compare_sweeps(store: Store, one: str, other: str, other_store: Store | None = None) -> ComparedSweeps:
    """What changed from one sweep to another, by their names or numbers; they may be in two stores."""
    second = other_store or store
    numbers = store.sweep_named(one), second.sweep_named(other)
    if other_store is None and numbers[0] == numbers[1]:
        raise UsageError(
            f"{one} and {other} are both sweep {numbers[0]}; give two numbers: separatrix list sweeps"
        )
    with selected(store, None, numbers[0]) as left, selected(second, None, numbers[1]) as right:
        found = compare(left.frames(), right.frames())
    damages = tuple(each.scan.damage for each in (left, right) if each.scan.damage)
    here, there = ("", "") if other_store is None else (f" of {store.where}", f" of {second.where}")
    return ComparedSweeps(found, (f"sweep {one}{here}", f"sweep {other}{there}"), damages)


ANSWER = ("question", "spelled", "distinguish", "low", "high", "engine", "word")
BOTH = """
CREATE TEMP VIEW both AS SELECT one.place, one.question, one.spelled,
  one.distinguish, one.low, one.high, one.engine, one.word,
  other.distinguish AS distinguish_other, other.low AS low_other, other.high AS high_other,
  other.engine AS engine_other, other.word AS word_other,
  abs(one.distinguish - other.distinguish) AS difference,
  one.word <> other.word AS verdict_differs,
  coalesce(CASE WHEN one.low = one.high AND other.low = other.high
    THEN abs(one.distinguish - other.distinguish) > {close}
    ELSE one.low > other.high OR other.low > one.high END, 0) AS probability_differs
FROM one JOIN other ON one.digest = other.digest
"""
COUNTED = "SELECT count(*), total(verdict_differs), total(probability_differs), total({changed}) FROM both"
LARGEST = "SELECT * FROM both WHERE {changed} ORDER BY difference DESC NULLS LAST, place LIMIT {most}"
CHANGED = "(verdict_differs OR probability_differs)"


def compare(one: Iterable[pl.DataFrame], other: Iterable[pl.DataFrame]) -> Comparison:
    """Compare two sets of stored cells, each in chunks; a cell that stands in several parts counts once.

    The answers are laid side by side in a file without a name, so that many take no more memory than few.
    """
    with closing(sqlite3.connect("")) as scratch:
        heights = [_lay(scratch, name, chunks) for name, chunks in (("one", one), ("other", other))]
        scratch.execute(BOTH.format(close=CLOSE))
        both, words, probabilities, changed = scratch.execute(COUNTED.format(changed=CHANGED)).fetchone()
        found = scratch.execute(LARGEST.format(changed=CHANGED, most=MOST_CHANGES))
        names = [column for column, *_ in found.description]
        largest = tuple(_change(dict(zip(names, row, strict=True))) for row in found)
    return Comparison(
        same=both - int(changed),
        other_verdict=int(words),
        other_probability=int(probabilities),
        changed=int(changed),
        only_one=heights[0] - both,
        only_other=heights[1] - both,
        largest=largest,
    )


def _lay(scratch: sqlite3.Connection, name: str, chunks: Iterable[pl.DataFrame]) -> int:
    """Put one side's answers into a table, each question once; how many there are."""
    columns = ", ".join(ANSWER)
    scratch.execute(f"CREATE TABLE {name} (place INTEGER PRIMARY KEY, digest BLOB UNIQUE, {columns})")
    marks = ", ".join("?" * (len(ANSWER) + 1))
    insert = f"INSERT OR IGNORE INTO {name} (digest, {columns}) VALUES ({marks})"
    for chunk in chunks:
        rows = _answers(chunk).select(ANSWER).iter_rows()
        scratch.executemany(insert, ((hashlib.sha256(row[0].encode()).digest(), *row) for row in rows))
    return int(scratch.execute(f"SELECT count(*) FROM {name}").fetchone()[0])


def _answers(cells: pl.DataFrame) -> pl.DataFrame:
    """One row a question; an interval that is missing is taken to be P itself."""
    import polars as pl

    texts = cells["parameters"].to_list()
    ordered = pl.Series("parameters", map(in_order, texts), dtype=pl.String)
    known = pl.col("distinguish").fill_nan(None)
    asked = cells.with_columns(ordered, distinguish=known, spelled=cells["parameters"])
    return asked.select(
        question=pl.struct(QUESTION).struct.json_encode(),
        spelled="spelled",
        distinguish="distinguish",
        low=pl.coalesce(pl.col("low").fill_nan(None), "distinguish"),
        high=pl.coalesce(pl.col("high").fill_nan(None), "distinguish"),
        engine="engine",
        word=pl.when(known.is_not_null()).then("verdict").otherwise("status").fill_null("none"),
    )


def in_order(parameters: str) -> str:
    """Parameters as JSON with their names in order, so that equal ones are spelled the same.

    >>> in_order('{"n": "10", "a1": "1/3"}')
    '{"a1": "1/3", "n": "10"}'
    """
    return json.dumps(json.loads(parameters), sort_keys=True, ensure_ascii=False)


def _change(row: Mapping[str, Any]) -> Change:
    question = json.loads(row["question"])
    how = {name: question[name] for name in QUESTION[3:] if question[name] is not None}
    one, other = (
        SweepAnswer(
            **{name: row[f"{name}{end}"] for name in ("word", "distinguish", "low", "high", "engine")}
        )
        for end in ("", "_other")
    )
    return Change(
        question["construction"],
        question["mechanism"],
        json.loads(row["spelled"]),
        how,
        one,
        other,
        bool(row["verdict_differs"]),
        bool(row["probability_differs"]),
    )
