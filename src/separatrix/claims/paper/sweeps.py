"""Six sweeps of P(tells apart): the exact curve, and dense estimates that must lie on it."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass

import polars as pl

from separatrix.claims.paper.base import MECHANISMS
from separatrix.core.parameters import SeparatrixError
from separatrix.sweeps.store import Status, Store, frame

MEASURED = ("distinguish", "fire_d0", "fire_d1", "margin", "bits")
ESTIMATED = ("dense", "low", "high")
COLUMNS = ("parameter", "value", "mechanism", *MEASURED, *ESTIMATED)
PARAMETERS = ("n", "d", "m", "a0", "a1", "c")


@dataclass(frozen=True)
class ParameterSweep:
    """One parameter varied around the base point."""

    parameter: str
    cells: pl.DataFrame
    """By `mechanism` and `x`, the `value` as a float: what the closed engine says, NaN where it could not
    decide a tie; and under `dense`, `low` and `high` what the dense engine says where it looked, with its
    95 % Clopper-Pearson interval, and under `draws`, `seed` and `confidence` how it drew."""

    def as_csv(self) -> str:
        """One line for each value and mechanism; the dense columns are empty where it did not look."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for value, mechanism, *numbers in self.cells.select(COLUMNS[1:]).iter_rows():
            writer.writerow((self.parameter, value, mechanism, *map(_spelled, numbers)))
        return text.getvalue()


def stored(store: Store, number: int) -> tuple[ParameterSweep, ...]:
    """The curves, from the cells of the sweep with this number.

    A table of its plan is named by the parameter it moves, up to a comma.
    """
    cells = frame(store, sweep=number)
    failed = cells.filter(status=Status.FAILED)
    if not failed.is_empty():
        raise SeparatrixError(f"a cell of the sweep {failed['part'][0]} failed: {failed['message'][0]}")
    moved = pl.col("part").str.split(",").list.first()
    return tuple(ParameterSweep(name, _joined(cells.filter(moved == name), name)) for name in PARAMETERS)


def _joined(cells: pl.DataFrame, parameter: str) -> pl.DataFrame:
    """The exact cells, and beside them the dense ones of the same mechanism and value."""
    value = pl.col("parameters").str.json_path_match(f"$.{parameter}")
    asked, x, place = pl.col("asked"), pl.col(parameter).cast(pl.Float64), ["mechanism", "value"]
    cells = cells.with_columns(value=value, x=x)
    exact = cells.filter(asked == "closed").select(*place, "x", pl.col(MEASURED).fill_null(math.nan))
    dense = cells.filter(asked == "dense").rename({"distinguish": "dense"})
    drawn = dense.select(*place, *ESTIMATED, "draws", "seed", "confidence")
    joined = exact.unique(place).join(drawn, on=place, how="left")
    return joined.sort(pl.col("mechanism").replace_strict(MECHANISMS, range(len(MECHANISMS))), "x")


def _spelled(number: float | None) -> str:
    return "" if number is None else "undecided" if math.isnan(number) else repr(number)
