"""What the engines find at a point, and at the same point with other lengths."""

from __future__ import annotations

from fractions import Fraction

from separatrix.constructions import Construction
from separatrix.constructions.lengths import admissible
from separatrix.core.parameters import UsageError
from separatrix.exact.engines import EngineRefusal, Outcome, Sampling, solve
from separatrix.exact.engines.sampling import enough_draws
from separatrix.mechanisms import Mechanism

MOST_GROUPS = 2000
"""Lengths with more distinct tokens than this are not tried where tokens are counted."""


def found_at(point: Construction, mechanism: Mechanism, decide: tuple[Fraction, ...]) -> Outcome:
    """The outcome by the strongest engine; a sampling one draws until the side of `decide` is clear."""
    return solve(point, mechanism, sampling=Sampling(enough_draws(point, mechanism), decide=decide))


def quickly_found_at(point: Construction, mechanism: Mechanism, decide: tuple[Fraction, ...]) -> Outcome:
    """As `found_at`, but by the closed engine rather than by certified: for searches."""
    try:
        return solve(point, mechanism, "closed")
    except EngineRefusal:
        return found_at(point, mechanism, decide)


def at_length(point: Construction, n: int) -> Construction | None:
    """The same point with the admissible n nearest to this one; None where there is no such point."""
    kind = type(point)
    try:
        return kind.read(admissible(kind, {**point.parameters.shown(), "n": n}))
    except UsageError:
        return None
