"""Six sweeps of P(tells apart): the closed-form curve, and dense estimates that must lie on it."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass

import polars as pl

from separatrix.claims.paper.figures import MECHANISMS
from separatrix.core.parameters import SeparatrixError
from separatrix.sweeps.store import CellStatus, Store, frame

MEASURED = ("distinguish", "fire_d0", "fire_d1", "margin", "bits")
ESTIMATED = ("dense", "low", "high")
COLUMNS = ("parameter", "value", "mechanism", *MEASURED, *ESTIMATED)
PARAMETERS = ("n", "d", "m", "a0", "a1", "c")


@dataclass(frozen=True)
class ParameterSweep:
    """One parameter varied around the base point."""

    parameter: str
    cells: pl.DataFrame
    """One row for each `mechanism` and `x`, the `value` as a float: the results of the closed engine, NaN if
    it could not decide a tie; `dense`, `low` and `high`, the estimate of the dense engine with its 95 %
    Clopper-Pearson interval, if there is one; and its `draws`, `seed` and `confidence`."""

    def as_csv(self) -> str:
        """Return one line for each value and mechanism; dense columns are empty without an estimate."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for value, mechanism, *numbers in self.cells.select(COLUMNS[1:]).iter_rows():
            writer.writerow((self.parameter, value, mechanism, *map(_to_text, numbers)))
        return text.getvalue()


def read_sweeps(store: Store, number: int) -> tuple[ParameterSweep, ...]:
    """Return the curves from the stored cells of the sweep with this number.

    A table of its plan is named by the parameter it varies, up to a comma.
    """
    cells = frame(store, sweep=number)
    failures = cells.filter(status=CellStatus.FAILED)
    if not failures.is_empty():
        raise SeparatrixError(f"a cell of the sweep {failures['part'][0]} failed: {failures['message'][0]}")
    parameter = pl.col("part").str.split(",").list.first()
    return tuple(ParameterSweep(name, _curves(cells.filter(parameter == name), name)) for name in PARAMETERS)


def _curves(cells: pl.DataFrame, parameter: str) -> pl.DataFrame:
    """Return the closed-form cells, each with the dense cell of the same mechanism and value."""
    value = pl.col("parameters").str.json_path_match(f"$.{parameter}")
    engine, x, keys = pl.col("asked"), pl.col(parameter).cast(pl.Float64), ["mechanism", "value"]
    cells = cells.with_columns(value=value, x=x)
    closed_cells = cells.filter(engine == "closed").select(*keys, "x", pl.col(MEASURED).fill_null(math.nan))
    dense = cells.filter(engine == "dense").rename({"distinguish": "dense"})
    estimates = dense.select(*keys, *ESTIMATED, "draws", "seed", "confidence")
    # Several n of the plan may be moved to the same multiple of d-2, which gives equal cells.
    curves = closed_cells.unique(keys).join(estimates, on=keys, how="left")
    return curves.sort(pl.col("mechanism").replace_strict(MECHANISMS, range(len(MECHANISMS))), "x")


def _to_text(number: float | None) -> str:
    return "" if number is None else "undecided" if math.isnan(number) else repr(number)
