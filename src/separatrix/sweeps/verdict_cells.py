"""Verdicts as work items: one parameter point, one mechanism, and the way to compute the answer.

Cells are computed one at a time, or many at once by the closed form.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from separatrix.constructions import ExactConstruction, construction_named
from separatrix.core.numbers.json import finite
from separatrix.core.numbers.logforms import format_fraction
from separatrix.core.parameters import Grid
from separatrix.core.parameters.grid import is_number
from separatrix.exact.engines import ENGINES, EngineRefusal, Outcome, Sampling, closed, solve
from separatrix.exact.verdicts.words import word_for
from separatrix.mechanisms.load import mechanism_from
from separatrix.sweeps.code import code_version
from separatrix.sweeps.store import Answer, CellStatus, Environment
from separatrix.sweeps.store.schema import VERDICT
from separatrix.sweeps.work import BatchResults, Checkpoints, WorkItem, make_result

find_mechanism = cache(mechanism_from)

MAX_CELLS_AT_ONCE = 500
"""Cells that the closed form computes at once."""


@dataclass(frozen=True)
class DrawSettings:
    """The settings of a sampling engine in a plan."""

    draws: int
    seed: int
    confidence: float
    dtype: str
    until_decided: bool

    def make_sampling(self, delta: Fraction) -> Sampling:
        """Return the settings in the form of the engines."""
        thresholds = (delta, 1 - delta) if self.until_decided else ()
        return Sampling(self.draws, self.seed, self.confidence, self.dtype, thresholds)


@dataclass(frozen=True)
class VerdictCell(WorkItem):
    """One verdict: everything that determines it, and nothing else."""

    kind = VERDICT
    construction: str
    mechanism: str
    parameters: dict[str, str]
    """Exact values as text in a unique form: 1e3 and 1000 are the same cell."""
    engine: str
    delta: str
    draws: DrawSettings | None
    """None for engines that draw nothing, so that seeds do not make different cells for them."""
    code: str

    def __str__(self) -> str:
        return f"{self.mechanism} on {self.construction}"

    def identity(self) -> Sequence[Any]:
        draws = self.draws and list(vars(self.draws).values())
        return self.construction, self.mechanism, self.parameters, self.engine, self.delta, draws

    @property
    def cost_key(self) -> tuple[str, ...]:
        return self.construction, self.mechanism, self.engine

    def columns(self) -> dict[str, Any]:
        return {
            "construction": self.construction,
            "mechanism": self.mechanism,
            "parameters": self.parameters,
            "asked": self.engine,
            "delta": self.delta,
            **({} if self.draws is None else vars(self.draws)),
        }

    def current_code(self) -> str:
        return code_version(construction_named(self.construction), find_mechanism(self.mechanism))

    def compute(self, checkpoint: bytes | None = None) -> Iterator[Answer]:
        try:
            point, delta = construction_named(self.construction).read(self.parameters), Fraction(self.delta)
            sampling = None if self.draws is None else self.draws.make_sampling(delta)
            outcome = solve(point, find_mechanism(self.mechanism), self.engine, sampling)
        except EngineRefusal as refusal:
            yield _make_refusal(str(refusal))
        else:
            yield _make_answer(outcome, point.m, delta)

    @classmethod
    def run(
        cls, items: Sequence[VerdictCell], environment: Environment, checkpoints: Checkpoints | None = None
    ) -> Iterator[BatchResults]:
        kind = construction_named(items[0].construction)
        if not ENGINES[items[0].engine].at_once or issubclass(kind, ExactConstruction):
            yield from super().run(items, environment)
            return
        for start in range(0, len(items), MAX_CELLS_AT_ONCE):
            cells, began = items[start : start + MAX_CELLS_AT_ONCE], time.perf_counter()
            answers = _compute_at_once(cells)
            if answers is None:
                yield from super().run(cells, environment)
            else:
                share = (time.perf_counter() - began) / len(cells)
                yield [make_result(answer, share, environment) for answer in answers]


def _compute_at_once(cells: Sequence[VerdictCell]) -> list[Answer] | None:
    """The answers of the closed form, the same in any company; None if some cells cannot be computed so."""
    kind, first = construction_named(cells[0].construction), cells[0].parameters
    if any(cell.parameters.keys() != first.keys() for cell in cells):
        return None
    columns = {name: [cell.parameters[name] for cell in cells] for name in first}
    words = {name: set(columns.pop(name)) for name in first if not is_number(kind.schema, name)}
    if any(len(values) > 1 for values in words.values()):
        return None
    grid = Grid({name: values.pop() for name, values in words.items()}, (columns,))
    try:
        outcomes = closed.evaluate_each(kind, find_mechanism(cells[0].mechanism), grid).outcomes()
    except Exception:  # computed one by one, the cell that raises it has the message
        return None
    return [
        _make_refusal(closed.UNDECIDED)
        if outcome is None
        else _make_answer(outcome, int(cell.parameters["m"]), Fraction(cell.delta))
        for cell, outcome in zip(cells, outcomes, strict=True)
    ]


def _make_refusal(message: str) -> Answer:
    return Answer(status=CellStatus.REFUSED, message=message)


def _make_answer(outcome: Outcome, m: int, delta: Fraction) -> Answer:
    return Answer(
        {
            "verdict": word_for(outcome, m, delta),
            "engine": outcome.engine,
            "evidence": outcome.evidence,
            **{name: _format_probability(getattr(outcome, name)) for name in ("p0", "p1", "q")},
            **{name: getattr(outcome, name) for name in ("distinguish", "fire_d0", "fire_d1")},
            "low": outcome.interval[0],
            "high": outcome.interval[1],
            **{name: finite(getattr(outcome, name)) for name in ("margin", "bits")},
        }
    )


def _format_probability(p: Fraction | float) -> str:
    return format_fraction(p) if isinstance(p, Fraction) else repr(p)
