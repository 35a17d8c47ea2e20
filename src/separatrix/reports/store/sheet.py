"""The cells of a report: what is stored, and what is read from it without trusting it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import polars as pl
from sqlalchemy import func, select

from separatrix.maps.axes import FARTHEST
from separatrix.parameters import UsageError, parse_exact
from separatrix.reports.figures._base import LOOKS
from separatrix.store import Store, Sweep, frame
from separatrix.store.schema import sweep_cells

WHOLE = "all cells"
"""The part of cells that belong to no sweep."""
KEPT = ("construction", "mechanism", "status", "message", "engine", "evidence", "margin", "seconds")
SAMPLING = ("asked", "draws", "seed", "confidence", "dtype", "host", "versions", "id", "parameters")


@dataclass(frozen=True)
class Sheet:
    """The cells of a sweep, or of a whole store."""

    store: str
    """Where it is, as `--store` reads it."""
    sweep: Sweep | None
    table: pl.DataFrame
    """As `separatrix results` gives it."""
    cells: pl.DataFrame
    """The same rows for drawing: P and its interval are finite or null; `kind` says how P is known, and
    `word` the verdict; a parameter n is `is:n` as text, and `at:n` as a float where that can be drawn."""
    names: tuple[str, ...]
    """Of the parameters."""
    unfinished: int

    @property
    def distinct(self) -> pl.DataFrame:
        """Every cell once, though it stands in several parts."""
        return self.cells.unique("id", keep="first", maintain_order=True)

    @property
    def title(self) -> str:
        """A sweep by its name and number."""
        return (
            "All stored cells" if self.sweep is None else f"Sweep {self.sweep.name}, number {self.sweep.id}"
        )


def read_sheet(store: Store, sweep: int | None) -> Sheet:
    """The cells of a sweep; of the newest where none is named; of the store where there are no sweeps."""
    known = store.sweeps()
    chosen = next((each for each in reversed(known) if sweep in (None, each.id)), None)
    if chosen is None and sweep is not None:
        raise UsageError(f"there is no sweep {sweep} in {store.where}")
    table = _sorted(frame(store, sweep=None if chosen is None else chosen.id))
    if chosen is None and table.is_empty():
        raise UsageError(f"the store {store.where} holds no cells; fill it with: separatrix sweep plan.toml")
    spelled = [decoded(text) for text in table["parameters"]]
    names = tuple(dict.fromkeys(name for each in spelled for name in each))
    unfinished = 0 if chosen is None else _planned(store, chosen.id) - table["id"].n_unique()
    return Sheet(store.where, chosen, table, _cells(table, spelled, names), names, unfinished)


def _sorted(table: pl.DataFrame) -> pl.DataFrame:
    """In an order that a reader expects, and that is the same every time."""
    order = {name: place for place, name in enumerate(LOOKS)}
    known = pl.col("mechanism").replace_strict(order, default=len(order), return_dtype=pl.Int64)
    names = [name for name in ("part", "construction") if name in table.columns]
    last = table.columns[: table.columns.index("verdict")]
    return table.sort(*names, known, "mechanism", *last, "asked", "seed", "id", nulls_last=True)


def _planned(store: Store, sweep: int) -> int:
    asked = select(func.count(func.distinct(sweep_cells.c.cell))).where(sweep_cells.c.sweep == sweep)
    return int(store.select(asked)[0][0])


def decoded(text: str) -> dict[str, str]:
    """Parameters by name, whatever stands there as text."""
    found = json.loads(text)
    if not isinstance(found, Mapping):
        return {}
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in found.items()}


def _cells(table: pl.DataFrame, spelled: Sequence[Mapping[str, str]], names: Sequence[str]) -> pl.DataFrame:
    points = [json.dumps(each, sort_keys=True, ensure_ascii=False) for each in spelled]
    part = pl.col("part") if "part" in table.columns else pl.lit(WHOLE)
    done = pl.col("status") == "done"
    p, low, high = (_finite(name) for name in ("distinguish", "low", "high"))
    cells = table.select(
        part.fill_null("").alias("part"),
        *(pl.col(name) for name in (*KEPT, *SAMPLING)),
        p=pl.when(done).then(p),
        low=pl.when(done).then(pl.coalesce(low, p)),
        high=pl.when(done).then(pl.coalesce(high, p)),
        word=pl.when(done).then("verdict").fill_null("none"),
        point=pl.Series(points, dtype=pl.String),
    ).with_columns(
        margin=pl.when(done).then(_finite("margin")),
        seconds=_finite("seconds").fill_null(0.0),
        kind=pl.when(pl.col("p").is_null())
        .then(pl.lit("none"))
        .when(pl.col("low") < pl.col("high"))
        .then(pl.lit("sampled"))
        .when(pl.col("engine") == "certified")
        .then(pl.lit("certified"))
        .otherwise(pl.lit("exact")),
    )
    for name in names:
        texts = [each.get(name) for each in spelled]
        numbers = {text: _number(text) for text in set(texts)}
        cells = cells.with_columns(
            pl.Series(f"is:{name}", texts, dtype=pl.String),
            pl.Series(f"at:{name}", [numbers[text] for text in texts], dtype=pl.Float64),
        )
    return cells


def _finite(name: str) -> Any:
    return pl.when(pl.col(name).is_finite()).then(name)


def _number(text: str | None) -> float | None:
    """The float nearest to what a text spells, if it is a number that pictures reach."""
    try:
        found = parse_exact(text)
    except UsageError:
        return None
    reached = found == 0 or Fraction(1, FARTHEST) <= abs(found) <= FARTHEST
    return float(found) if reached else None
