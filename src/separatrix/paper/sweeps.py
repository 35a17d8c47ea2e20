"""Six sweeps of P[distinguishes]: the exact curve, and dense estimates that must lie on it."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from itertools import count

import torch

from separatrix.constructions.spike import Spike
from separatrix.engines import Sampling, dense, exact
from separatrix.mechanisms import mechanism_named
from separatrix.numbers import format_exact
from separatrix.paper.base import BASE, MECHANISMS
from separatrix.paper.effort import FULL, Effort
from separatrix.parameters import Grid
from separatrix.sweeps.sweep import find_plan
from separatrix.sweeps.verdict_table import VerdictTable
from separatrix.tensors import one_thread

COLUMNS = (
    "parameter",
    "value",
    "mechanism",
    "distinguish",
    "fire_d0",
    "fire_d1",
    "margin",
    "bits",
    "dense",
    "low",
    "high",
)


PARAMETERS = ("n", "d", "m", "a0", "a1", "c")
Job = tuple[str, str, Fraction, Sampling]
"""A dense estimate to be made: parameter, mechanism, value, draws and seed."""


@dataclass(frozen=True)
class Plan:
    """Which values a parameter takes, and at which of them the dense engine looks as well."""

    parameter: str
    values: tuple[Fraction, ...]
    sampled: tuple[Fraction, ...]


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
class Estimate:
    """What the dense engine says at one value, with its 95 % Clopper-Pearson interval."""

    value: Fraction
    distinguish: float
    low: float
    high: float
    sampling: Sampling


@dataclass(frozen=True)
class Curve:
    """One mechanism along one sweep."""

    mechanism: str
    points: tuple[ExactPoint, ...]
    estimates: tuple[Estimate, ...]

    def exact_at(self, value: Fraction) -> ExactPoint:
        """The exact point at a value of the sweep."""
        return next(point for point in self.points if point.value == value)


@dataclass(frozen=True)
class Sweep:
    """One parameter varied around the base point."""

    parameter: str
    curves: tuple[Curve, ...]

    def as_csv(self) -> str:
        """One line for each value and mechanism; the dense columns are empty where it did not look."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for curve in self.curves:
            seen = {estimate.value: estimate for estimate in curve.estimates}
            for point in curve.points:
                measured = (point.distinguish, point.fire_d0, point.fire_d1, point.margin, point.bits)
                line = [self.parameter, format_exact(point.value), curve.mechanism, *map(_cell, measured)]
                found = seen.get(point.value)
                line += (
                    ["", "", ""] if found is None else map(_cell, (found.distinguish, found.low, found.high))
                )
                writer.writerow(line)
        return text.getvalue()


def plans(effort: Effort = FULL) -> tuple[Plan, ...]:
    """The six sweeps of the plan `paper`, which `separatrix sweep` runs as well."""
    taken = {part.name: part for part in find_plan("paper").parts}
    return tuple(
        _plan(effort, name, _values(taken[name], name), _values(taken[f"{name}, literal tokens"], name))
        for name in PARAMETERS
    )


def _values(part: VerdictTable, parameter: str) -> list[Fraction]:
    return [Fraction(point[parameter]) for grid in part.grids for point in grid]


def run(
    plans: Sequence[Plan], effort: Effort, progress: Callable[[], None] = lambda: None
) -> tuple[Sweep, ...]:
    """Every sweep; `progress` is told of each dense estimate, and each has a seed of its own."""
    seeds = count()
    jobs = [
        (plan.parameter, mechanism, value, Sampling(effort.draws, next(seeds)))
        for plan in plans
        for mechanism in MECHANISMS
        for value in plan.sampled
    ]
    made: dict[tuple[str, str], list[Estimate]] = {}
    for (parameter, mechanism, *_), estimate in zip(jobs, _estimates(jobs, progress), strict=True):
        made.setdefault((parameter, mechanism), []).append(estimate)
    return tuple(
        Sweep(
            plan.parameter,
            tuple(
                Curve(mechanism, _points(plan, mechanism), tuple(made[plan.parameter, mechanism]))
                for mechanism in MECHANISMS
            ),
        )
        for plan in plans
    )


def _estimates(jobs: Sequence[Job], progress: Callable[[], None]) -> list[Estimate]:
    """One thread of torch for each estimate and one estimate for each core.

    The tensors are small, and threads that share one wait for each other, most of all on a busy machine.
    """

    def work(job: Job) -> Estimate:
        estimate = _estimate(*job)
        progress()
        return estimate

    pool = ThreadPoolExecutor(torch.get_num_threads())
    with one_thread():
        try:
            return list(pool.map(work, jobs))
        finally:
            pool.shutdown(cancel_futures=True)


def _plan(effort: Effort, parameter: str, values: Sequence[Fraction], sampled: Sequence[Fraction]) -> Plan:
    looked_at = tuple(sampled[:: effort.thin_dense])
    return Plan(parameter, tuple(sorted({*effort.thinned(values), *looked_at})), looked_at)


def _points(plan: Plan, mechanism: str) -> tuple[ExactPoint, ...]:
    fixed = {name: value for name, value in BASE.items() if name != plan.parameter}
    grid = exact.evaluate(Spike, mechanism_named(mechanism), Grid(fixed, ({plan.parameter: plan.values},)))
    columns = (grid.distinguish, grid.fire_d0, grid.fire_d1, grid.margin, grid.bits)
    return tuple(
        ExactPoint(value, *map(float, measured))
        for value, *measured in zip(plan.values, *columns, strict=True)
    )


def _estimate(parameter: str, mechanism: str, value: Fraction, sampling: Sampling) -> Estimate:
    outcome = dense.solve(Spike.read({**BASE, parameter: value}), mechanism_named(mechanism), sampling)
    return Estimate(value, outcome.distinguish, *outcome.interval, sampling)


def _cell(value: float) -> str:
    return "undecided" if math.isnan(value) else repr(value)
