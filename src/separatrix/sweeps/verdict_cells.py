"""Verdicts as work: a parameter point, a mechanism, and how the answer is to be found.

Cells are computed one at a time, or by the closed form on many at once.
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
from separatrix.core.numbers.logforms import spelled
from separatrix.core.parameters import Grid
from separatrix.core.parameters.grid import is_number
from separatrix.exact.engines import ENGINES, EngineRefusal, Outcome, Sampling, closed, solve
from separatrix.exact.verdicts.words import word_for
from separatrix.mechanisms.load import mechanism_from
from separatrix.sweeps.code import code_version
from separatrix.sweeps.store import Answer, Environment, Status
from separatrix.sweeps.store.schema import VERDICT
from separatrix.sweeps.work import Back, Checkpoints, Work, result

named = cache(mechanism_from)

TOGETHER = 500
"""Cells of the closed form that are computed at once."""


@dataclass(frozen=True)
class Draws:
    """How a sampling engine draws, as a plan says it."""

    draws: int
    seed: int
    confidence: float
    dtype: str
    until_decided: bool

    def sampling(self, delta: Fraction) -> Sampling:
        """The draws as the engines take them."""
        decide = (delta, 1 - delta) if self.until_decided else ()
        return Sampling(self.draws, self.seed, self.confidence, self.dtype, decide)


@dataclass(frozen=True)
class Cell(Work):
    """One verdict: everything that determines it, and nothing else."""

    kind = VERDICT
    construction: str
    mechanism: str
    parameters: dict[str, str]
    """Exact values as text, in one spelling: 1e3 and 1000 are the same cell."""
    engine: str
    delta: str
    draws: Draws | None
    """None for engines that draw nothing, so that seeds make no new cells of them."""
    code: str

    def __str__(self) -> str:
        return f"{self.mechanism} on {self.construction}"

    def identity(self) -> Sequence[Any]:
        drawn = self.draws and list(vars(self.draws).values())
        return self.construction, self.mechanism, self.parameters, self.engine, self.delta, drawn

    @property
    def cost_key(self) -> tuple[str, ...]:
        return self.construction, self.mechanism, self.engine

    def columns(self) -> dict[str, Any]:
        drawn = {} if self.draws is None else vars(self.draws)
        return {
            "construction": self.construction,
            "mechanism": self.mechanism,
            "parameters": self.parameters,
            "n": _float(self.parameters.get("n")),
            "asked": self.engine,
            "delta": self.delta,
            **drawn,
        }

    def code_here(self) -> str:
        return code_version(construction_named(self.construction), named(self.mechanism))

    def compute(self, checkpoint: bytes | None = None) -> Iterator[Answer]:
        try:
            point, delta = construction_named(self.construction).read(self.parameters), Fraction(self.delta)
            sampling = None if self.draws is None else self.draws.sampling(delta)
            outcome = solve(point, named(self.mechanism), self.engine, sampling)
        except EngineRefusal as refusal:
            yield _refused(str(refusal))
        else:
            yield _answer(outcome, point.m, delta)

    @classmethod
    def run(
        cls, works: Sequence[Cell], here: Environment, checkpoints: Checkpoints | None = None
    ) -> Iterator[Back]:
        first, kind = works[0], construction_named(works[0].construction)
        if not ENGINES[first.engine].at_once or issubclass(kind, ExactConstruction):
            yield from super().run(works, here)
            return
        for start in range(0, len(works), TOGETHER):
            some, began = works[start : start + TOGETHER], time.perf_counter()
            answers = _together(some)
            if answers is None:
                yield from super().run(some, here)
            else:
                share = (time.perf_counter() - began) / len(some)
                yield [result(answer, share, here) for answer in answers]


def _together(cells: Sequence[Cell]) -> list[Answer] | None:
    """The closed form on all of them; None where some cannot be read or have no closed form.

    A cell has the same numbers whichever others it is computed with.
    """
    kind, first = construction_named(cells[0].construction), cells[0].parameters
    if any(cell.parameters.keys() != first.keys() for cell in cells):
        return None
    columns = {name: [cell.parameters[name] for cell in cells] for name in first}
    words = {name: set(columns.pop(name)) for name in first if not is_number(kind.schema, name)}
    if any(len(values) > 1 for values in words.values()):
        return None
    fixed = {name: values.pop() for name, values in words.items()}
    try:
        found = closed.evaluate_each(kind, named(cells[0].mechanism), Grid(fixed, (columns,))).outcomes()
    except Exception:  # of one cell; which, and why, comes out when they are computed one by one
        return None
    return [
        _refused(closed.UNDECIDED)
        if outcome is None
        else _answer(outcome, int(cell.parameters["m"]), Fraction(cell.delta))
        for cell, outcome in zip(cells, found, strict=True)
    ]


def _refused(message: str) -> Answer:
    return Answer(status=Status.REFUSED, message=message)


def _answer(outcome: Outcome, m: int, delta: Fraction) -> Answer:
    return Answer(
        {
            "verdict": word_for(outcome, m, delta),
            "engine": outcome.engine,
            "evidence": outcome.evidence,
            **{name: _spelled(getattr(outcome, name)) for name in ("p0", "p1", "q")},
            **{name: getattr(outcome, name) for name in ("distinguish", "fire_d0", "fire_d1")},
            "low": outcome.interval[0],
            "high": outcome.interval[1],
            **{name: finite(getattr(outcome, name)) for name in ("margin", "bits")},
        }
    )


def _spelled(p: Fraction | float) -> str:
    return spelled(p) if isinstance(p, Fraction) else repr(p)


def _float(n: str | None) -> float | None:
    """n to find cells by; None where it is beyond what floats hold."""
    try:
        return None if n is None else float(int(n))
    except OverflowError:
        return None
