"""The cells of a report, read from a store whose texts are not trusted."""

from __future__ import annotations

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
from separatrix.pages.looks import LOOKS
from separatrix.sweeps.store import Filter, Selection, Store, StoreError, Sweep, select_cells
from separatrix.sweeps.store.frame import require_known
from separatrix.sweeps.store.schema import cells as stored_cells
from separatrix.sweeps.store.schema import members
from separatrix.sweeps.store.sweep_list import list_sweeps

NO_SWEEP = "all cells"
"""The part of cells that belong to no sweep."""
COLUMNS = ("construction", "mechanism", "status", "message", "engine", "margin", "seconds")
SAMPLING = ("asked", "draws", "seed", "dtype", "host")


class NoSuchCells(UsageError):
    """No cell meets the conditions."""


@dataclass(frozen=True)
class StoredCells:
    """The cells of a sweep, or of a whole store."""

    store: str
    """The address of the store, as `--store` takes it."""
    sweep: Sweep | None
    cells: pl.DataFrame
    """One row for each cell and part. P and its interval are finite or null; `kind` is the kind of evidence,
    `word` the verdict. A parameter n is `is:n` as text, and unless it has one value in all cells, `at:n` as a
    float, null where it cannot be drawn."""
    names: tuple[str, ...]
    """The names of the parameters."""
    unfinished: int
    """Cells of the sweep, of any kind of work, that are not stored yet."""
    versions: tuple[str, ...]
    """The versions of Python and the packages with which cells were computed, as JSON."""

    @cached_property
    def distinct(self) -> pl.DataFrame:
        """Every cell once, even if several parts have it."""
        is_first = self.cells["id"].is_first_distinct()
        return self.cells if is_first.all() else self.cells.filter(is_first)

    @property
    def title(self) -> str:
        """The name and the number of the sweep."""
        return "All stored cells" if self.sweep is None else f"Sweep {self.sweep.name}, number {self.sweep.id}"


@contextmanager
def open_cells(
    store: Store, sweep: int | None, conditions: Filter | None = None
) -> Iterator[tuple[StoredCells, Selection]]:
    """Open the cells of a sweep; of the newest where none is named; of the store where there are no sweeps.

    With `conditions`, only cells that meet them; `NoSuchCells` where none does. The selection has the same
    cells as `separatrix results`, chunk by chunk.
    """
    sweeps, damage = list_sweeps(store)
    chosen_sweep = next((candidate for candidate in reversed(sweeps) if sweep in (None, candidate.id)), None)
    if chosen_sweep is None and sweep is not None:
        raise UsageError(f"there is no sweep {sweep} in {store.location}")
    with select_cells(store, conditions, None if chosen_sweep is None else chosen_sweep.id) as selection:
        selection.damage.altered.update(damage.altered)
        selection.damage.lost.update({name: n for name, n in damage.lost.items() if name == "sweeps"})
        if selection.count == 0 and selection.damage:
            raise StoreError(selection.damage.warning)
        if selection.count == 0 and conditions is not None and conditions.conditions:
            require_known(store, conditions)
            raise NoSuchCells("no stored cell meets these conditions")
        if chosen_sweep is None and selection.count == 0:
            raise UsageError(f"the store {store.location} holds no cells; fill it with: separatrix sweep plan.toml")
        names = tuple(map(visible, selection.spreads))
        cells = _sort(pl.concat(_read_chunk(chunk, selection) for chunk in selection.frames()))
        unfinished_count = 0 if chosen_sweep is None else _count_unfinished(store, chosen_sweep.id)
        hosts = set(cells["host"].unique().to_list())
        versions = dict.fromkeys(
            json.dumps(environment.versions, sort_keys=True)
            for environment in selection.environments.values()
            if visible(environment.host) in hosts
        )
        yield (StoredCells(store.location, chosen_sweep, cells, names, unfinished_count, tuple(versions)), selection)


def _sort(cells: pl.DataFrame) -> pl.DataFrame:
    """Return the cells by part and construction, those of known mechanisms first.

    The selection has the cells of one mechanism in a row, so that whole slices are moved, not single rows.
    """
    keys = [pl.col(name) for name in ("part", "construction", "mechanism")]
    is_start = pl.any_horizontal(key.ne_missing(key.shift()) for key in keys)
    starts = [*cells.select(is_start.arg_true()).to_series(), cells.height]
    # The mechanisms of the paper come first, in its order.
    order = {name: place for place, name in enumerate(LOOKS)}
    slices = [(*cells.select(keys).row(start), cells.slice(start, end - start)) for start, end in pairwise(starts)]
    slices.sort(key=lambda part: (part[0], part[1], order.get(part[2], len(order))))
    return pl.concat(rows for *_, rows in slices) if slices else cells


def _count_unfinished(store: Store, sweep: int) -> int:
    """Return the number of cells of a sweep that are not stored."""
    planned_count = select(func.count(func.distinct(members.c.cell))).where(members.c.sweep == sweep)
    present_count = planned_count.join(stored_cells, stored_cells.c.id == members.c.cell)
    return int(store.select(planned_count)[0][0]) - int(store.select(present_count)[0][0])


def decode_parameters(text: str) -> dict[str, str]:
    """Return parameters by name, with hidden characters made visible."""
    return {visible(name): visible(value) for name, value in json.loads(text).items()}


def _read_chunk(table: pl.DataFrame, selection: Selection) -> pl.DataFrame:
    """Return a chunk of cells for drawing; texts that repeat are categories, a few bytes a cell."""
    parameters = _parameter_columns(table["parameters"], list(selection.spreads))
    part = pl.col("part") if "part" in table.columns else pl.lit(NO_SWEEP)
    is_done = pl.col("status") == "done"
    p, low, high = (_finite(name) for name in ("distinguish", "low", "high"))
    # Only the table of refused and failed cells shows parameters as text.
    example = pl.when(~is_done).then("parameters")
    cells = table.select(
        part.fill_null("").alias("part"),
        *(pl.col(name) for name in (*COLUMNS, *SAMPLING)),
        parameters=example,
        id=pl.col("id").hash(),
        p=pl.when(is_done).then(p),
        low=pl.when(is_done).then(pl.coalesce(low, p)),
        high=pl.when(is_done).then(pl.coalesce(high, p)),
        word=pl.when(is_done).then("verdict").fill_null("none"),
        # Equal where all parameters are; two points share a hash with a probability of 2**-64.
        point=parameters.hash_rows() if parameters.width else pl.lit(0, pl.UInt64),
    ).with_columns(
        margin=pl.when(is_done).then(_finite("margin")),
        seconds=_finite("seconds").fill_null(0.0),
        kind=pl.when(pl.col("p").is_null())
        .then(pl.lit("none"))
        .when(pl.col("low") < pl.col("high"))
        .then(pl.lit("sampled"))
        .when(pl.col("engine") == "certified")
        .then(pl.lit("certified"))
        .otherwise(pl.lit("closed")),
    )
    columns = [_reveal(column).cast(pl.Categorical) if column.dtype == pl.String else column for column in cells]
    for texts, (name, spread) in zip(map(_reveal, parameters), selection.spreads.items(), strict=True):
        columns.append(texts.cast(pl.Categorical).alias(f"is:{visible(name)}"))
        if spread.is_varied or spread.count < selection.count:
            numbers = {text: _drawable_number(text) for text in texts.unique()}
            columns.append(texts.replace_strict(numbers, return_dtype=pl.Float64).alias(f"at:{visible(name)}"))
    return pl.DataFrame(columns)


def _parameter_columns(parameters: pl.Series, names: Sequence[str]) -> pl.DataFrame:
    """Return a column of text for each parameter, in their order; null where a cell does not have it."""
    if not names:
        return pl.DataFrame()
    columns = parameters.str.json_decode(pl.Struct(dict.fromkeys(names, pl.String))).struct.unnest()
    # Numbers instead of names: polars would read some names of a store as patterns.
    columns.columns = [str(place) for place in range(len(names))]
    return columns


def _reveal(column: pl.Series) -> pl.Series:
    """Return texts with hidden characters made visible."""
    if not column.str.contains(SUSPECT).any():
        return column
    visible_texts = {text: None if text is None else visible(text) for text in column.unique()}
    return pl.Series(column.name, [visible_texts[text] for text in column], dtype=pl.String)


def _finite(name: str) -> Any:
    return pl.when(pl.col(name).is_finite()).then(name)


@lru_cache(maxsize=50_000)
def _drawable_number(text: str | None) -> float | None:
    """Return the number that a text spells, if it is one that axes reach."""
    try:
        number = parse_exact(text)
    except UsageError:
        return None
    is_reached = number == 0 or Fraction(1, FARTHEST) <= abs(number) <= FARTHEST
    return float(number) if is_reached else None
