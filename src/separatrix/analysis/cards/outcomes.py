"""Outcomes at a point of a construction, and at the same point with other lengths."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from separatrix.constructions import Construction
from separatrix.constructions.lengths import admissible
from separatrix.core.documents import Document
from separatrix.core.errors import SeparatrixError, UsageError, describe_failure
from separatrix.exact.engines import EngineRefusal, Outcome, Sampling, solve
from separatrix.exact.engines.sampling import enough_draws
from separatrix.exact.verdicts import DELTA
from separatrix.exact.verdicts.words import Word, word_for
from separatrix.mechanisms import Mechanism

MAX_GROUPS = 2000
"""Lengths with more distinct tokens than this are not tried where tokens are counted."""


@dataclass(frozen=True)
class ShortVerdict(Document):
    """A verdict in short."""

    verdict: Word
    distinguish: float
    """P(tells apart) over all signs of the reader."""
    interval: tuple[float, float]
    engine: str
    evidence: str

    @classmethod
    def of(cls, outcome: Outcome, m: int, *more: Any) -> Self:
        """Return the verdict of an outcome with m neurons; `more` are the fields that a subclass adds."""
        numbers = outcome.distinguish, outcome.interval, outcome.engine, outcome.evidence
        return cls(word_for(outcome, m, DELTA), *numbers, *more)


def solve_until_decided(point: Construction, mechanism: Mechanism, levels: tuple[Fraction, ...]) -> Outcome:
    """Solve with the strongest engine; a sampling engine draws until P is on a clear side of the levels."""
    return solve(point, mechanism, sampling=Sampling(enough_draws(point, mechanism), decide=levels))


def solve_quickly(point: Construction, mechanism: Mechanism, levels: tuple[Fraction, ...]) -> Outcome:
    """Solve as above, but prefer the closed engine to the slower certified one: for searches."""
    try:
        return solve(point, mechanism, "closed")
    except EngineRefusal:
        return solve_until_decided(point, mechanism, levels)


def describe_missing_result(error: Exception) -> str:
    """Return the reason of a refusal, or the error that a mechanism raised."""
    return str(error) if isinstance(error, SeparatrixError) else f"it {describe_failure(error)}"


def at_length(point: Construction, n: int) -> Construction | None:
    """Return the same point with the admissible n nearest to this one; None if there is no such point."""
    kind = type(point)
    try:
        return kind.read(admissible(kind, {**point.parameters.as_json(), "n": n}))
    except UsageError:
        return None
