"""Rational and interval arithmetic of the checker."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

from mpmath.ctx_iv import MPIntervalContext
from mpmath.libmp import to_rational

Interval = Any
"""An mpmath interval; mpmath has no type annotations."""

PRECISIONS = (128, 512, 2048, 10000)
"""Precisions in bits, tried in turn before a comparison is left undecided."""

MOST_BITS = 1 << 17
"""Rationals with more bits than this are enclosed in intervals instead."""


class Intervals:
    """Interval arithmetic at one precision, in its own mpmath context."""

    def __init__(self, bits: int) -> None:
        self._context = MPIntervalContext()
        self._context.prec = bits
        self._bits = bits
        self._slack = self._around_one(bits)

    def rational(self, value: Fraction | int) -> Interval:
        """Return the smallest interval around a rational."""
        return self._context.mpf(value.numerator) / self._context.mpf(value.denominator)

    def enclosing(self, low: Fraction | int, high: Fraction | int) -> Interval:
        """Return an interval that contains both numbers."""
        # Each end is an interval itself; the lower end of one and the upper end of the other enclose both.
        low_end, high_end = self.rational(low), self.rational(high)
        return self._context.mpf([low_end.a, high_end.b])

    def anything(self) -> Interval:
        """Return the whole line."""
        return self._context.mpf(["-inf", "inf"])

    def _around_one(self, bits: int) -> Interval:
        """Return a factor that covers a few units in the last place: mpmath's functions are not rigorous."""
        slack = Fraction(1, 1 << (bits - 8))
        return self.enclosing(1 - slack, 1 + slack)

    def exp(self, value: Interval) -> Interval:
        """Return the exponential.

        An argument too large to have a fractional part at this precision is evaluated with few bits: only
        the magnitude of the result is known, and mpmath would take minutes for more.
        """
        if abs(value) < self.rational(1 << self._bits):
            return self._context.exp(value) * self._slack
        bits = min(self._bits, 500)
        return self._context.exp(value, prec=bits) * self._around_one(bits)

    def log(self, value: Interval) -> Interval:
        """Return the logarithm of a positive interval."""
        return self._context.log(value) * self._slack


@lru_cache(maxsize=64)
def intervals(bits: int) -> Intervals:
    """Return the arithmetic at `bits`, cached."""
    return Intervals(bits)


def ends(value: Interval) -> tuple[Fraction, Fraction]:
    """Return the exact ends of an interval."""
    low, high = (Fraction(*map(int, to_rational(end))) for end in value._mpi_)
    return low, high


@lru_cache(maxsize=1024)
def exact_power(base: Fraction, exponent: Fraction) -> Fraction | None:
    """Return base ** exponent for a positive base if it is a rational of moderate length, or None.

    >>> exact_power(Fraction(16), Fraction(1, 4)), exact_power(Fraction(4, 9), Fraction(-3, 2))
    (Fraction(2, 1), Fraction(27, 8))
    >>> exact_power(Fraction(2), Fraction(1, 2)) is None
    True
    """
    if base == 1 or exponent == 0:
        return Fraction(1)
    # In lowest terms, a quotient has a rational root only if both of its parts have one.
    top = _root(base.numerator, exponent.denominator)
    bottom = _root(base.denominator, exponent.denominator)
    if top is None or bottom is None:
        return None
    # The length of the power is known before it is computed: a file may ask for 2^(10^4000).
    if max(top, bottom).bit_length() * abs(exponent.numerator) > MOST_BITS:
        return None
    power: Fraction = Fraction(top, bottom) ** exponent.numerator
    return power


def _root(value: int, degree: int) -> int | None:
    """Return the exact root of a positive integer, or None."""
    if value == 1 or degree == 1:
        return value
    if degree >= value.bit_length():  # the root of a number between 1 and 2^degree is no integer
        return None
    # 64 bits more than the root has, so that the upper end lies less than 1 above it. A wrong candidate only
    # costs exactness: the power is compared below.
    at = intervals(64 + value.bit_length() // degree)
    enclosure = at.exp(at.log(at.rational(value)) / degree)
    candidate = int(ends(enclosure)[1])
    return candidate if candidate**degree == value else None
