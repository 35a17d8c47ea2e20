"""The cells of a report: what is stored, and what is read from it without trusting it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import polars as pl
from sqlalchemy import func, select

from separatrix.parameters import UsageError, parse_exact
from separatrix.parameters.printable import visible
from separatrix.parameters.ranges import FARTHEST
from separatrix.reports.drawing import LOOKS
from separatrix.store import Selection, Store, StoreError, Sweep, selected
from separatrix.store.schema import sweep_cells
from separatrix.store.sweep_list import list_sweeps

WHOLE = "all cells"
"""The part of cells that belong to no sweep."""
KEPT = ("construction", "mechanism", "status", "message", "engine", "margin", "seconds")
SAMPLING = ("asked", "draws", "seed", "confidence", "dtype", "host")


@dataclass(frozen=True)
class Sheet:
    """The cells of a sweep, or of a whole store."""

    store: str
    """Where it is, as `--store` reads it."""
    sweep: Sweep | None
    cells: pl.DataFrame
    """Its rows for drawing: P and its interval are finite or null; `kind` says how P is known, and
    `word` the verdict; a parameter n is `is:n` as text, and `at:n` as a float where that can be drawn."""
    names: tuple[str, ...]
    """Of the parameters."""
    unfinished: int
    versions: tuple[str, ...]
    """Of Python and the packages, as JSON, wherever cells were computed."""

    @cached_property
    def distinct(self) -> pl.DataFrame:
        """Every cell once, though it stands in several parts."""
        return self.cells.unique("id", keep="first", maintain_order=True)

    @property
    def title(self) -> str:
        """A sweep by its name and number."""
        return (
            "All stored cells" if self.sweep is None else f"Sweep {self.sweep.name}, number {self.sweep.id}"
        )


@contextmanager
def opened_sheet(store: Store, sweep: int | None) -> Iterator[tuple[Sheet, Selection]]:
    """The cells of a sweep; of the newest where none is named; of the store where there are no sweeps.

    The selection gives the same cells as `separatrix results` does, chunk by chunk.
    """
    known, damage = list_sweeps(store)
    chosen = next((each for each in reversed(known) if sweep in (None, each.id)), None)
    if chosen is None and sweep is not None:
        raise UsageError(f"there is no sweep {sweep} in {store.where}")
    with selected(store, None, None if chosen is None else chosen.id) as found:
        found.scan.damage.altered.update(damage.altered)
        found.scan.damage.lost["sweeps"] += damage.lost["sweeps"]
        if found.count == 0 and found.scan.damage:
            raise StoreError(found.scan.damage.warning)
        if chosen is None and found.count == 0:
            raise UsageError(
                f"the store {store.where} holds no cells; fill it with: separatrix sweep plan.toml"
            )
        names = tuple(map(visible, found.spreads))
        cells = _sorted(pl.concat(_cells(chunk, names) for chunk in found.frames()))
        unfinished = 0 if chosen is None else _planned(store, chosen.id) - cells["id"].n_unique()
        versions = tuple(dict.fromkeys(json.dumps(each, sort_keys=True) for _, each in _used(cells, found)))
        yield Sheet(store.where, chosen, cells, names, unfinished, versions), found


def read_sheet(store: Store, sweep: int | None) -> Sheet:
    """The same, closed again."""
    with opened_sheet(store, sweep) as (sheet, _):
        return sheet


def _used(cells: pl.DataFrame, found: Selection) -> list[tuple[str, dict[str, str]]]:
    """The environments in which the cells were computed."""
    hosts = set(cells["host"].unique().to_list())
    return [place for place in found.environments.values() if visible(place[0]) in hosts]


def _sorted(cells: pl.DataFrame) -> pl.DataFrame:
    """Known mechanisms first, as everywhere; else in the order of the selection."""
    order = {name: place for place, name in enumerate(LOOKS)}
    names = cells["mechanism"].unique().to_list()
    known = pl.DataFrame({"mechanism": names, "looks": [order.get(name, len(order)) for name in names]})
    known = known.with_columns(pl.col("mechanism").cast(cells.schema["mechanism"]))
    return (
        cells.join(known, on="mechanism", how="left", maintain_order="left")
        .sort(
            pl.col("part").cast(pl.String),
            pl.col("construction").cast(pl.String),
            "looks",
            maintain_order=True,
        )
        .drop("looks")
    )


def _planned(store: Store, sweep: int) -> int:
    asked = select(func.count(func.distinct(sweep_cells.c.cell))).where(sweep_cells.c.sweep == sweep)
    return int(store.select(asked)[0][0])


def decoded(text: str) -> dict[str, str]:
    """Parameters by name, as text in which nothing is hidden."""
    found = json.loads(text)
    return {visible(name): visible(value) for name, value in found.items()}


def _cells(table: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """A chunk of cells for drawing; what repeats takes a few bytes a cell."""
    spelled = [decoded(text) for text in table["parameters"]]
    points = [_digest(json.dumps(each, sort_keys=True)) for each in spelled]
    part = pl.col("part") if "part" in table.columns else pl.lit(WHOLE)
    done = pl.col("status") == "done"
    p, low, high = (_finite(name) for name in ("distinguish", "low", "high"))
    example = pl.when(~done).then("parameters")
    cells = table.select(
        part.fill_null("").alias("part"),
        *(pl.col(name) for name in (*KEPT, *SAMPLING)),
        parameters=example,
        id=pl.Series([_digest(each) for each in table["id"]], dtype=pl.UInt64),
        p=pl.when(done).then(p),
        low=pl.when(done).then(pl.coalesce(low, p)),
        high=pl.when(done).then(pl.coalesce(high, p)),
        word=pl.when(done).then("verdict").fill_null("none"),
        point=pl.Series(points, dtype=pl.UInt64),
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
    columns = [
        _repeated(cells[name]) if cells.schema[name] == pl.String else cells[name] for name in cells.columns
    ]
    for name in names:
        texts = [each.get(name) for each in spelled]
        numbers = {text: _number(text) for text in set(texts)}
        columns.append(_repeated(pl.Series(f"is:{name}", texts, dtype=pl.String)))
        columns.append(pl.Series(f"at:{name}", [numbers[text] for text in texts], dtype=pl.Float64))
    return pl.DataFrame(columns)


def _repeated(column: pl.Series) -> pl.Series:
    """Texts that stand in many cells, kept once each, with nothing hidden in them."""
    known = {text: None if text is None else visible(text) for text in column.unique()}
    clean = pl.Series(column.name, [known[text] for text in column], dtype=pl.String)
    return clean.cast(pl.Categorical)


def _digest(text: str) -> int:
    """A number that two texts share only by a chance of one in 2**64."""
    return int.from_bytes(hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest(), "big")


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
