"""On which side of a level P[distinguishes] lies, by fractions or by the ends of an interval."""

from __future__ import annotations

from fractions import Fraction

from flint import arb, ctx

from separatrix.engines._base import Outcome
from separatrix.numbers.logforms import rational
from separatrix.outputs.kernels import PRECISIONS


def side_of(outcome: Outcome, m: int, level: Fraction) -> int | None:
    """The sign of P[distinguishes] - level with m sign vectors; None if the evidence leaves it open.

    Of fractions it is 0 where P is the level; an interval says 1 where P is the level or above it.
    """
    if isinstance(outcome.p0, Fraction) and isinstance(outcome.only, Fraction):
        return side_of_fractions(outcome.p0, outcome.only, m, level)
    low, high = outcome.interval
    return side_between(low - outcome.error, high + outcome.error, level)


def side_of_fractions(p0: Fraction, only: Fraction, m: int, level: Fraction) -> int | None:
    """The sign of P[distinguishes] - level, exactly; None if no precision decides it."""
    silent, neither = 1 - p0, 1 - p0 - only
    if m * only.denominator.bit_length() <= 1 << 20:
        excess = silent**m - neither**m - level
        return (excess > 0) - (excess < 0)
    for precision in PRECISIONS:
        with ctx.workprec(precision):
            ball = arb(rational(silent)) ** m - arb(rational(neither)) ** m - arb(rational(level))
            if ball > 0 or ball < 0:
                return 1 if ball > 0 else -1
    return None


def side_between(low: float, high: float, level: Fraction) -> int | None:
    """1 if all between `low` and `high` is at the level or above, -1 if all is below; NaN leaves it open.

    >>> [side_between(*ends, Fraction(1, 2)) for ends in ((0.5, 0.7), (0.1, 0.4), (0.4, 0.6))]
    [1, -1, None]
    """
    return 1 if low >= level else -1 if high < level else None
