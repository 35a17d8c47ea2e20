"""The scores of each mechanism, and the sign of a sum of scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

from separatrix.checker.arithmetic import PRECISIONS, Interval, Intervals, exact_power, intervals

E = Fraction(0)
"""Stands for the base e, which is not rational. Its logarithm is 1."""


@dataclass(frozen=True)
class Logit:
    """`times * log(of)`, with times > 0, or 0 for kernels that are positive there, and of > 1 or E."""

    times: Fraction
    of: Fraction

    def enclose(self, at: Intervals) -> Interval:
        """Return an interval around the logit."""
        return at.rational(self.times) * _log(self.of, at)


Key = TypeVar("Key")
Term = tuple[Fraction, Logit]
"""A rational times the score of a logit."""


class Kernel(ABC):
    """The score u of a logit; positive on positive logits."""

    def ratio(self, first: Logit, second: Logit) -> Fraction | None:
        """Return the quotient of two scores if it is known to be rational."""
        return Fraction(1) if first == second else None

    def cancels(self, terms: list[Term]) -> bool:
        """Whether a sum of terms with nonzero factors is known to be zero."""
        return False

    @abstractmethod
    def score(self, logit: Logit, at: Intervals) -> Interval:
        """Return an interval around the score."""


@dataclass(frozen=True)
class SoftmaxKernel(Kernel):
    """exp(q log n) = n^q, which is rational if n is a perfect power of the right degree.

    q is the logit's multiple divided by the temperature.
    """

    temperature: Fraction

    def ratio(self, first: Logit, second: Logit) -> Fraction | None:
        if E in (first.of, second.of):
            return super().ratio(first, second)
        if first.of == second.of:
            return exact_power(first.of, (first.times - second.times) / self.temperature)
        top, bottom = (exact_power(logit.of, logit.times / self.temperature) for logit in (first, second))
        return None if top is None or bottom is None else top / bottom

    def score(self, logit: Logit, at: Intervals) -> Interval:
        return at.exp(logit.enclose(at) / at.rational(self.temperature))


@dataclass(frozen=True)
class PowerKernel(Kernel):
    """The logit to the power beta; linear attention has beta = 1. A common logarithm cancels."""

    beta: Fraction

    def ratio(self, first: Logit, second: Logit) -> Fraction | None:
        return exact_power(first.times / second.times, self.beta) if first.of == second.of else None

    def score(self, logit: Logit, at: Intervals) -> Interval:
        value = logit.enclose(at)
        # An interval that reaches 0 has no logarithm; at a higher precision it may be positive.
        return at.exp(at.rational(self.beta) * at.log(value)) if value > 0 else at.anything()


@dataclass(frozen=True)
class TaylorKernel(Kernel):
    """The sum of z^i / i! for i up to the order."""

    order: int

    def cancels(self, terms: list[Term]) -> bool:
        """For multiples of one logarithm, whether all coefficients of the polynomial are zero."""
        one_logarithm = len({logit.of for _, logit in terms}) == 1
        # For k different multiples the first k sums vanish only if all factors do (Vandermonde), so further
        # ones need not be examined.
        degrees = range(min(self.order + 1, len(terms)))
        return one_logarithm and all(sum(factor * logit.times**i for factor, logit in terms) == 0 for i in degrees)

    def score(self, logit: Logit, at: Intervals) -> Interval:
        value, total = logit.enclose(at), at.rational(1)
        # Horner's scheme: few interval operations, so the enclosure stays narrow.
        for i in range(self.order, 0, -1):
            total = 1 + total * value / i
        return total


def sign(kernel: Kernel, terms: list[Term]) -> int | None:
    """Return the sign of a sum of terms, or None if the highest precision does not decide it.

    Terms whose scores have a rational quotient are added up exactly first, so that a sum that cancels is
    found to be zero and not merely small.
    """
    return sign_of_sum(terms, kernel.ratio, lambda logit, bits: _score(kernel, logit, bits), kernel.cancels)


def sign_of_sum(
    terms: Iterable[tuple[Fraction, Key]],
    ratio: Callable[[Key, Key], Fraction | None],
    score: Callable[[Key, int], Interval],
    cancels: Callable[[list[tuple[Fraction, Key]]], bool] = lambda _: False,
) -> int | None:
    """Return the sign of a sum of rational multiples of positive numbers, which `score` encloses at a precision."""
    sums: list[tuple[Fraction, Key]] = []
    for factor, key in (term for term in terms if term[0] != 0):
        for i, (total, representative) in enumerate(sums):
            quotient = ratio(key, representative)
            if quotient is not None:
                sums[i] = (total + factor * quotient, representative)
                break
        else:
            sums.append((factor, key))
    # The numbers are positive, so factors of one sign decide without any interval.
    signs = {side(factor) for factor, _ in sums} - {0}
    if len(signs) < 2:
        return signs.pop() if signs else 0
    # Intervals never show that a sum is zero; a tie that is not recognised here stays undecided.
    if cancels(sums):
        return 0
    for bits in PRECISIONS:
        value = sum(intervals(bits).rational(factor) * score(key, bits) for factor, key in sums)
        if value > 0 or value < 0:
            return 1 if value > 0 else -1
    return None


def side(value: Fraction) -> int:
    """Return the sign of a rational."""
    return (value > 0) - (value < 0)


@lru_cache(maxsize=512)
def _score(kernel: Kernel, logit: Logit, bits: int) -> Interval:
    return kernel.score(logit, intervals(bits))


@lru_cache(maxsize=64)
def _log(value: Fraction, at: Intervals) -> Interval:
    return at.rational(1) if value == E else at.log(at.rational(value))
