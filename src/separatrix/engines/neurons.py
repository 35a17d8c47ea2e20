"""From the exact probabilities of one neuron to those of a network of m."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx

from separatrix.engines._base import Outcome
from separatrix.numbers.logforms import Flint, rational
from separatrix.outputs.kernels import PRECISIONS


@dataclass(frozen=True)
class Neuron:
    """Exact probabilities of one neuron."""

    p0: Fraction
    p1: Fraction
    only: Fraction
    """P[fires on D1 and not on D0]."""


def summed_up(
    m: int,
    low: Neuron,
    high: Neuron,
    undecided: int,
    v0: Flint | float,
    v1: Flint | float,
    margin: Flint | float,
) -> Outcome:
    """What the certified engine answers, from bounds that are equal if everything was decided."""
    decided = low == high
    least = _distinguish(high.p0, low.only, m)
    most = _distinguish(low.p0, high.only, m)
    return Outcome(
        engine="certified",
        evidence="exact fractions, every comparison decided"
        if decided
        else f"exact bounds; {undecided} comparisons undecided at {PRECISIONS[-1]} bits",
        p0=low.p0 if decided else float((low.p0 + high.p0) / 2),
        p1=low.p1 if decided else float((low.p1 + high.p1) / 2),
        only=low.only if decided else float((low.only + high.only) / 2),
        fire_d0=_fires((low.p0 + high.p0) / 2, m),
        fire_d1=_fires((low.p1 + high.p1) / 2, m),
        distinguish=(least + most) / 2,
        interval=(least, most),
        v0=float(v0),
        v1=float(v1),
        margin=float(margin) + 0.0,  # a ball around 0 may be -0.0
    )


def _fires(p: Fraction, m: int) -> float:
    """1 - (1-p)^m, with precision enough for the difference."""
    return _distinguish(Fraction(0), p, m)


def _distinguish(p0: Fraction, only: Fraction, m: int) -> float:
    """(1-p0)^m - (1-p0-only)^m, with precision enough for the difference."""
    with ctx.workprec(128 + max(only.denominator.bit_length(), 64)):
        return float(arb(rational(1 - p0)) ** m - arb(rational(1 - p0 - only)) ** m)
