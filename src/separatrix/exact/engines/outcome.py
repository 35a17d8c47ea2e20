"""The outcome of an engine: probabilities of the network, and comparisons with a level."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

import numpy as np
from flint import arb, ctx

from separatrix.core.documents import Document, Hidden, shown
from separatrix.core.errors import EngineRefusal
from separatrix.core.numbers.logforms import Flint, format_fraction, rational
from separatrix.exact.outputs.kernels import PRECISIONS

Array = np.ndarray[Any, Any]

MAX_EXACT_BITS = 1 << 20
"""Powers of fractions with more binary digits than this are enclosed in balls instead."""


@dataclass(frozen=True)
class NeuronProbabilities(Document):
    """Probabilities of one neuron: fractions as text where they are certified, numbers otherwise."""

    p0: str | float
    """It fires on D0."""
    p1: str | float
    """It fires on D1."""
    q: str | float
    """It fires on neither."""


@dataclass(frozen=True)
class Outcome(Document):
    """The probabilities over the reader's random signs, and how they are known."""

    engine: str
    evidence: str
    """How the probabilities are known: exactly, or sampled with an interval."""
    p0: Hidden[Fraction | float]
    """P(one neuron fires on D0), any row."""
    p1: Hidden[Fraction | float]
    only: Hidden[Fraction | float]
    """P(one neuron fires on D1 and not on D0); it fires on neither with probability 1 - p0 - only."""
    fire_d0: float
    """P(F(D0) > 0)."""
    fire_d1: float
    distinguish: float
    """P(F(D0) = 0 and F(D1) > 0)."""
    interval: tuple[float, float]
    """Contains `distinguish`; equal ends where it is exact."""
    v0: Hidden[float]
    """The largest pre-activation of D0 with all signs +, in units of sqrt(log n)."""
    v1: Hidden[float]
    margin: float
    """v1 - v0; from `certified` to full relative accuracy, else to that of float64 sums.

    0 where these show none."""
    error: Hidden[float] = 0.0
    """The rounding error of the ends of the interval; fractions have none."""

    @property
    def q(self) -> Fraction | float:
        """P(one neuron fires on neither)."""
        return 1 - self.p0 - self.only

    @shown
    def bits(self) -> float:
        """The significant bits needed to tell the labels apart: log2(v1 / margin)."""
        return significant_bits(self.v1, self.margin)

    @shown
    def neuron(self) -> NeuronProbabilities:
        """The probabilities of one neuron."""
        p0, p1, q = (format_fraction(p) if isinstance(p, Fraction) else p for p in (self.p0, self.p1, self.q))
        return NeuronProbabilities(p0, p1, q)


@overload
def significant_bits(v1: float, margin: float) -> float: ...
@overload
def significant_bits(v1: Array, margin: Array) -> Array: ...
def significant_bits(v1: Array | float, margin: Array | float) -> Array | float:
    """`log2(|v1| / |margin|)`; infinite where the labels are equal, NaN where either is not known.

    >>> significant_bits(8.0, -1.0), significant_bits(8.0, 0.0), significant_bits(8.0, float("nan"))
    (3.0, inf, nan)
    >>> significant_bits(np.array([8.0, 0.0]), np.array([-1.0, 0.0])).tolist()
    [3.0, inf]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        bits = np.where(np.equal(margin, 0), np.inf, np.log2(np.abs(v1) / np.abs(margin)))
    return bits if isinstance(margin, np.ndarray) else float(bits)


@dataclass(frozen=True)
class Neuron:
    """Exact probabilities of one neuron."""

    p0: Fraction
    p1: Fraction
    only: Fraction
    """P(fires on D1 and not on D0)."""


def combine_neurons(
    m: int, low: Neuron, high: Neuron, undecided_count: int, v0: Flint | float, v1: Flint | float, margin: Flint | float
) -> Outcome:
    """Return the certified outcome from bounds of one neuron, which are equal if everything is decided."""
    is_decided = low == high
    # P falls with p0 and rises with `only`, so opposite bounds of the two give the ends.
    least = _distinguish(high.p0, low.only, m)
    most = _distinguish(low.p0, high.only, m)
    return Outcome(
        engine="certified",
        evidence="exact fractions, every comparison decided"
        if is_decided
        else f"exact bounds; {undecided_count} comparisons undecided at {PRECISIONS[-1]} bits",
        p0=low.p0 if is_decided else float((low.p0 + high.p0) / 2),
        p1=low.p1 if is_decided else float((low.p1 + high.p1) / 2),
        only=low.only if is_decided else float((low.only + high.only) / 2),
        fire_d0=_fires((low.p0 + high.p0) / 2, m),
        fire_d1=_fires((low.p1 + high.p1) / 2, m),
        distinguish=(least + most) / 2,
        interval=(least, most),
        v0=float(v0),
        v1=float(v1),
        margin=float(margin) + 0.0,  # a ball around 0 may be -0.0
    )


def _fires(p: Fraction, m: int) -> float:
    """Compute 1 - (1-p)^m with enough precision for the difference."""
    return _distinguish(Fraction(0), p, m)


def _distinguish(p0: Fraction, only: Fraction, m: int) -> float:
    """Compute (1-p0)^m - (1-p0-only)^m with enough precision for the difference."""
    # Both powers may be close to 1 and differ by as little as 1/denominator: that many bits may cancel.
    with ctx.workprec(128 + max(only.denominator.bit_length(), 64)):
        return float(arb(rational(1 - p0)) ** m - arb(rational(1 - p0 - only)) ** m)


def side_of(outcome: Outcome, m: int, level: Fraction) -> int | None:
    """Return the sign of P(tells apart) - level for m sign vectors; None if the evidence leaves it open.

    For fractions it is 0 if P equals the level; for an interval it is 1 if P equals or exceeds the level.
    """
    if isinstance(outcome.p0, Fraction) and isinstance(outcome.only, Fraction):
        return side_of_fractions(outcome.p0, outcome.only, m, level)
    # Widened by the rounding error of the ends, so that a level within it counts as undecided.
    low, high = outcome.interval
    return side_between(low - outcome.error, high + outcome.error, level)


def side_of_fractions(p0: Fraction, only: Fraction, m: int, level: Fraction) -> int | None:
    """Return the exact sign of P(tells apart) - level; None if no precision decides it."""
    return sign_of_powers({1 - p0: 1, 1 - p0 - only: -1} if only else {}, m, level)


def sign_of_powers(factors: Mapping[Fraction, int], m: int, level: Fraction) -> int | None:
    """Return the sign of (the sum of factor * base^m) - level, `factors` by base; None if no precision decides it.

    >>> sign_of_powers({Fraction(1, 2): 1, Fraction(1, 4): -1}, 2, Fraction(3, 16))
    0
    """
    digits = m * max((base.denominator.bit_length() for base in factors), default=0)
    for precision in PRECISIONS:
        with ctx.workprec(precision):
            ball = sum((factor * arb(rational(base)) ** m for base, factor in factors.items()), -arb(rational(level)))
            if ball > 0 or ball < 0:
                return 1 if ball > 0 else -1
        # The sum may be zero, which no ball decides; so small powers are computed as fractions, after the first try.
        if digits <= MAX_EXACT_BITS:
            excess = sum((factor * base**m for base, factor in factors.items()), -level)
            return (excess > 0) - (excess < 0)
    return None


def fires_on_both(outcome: Outcome, m: int) -> bool:
    """Whether the network fires on D0 and on D1 with probability 1/2 or more; decided exactly for fractions.

    P(both) = 1 - (1-p0)^m - (1-p1)^m + q^m, which is P(fires on D1) - P(tells apart).
    """
    p0, p1, q = outcome.p0, outcome.p1, outcome.q
    side = None
    if isinstance(p0, Fraction) and isinstance(p1, Fraction) and isinstance(q, Fraction):
        factors: dict[Fraction, int] = defaultdict(int)
        for base, factor in ((1 - p0, -1), (1 - p1, -1), (q, 1)):  # equal bases add up
            factors[base] += factor
        side = sign_of_powers(factors, m, Fraction(-1, 2))
    # Without exact powers, floats decide that are rounded correctly, or estimates.
    return outcome.fire_d1 - outcome.distinguish >= 0.5 if side is None else side >= 0


def side_between(low: float, high: float, level: Fraction) -> int | None:
    """Return 1 if the interval is at or above the level, -1 if it is below; None otherwise, also for NaN.

    >>> [side_between(*ends, Fraction(1, 2)) for ends in ((0.5, 0.7), (0.1, 0.4), (0.4, 0.6))]
    [1, -1, None]
    """
    return 1 if low >= level else -1 if high < level else None


__all__ = [
    "EngineRefusal",
    "Neuron",
    "Outcome",
    "combine_neurons",
    "fires_on_both",
    "side_between",
    "side_of",
    "side_of_fractions",
    "sign_of_powers",
    "significant_bits",
]
