"""Six sweeps of P[distinguishes]: the exact curve, and dense estimates that must lie on it."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from separatrix.engines import Sampling
from separatrix.numbers import format_exact
from separatrix.paper.base import MECHANISMS
from separatrix.parameters import SeparatrixError
from separatrix.store import Status, Store, frame
from separatrix.sweeps import Plan, run
from separatrix.sweeps.executors import Executor
from separatrix.sweeps.progress import Tell

MEASURED = ("distinguish", "fire_d0", "fire_d1", "margin", "bits")
COLUMNS = ("parameter", "value", "mechanism", *MEASURED, "dense", "low", "high")
PARAMETERS = ("n", "d", "m", "a0", "a1", "c")


@dataclass(frozen=True)
class ExactPoint:
    """What the exact engine says at one value; NaN where it could not decide a tie."""

    value: Fraction
    distinguish: float
    fire_d0: float
    fire_d1: float
    margin: float
    bits: float


@dataclass(frozen=True)
class DensePoint:
    """What the dense engine says at one value, with its 95 % Clopper-Pearson interval."""

    value: Fraction
    distinguish: float
    low: float
    high: float
    sampling: Sampling


@dataclass(frozen=True)
class SweepCurve:
    """One mechanism along one sweep."""

    mechanism: str
    points: tuple[ExactPoint, ...]
    estimates: tuple[DensePoint, ...]

    def exact_at(self, value: Fraction) -> ExactPoint:
        """The exact point at a value of the sweep."""
        return next(point for point in self.points if point.value == value)


@dataclass(frozen=True)
class ParameterSweep:
    """One parameter varied around the base point."""

    parameter: str
    curves: tuple[SweepCurve, ...]

    def as_csv(self) -> str:
        """One line for each value and mechanism; the dense columns are empty where it did not look."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for curve in self.curves:
            seen = {each.value: (each.distinguish, each.low, each.high) for each in curve.estimates}
            for point in curve.points:
                measured = [_cell(getattr(point, name)) for name in MEASURED]
                drawn = map(_cell, seen[point.value]) if point.value in seen else ("", "", "")
                asked = (self.parameter, format_exact(point.value), curve.mechanism)
                writer.writerow((*asked, *measured, *drawn))
        return text.getvalue()


def compute(
    plan: Plan, store: Store, executor: Executor, tell: Tell = lambda _: None
) -> tuple[ParameterSweep, ...]:
    """Run what the store does not hold of the plan, and read the curves from what it then holds.

    A table of the plan is named by the parameter it moves, up to a comma.
    """
    number = run(plan, store, executor, retry_failed=True, tell=tell).sweep
    found: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in frame(store, sweep=number).iter_rows(named=True):
        if row["status"] == Status.FAILED:
            raise SeparatrixError(f"a cell of the sweep {row['part']} failed: {row['message']}")
        found.setdefault((row["part"].partition(",")[0], row["mechanism"], row["asked"]), []).append(row)

    def curve(parameter: str, mechanism: str) -> SweepCurve:
        points = {_value(row, parameter): row for row in found[parameter, mechanism, "exact"]}
        estimates = {_value(row, parameter): row for row in found[parameter, mechanism, "dense"]}
        return SweepCurve(
            mechanism,
            tuple(ExactPoint(value, *_measured(points[value])) for value in sorted(points)),
            tuple(_estimate(value, estimates[value]) for value in sorted(estimates)),
        )

    return tuple(ParameterSweep(name, tuple(curve(name, each) for each in MECHANISMS)) for name in PARAMETERS)


def _value(row: Mapping[str, Any], parameter: str) -> Fraction:
    return Fraction(json.loads(row["parameters"])[parameter])


def _measured(row: Mapping[str, Any]) -> list[float]:
    return [math.nan if row[name] is None else row[name] for name in MEASURED]


def _estimate(value: Fraction, row: Mapping[str, Any]) -> DensePoint:
    sampling = Sampling(row["draws"], row["seed"], row["confidence"])
    return DensePoint(value, row["distinguish"], row["low"], row["high"], sampling)


def _cell(value: float) -> str:
    return "undecided" if math.isnan(value) else repr(value)
