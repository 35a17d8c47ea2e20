"""The same point at other lengths, and what the engines find there."""

from __future__ import annotations

from fractions import Fraction

from separatrix.constructions import Construction
from separatrix.engines import EngineRefusal, Outcome, Sampling, solve
from separatrix.engines.sampling import enough_draws
from separatrix.mechanisms import Mechanism
from separatrix.parameters import UsageError

MOST_GROUPS = 2000
"""Lengths with more distinct tokens than this are not tried where tokens are counted."""


def found_at(point: Construction, mechanism: Mechanism, decide: tuple[Fraction, ...]) -> Outcome:
    """By the strongest engine; a sampling one draws until it is clear on which side of `decide` P lies."""
    return solve(point, mechanism, sampling=Sampling(enough_draws(point, mechanism), decide=decide))


def quickly_found_at(point: Construction, mechanism: Mechanism, decide: tuple[Fraction, ...]) -> Outcome:
    """As `found_at`, but by the exact engine rather than by certified: for searches."""
    try:
        return solve(point, mechanism, "exact")
    except EngineRefusal:
        return found_at(point, mechanism, decide)


def at_length(point: Construction, n: int) -> Construction | None:
    """The same point with n, up to a multiple of its step; None where there is no such point."""
    if "n" not in type(point).schema.model_fields:
        return None
    kept = {name: value for name, value in point.parameters.shown().items() if name != "n"}
    try:
        return type(point).read({**kept, "n": -(-n // point.step) * point.step})
    except UsageError:
        return None


def on_ladder(point: Construction, lengths: tuple[int, ...], literal: bool) -> list[Construction]:
    """The point at each of the lengths, as far as it exists and is not too large."""
    there = {each.n: each for each in (at_length(point, n) for n in lengths) if each is not None}
    return [each for each in there.values() if literal or each.group_count() <= MOST_GROUPS]
