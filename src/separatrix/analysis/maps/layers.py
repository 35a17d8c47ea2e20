"""One layer of a map, and how it is made a cell at a time where there is no closed form for whole grids."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix.analysis.maps.plane_grid import PlaneGrid
from separatrix.constructions import Construction
from separatrix.exact.engines import ENGINES, EngineRefusal, Outcome, Sampling, closed
from separatrix.exact.verdicts.question import Question
from separatrix.mechanisms import Mechanism

Array = np.ndarray[Any, Any]

QUANTITIES = {
    "distinguish": "P(tells apart)",
    "fire_d0": "P(fires on D0)",
    "fire_d1": "P(fires on D1)",
    "margin": "margin",
    "bits": "bits",
}
"""What can be mapped, and what it is called in a picture."""
PROBABILITIES = ("distinguish", "fire_d0", "fire_d1")


@dataclass(frozen=True)
class Layer:
    """One mechanism's values; NaN where there is no answer."""

    mechanism: str
    values: Array
    low: Array
    high: Array
    """The interval; equal ends where the value is exact, NaN where the quantity has none."""
    engine: str
    evidence: str
    remark: str
    """Why some cells have no answer, if any have none."""
    margin: Array | None = None
    """The margin of every cell, which still differs where a probability is nearly the same everywhere."""

    @property
    def said(self) -> dict[str, str]:
        """The mechanism, and how its values are known."""
        return {name: getattr(self, name) for name in ("mechanism", "engine", "evidence", "remark")}

    @property
    def has_interval(self) -> bool:
        """Whether some value is only known to lie between two others."""
        return bool((self.low < self.high).any())


@dataclass(frozen=True)
class Step:
    """How far a layer is."""

    mechanism: str
    done: int
    total: int
    seconds: float
    """An estimate for all of it, from the first cells."""


Tell = Callable[[Step], None]


def by_cell(
    asked: Question, places: PlaneGrid, of: str, engine: str, sampling: Sampling, tell: Tell
) -> Layer:
    """Every cell by itself, by the engine named; `tell` hears the estimate before the bulk of the work."""
    found = {name: np.full(places.shape, np.nan) for name in ("values", "low", "high", "margin")}
    outcomes: Counter[tuple[str, str]] = Counter()
    refusals: list[EngineRefusal] = []

    def work(cell: tuple[int, int]) -> None:
        chosen = places.at(cell)
        try:
            outcome = _solve(asked.point(chosen), asked.mechanism(chosen), engine, sampling)
        except EngineRefusal as refused:
            refusals.append(refused)
            return
        outcomes[outcome.engine, outcome.evidence] += 1
        found["values"][cell] = _quantity(outcome, of)
        found["margin"][cell] = _quantity(outcome, "margin")
        if of == "distinguish":
            found["low"][cell], found["high"][cell] = outcome.interval

    rows, columns = places.shape
    first = list(dict.fromkeys([(0, 0), (rows // 2, columns // 2), (rows - 1, columns - 1)]))
    work(first[0])  # once for what is only done once
    outcomes.clear()
    refusals.clear()
    start = time.perf_counter()
    for cell in first:
        work(cell)
    seconds = (time.perf_counter() - start) / len(first) * rows * columns
    done = len(first)
    if outcomes:
        tell(Step(asked.label, done, rows * columns, seconds))
    for cell in np.ndindex(rows, columns):
        if cell not in first:
            work(cell)
            done += 1
            if outcomes:
                tell(Step(asked.label, done, rows * columns, seconds))
    if not outcomes:
        raise refusals[0]
    (name, evidence), _ = outcomes.most_common(1)[0]
    engines = ", ".join(dict.fromkeys(engine for engine, _ in outcomes))
    evidence = evidence if len(outcomes) == 1 else f"for most cells {name}: {evidence}"
    if not any(ENGINES[each].draws for each, _ in outcomes):
        evidence = f"{evidence}{ENGINES[name].describe_unused(sampling)}"
    if of != "distinguish" and ENGINES[name].draws:
        evidence = f"{evidence}; the interval is that of P(tells apart), {QUANTITIES[of]} has none"
    remark = f"{len(refusals):,} cells have no answer: {refusals[0]}" if refusals else ""
    return Layer(
        asked.label, found["values"], found["low"], found["high"], engines, evidence, remark, found["margin"]
    )


def _solve(point: Construction, mechanism: Mechanism, engine: str, sampling: Sampling) -> Outcome:
    """The outcome by the engine named; `auto` tries floats before fractions, since there are many cells."""
    if engine == "auto" and not sampling.in_format:
        with suppress(EngineRefusal):
            return closed.solve(point, mechanism)
    return ENGINES[engine].solve(point, mechanism, sampling)


def _quantity(outcome: Outcome, of: str) -> float:
    return float(getattr(outcome, of))
