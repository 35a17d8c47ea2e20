"""The cells of a report: what is stored, and what is read from it without trusting it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import polars as pl
from sqlalchemy import func, select

from separatrix.core.numbers import parse_exact
from separatrix.core.numbers.printable import SUSPECT, visible
from separatrix.core.parameters import UsageError
from separatrix.core.parameters.ranges import FARTHEST
from separatrix.pages.drawing import LOOKS
from separatrix.sweeps.store import Environment, Filter, Selection, Store, StoreError, Sweep, select_cells
from separatrix.sweeps.store.frame import require_known
from separatrix.sweeps.store.schema import cells as stored_cells
from separatrix.sweeps.store.schema import members
from separatrix.sweeps.store.sweep_list import list_sweeps

WHOLE = "all cells"
"""The part of cells that belong to no sweep."""
KEPT = ("construction", "mechanism", "status", "message", "engine", "margin", "seconds")
SAMPLING = ("asked", "draws", "seed", "dtype", "host")


class NoSuchCells(UsageError):
    """No cell meets the conditions."""


@dataclass(frozen=True)
class StoredCells:
    """The cells of a sweep, or of a whole store."""

    store: str
    """Where the store is, as `--store` reads it."""
    sweep: Sweep | None
    cells: pl.DataFrame
    """Its rows for drawing: P and its interval are finite or null; `kind` says how P is known, and
    `word` the verdict; a parameter n is `is:n` as text, and `at:n`, unless it has one value in all cells,
    as a float where that can be drawn."""
    names: tuple[str, ...]
    """The names of the parameters."""
    unfinished: int
    """Cells of the sweep that are not stored yet, of whatever kind of work."""
    versions: tuple[str, ...]
    """The versions of Python and the packages, as JSON, wherever cells were computed."""

    @cached_property
    def distinct(self) -> pl.DataFrame:
        """Every cell once, though it stands in several parts."""
        first = self.cells["id"].is_first_distinct()
        return self.cells if first.all() else self.cells.filter(first)

    @property
    def title(self) -> str:
        """A sweep by its name and number."""
        return (
            "All stored cells" if self.sweep is None else f"Sweep {self.sweep.name}, number {self.sweep.id}"
        )


@contextmanager
def open_cells(
    store: Store, sweep: int | None, asked: Filter | None = None
) -> Iterator[tuple[StoredCells, Selection]]:
    """The cells of a sweep; of the newest where none is named; of the store where there are no sweeps.

    Where conditions are `asked`, only cells that meet them; `NoSuchCells` where none does. The
    selection gives the same cells as `separatrix results` does, chunk by chunk.
    """
    known, damage = list_sweeps(store)
    chosen = next((each for each in reversed(known) if sweep in (None, each.id)), None)
    if chosen is None and sweep is not None:
        raise UsageError(f"there is no sweep {sweep} in {store.location}")
    with select_cells(store, asked, None if chosen is None else chosen.id) as found:
        found.damage.altered.update(damage.altered)
        found.damage.lost.update({name: n for name, n in damage.lost.items() if name == "sweeps"})
        if found.count == 0 and found.damage:
            raise StoreError(found.damage.warning)
        if found.count == 0 and asked is not None and asked.conditions:
            require_known(store, asked)
            raise NoSuchCells("no stored cell is like that")
        if chosen is None and found.count == 0:
            raise UsageError(
                f"the store {store.location} holds no cells; fill it with: separatrix sweep plan.toml"
            )
        names = tuple(map(visible, found.spreads))
        cells = _sorted(pl.concat(_cells(chunk, found) for chunk in found.frames()))
        unfinished = 0 if chosen is None else _unfinished(store, chosen.id)
        used = (json.dumps(each.versions, sort_keys=True) for each in _used(cells, found))
        versions = tuple(dict.fromkeys(used))
        yield StoredCells(store.location, chosen, cells, names, unfinished, versions), found


def _used(cells: pl.DataFrame, found: Selection) -> list[Environment]:
    """The environments in which the cells were computed."""
    hosts = set(cells["host"].unique().to_list())
    return [place for place in found.environments.values() if visible(place.host) in hosts]


def _sorted(cells: pl.DataFrame) -> pl.DataFrame:
    """Known mechanisms first, as everywhere; else in the order of the selection.

    That has the cells of one mechanism in a row, so that none is moved by itself.
    """
    keys = [pl.col(name) for name in ("part", "construction", "mechanism")]
    first = pl.any_horizontal(key.ne_missing(key.shift()) for key in keys)
    starts = [*cells.select(first.arg_true()).to_series(), cells.height]
    order = {name: place for place, name in enumerate(LOOKS)}
    runs = [
        (*cells.select(keys).row(start), cells.slice(start, end - start)) for start, end in pairwise(starts)
    ]
    runs.sort(key=lambda run: (run[0], run[1], order.get(run[2], len(order))))
    return pl.concat(run for *_, run in runs) if runs else cells


def _unfinished(store: Store, sweep: int) -> int:
    """How many cells of a sweep are noted and not stored, of whatever kind of work."""
    noted = select(func.count(func.distinct(members.c.cell))).where(members.c.sweep == sweep)
    there = noted.join(stored_cells, stored_cells.c.id == members.c.cell)
    return int(store.select(noted)[0][0]) - int(store.select(there)[0][0])


def decoded(text: str) -> dict[str, str]:
    """Parameters by name, as text in which nothing is hidden."""
    found = json.loads(text)
    return {visible(name): visible(value) for name, value in found.items()}


def _cells(table: pl.DataFrame, found: Selection) -> pl.DataFrame:
    """A chunk of cells for drawing; what repeats takes a few bytes a cell."""
    spelled = _spelled(table["parameters"], list(found.spreads))
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
        point=_points(spelled, table.height),
    ).with_columns(
        margin=pl.when(done).then(_finite("margin")),
        seconds=_finite("seconds").fill_null(0.0),
        kind=pl.when(pl.col("p").is_null())
        .then(pl.lit("none"))
        .when(pl.col("low") < pl.col("high"))
        .then(pl.lit("sampled"))
        .when(pl.col("engine") == "certified")
        .then(pl.lit("certified"))
        .otherwise(pl.lit("closed")),
    )
    columns = [_repeated(cell) if cell.dtype == pl.String else cell for cell in cells]
    for texts, (name, spread) in zip(map(_visible, spelled), found.spreads.items(), strict=True):
        columns.append(texts.cast(pl.Categorical).alias(f"is:{visible(name)}"))
        if spread.is_varied or spread.count < found.count:
            numbers = {text: _number(text) for text in texts.unique()}
            placed = texts.replace_strict(numbers, return_dtype=pl.Float64)
            columns.append(placed.alias(f"at:{visible(name)}"))
    return pl.DataFrame(columns)


def _spelled(parameters: pl.Series, names: Sequence[str]) -> pl.DataFrame:
    """A column of text for each parameter, in their order; nothing where a cell does not have it."""
    if not names:
        return pl.DataFrame()
    found = parameters.str.json_decode(pl.Struct(dict.fromkeys(names, pl.String))).struct.unnest()
    found.columns = [str(place) for place in range(len(names))]
    return found


def _points(spelled: pl.DataFrame, height: int) -> pl.Series:
    """A number for each cell, the same where all parameters are."""
    if not spelled.width:
        return pl.zeros(height, dtype=pl.UInt64, eager=True)
    texts = spelled.select(pl.struct(pl.all()).struct.json_encode()).to_series()
    return pl.Series([_digest(text) for text in texts], dtype=pl.UInt64)


def _repeated(column: pl.Series) -> pl.Series:
    """Texts that stand in many cells, kept once each."""
    return _visible(column).cast(pl.Categorical)


def _visible(column: pl.Series) -> pl.Series:
    """Texts in which nothing is hidden."""
    if not column.str.contains(SUSPECT).any():
        return column
    known = {text: None if text is None else visible(text) for text in column.unique()}
    return pl.Series(column.name, [known[text] for text in column], dtype=pl.String)


def _digest(text: str) -> int:
    """A number that two texts share only by a chance of one in 2**64."""
    return int.from_bytes(hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest(), "big")


def _finite(name: str) -> Any:
    return pl.when(pl.col(name).is_finite()).then(name)


@lru_cache(maxsize=50_000)
def _number(text: str | None) -> float | None:
    """The float nearest to what a text spells, if it is a number that pictures reach."""
    try:
        found = parse_exact(text)
    except UsageError:
        return None
    reached = found == 0 or Fraction(1, FARTHEST) <= abs(found) <= FARTHEST
    return float(found) if reached else None
