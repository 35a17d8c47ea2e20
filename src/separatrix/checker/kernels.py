"""How each mechanism scores a logit, and the sign of a sum of scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from separatrix.checker.arithmetic import PRECISIONS, Interval, Intervals, exact_power, intervals


@dataclass(frozen=True)
class Logit:
    """`times * log(of)`, with times > 0 and of > 1."""

    times: Fraction
    of: Fraction

    def enclose(self, at: Intervals) -> Interval:
        """An interval around it."""
        return at.rational(self.times) * _log(self.of, at)


Term = tuple[Fraction, Logit]
"""A rational times the score of a logit."""


class Kernel(ABC):
    """The score u of a logit; positive on positive logits."""

    def ratio(self, one: Logit, other: Logit) -> Fraction | None:
        """The quotient of two scores where it is known to be rational."""
        return Fraction(1) if one == other else None

    def cancels(self, terms: list[Term]) -> bool:
        """Whether a sum of terms is known to be zero though its factors are not."""
        return False

    @abstractmethod
    def score(self, logit: Logit, at: Intervals) -> Interval:
        """An interval around the score."""


@dataclass(frozen=True)
class Softmax(Kernel):
    """exp(q log n) = n^q, which is rational when n is a perfect power of the right degree.

    q is the logit's multiple over the temperature.
    """

    temperature: Fraction

    def ratio(self, one: Logit, other: Logit) -> Fraction | None:
        if one.of == other.of:
            return exact_power(one.of, (one.times - other.times) / self.temperature)
        top, bottom = (exact_power(each.of, each.times / self.temperature) for each in (one, other))
        return None if top is None or bottom is None else top / bottom

    def score(self, logit: Logit, at: Intervals) -> Interval:
        return at.exp(logit.enclose(at) / at.rational(self.temperature))


@dataclass(frozen=True)
class Power(Kernel):
    """The logit to the power beta; linear attention is beta = 1. A common logarithm cancels."""

    beta: Fraction

    def ratio(self, one: Logit, other: Logit) -> Fraction | None:
        return exact_power(one.times / other.times, self.beta) if one.of == other.of else None

    def score(self, logit: Logit, at: Intervals) -> Interval:
        value = logit.enclose(at)
        return at.exp(at.rational(self.beta) * at.log(value)) if value > 0 else at.anything()


@dataclass(frozen=True)
class Taylor(Kernel):
    """The sum of z^i / i! for i up to the order."""

    order: int

    def cancels(self, terms: list[Term]) -> bool:
        """With multiples of one logarithm the sum is a polynomial in it; all coefficients may be zero."""
        one_logarithm = len({logit.of for _, logit in terms}) == 1
        # k different multiples have no more than k independent coefficients.
        degrees = range(min(self.order + 1, len(terms)))
        return one_logarithm and all(
            sum(factor * logit.times**i for factor, logit in terms) == 0 for i in degrees
        )

    def score(self, logit: Logit, at: Intervals) -> Interval:
        value, total = logit.enclose(at), at.rational(1)
        for i in range(self.order, 0, -1):
            total = 1 + total * value / i
        return total


def sign(kernel: Kernel, terms: list[Term]) -> int | None:
    """The sign of a sum of terms, or None if even the highest precision leaves it open.

    Terms whose scores have a rational quotient are added up exactly first, so that a sum which
    cancels is found to be zero and not merely small.
    """
    sums: list[Term] = []
    for factor, logit in (term for term in terms if term[0] != 0):
        for i, (total, kept) in enumerate(sums):
            ratio = kernel.ratio(logit, kept)
            if ratio is not None:
                sums[i] = (total + factor * ratio, kept)
                break
        else:
            sums.append((factor, logit))
    signs = {(factor > 0) - (factor < 0) for factor, _ in sums} - {0}
    if len(signs) < 2:
        return signs.pop() if signs else 0
    if kernel.cancels(sums):
        return 0
    for bits in PRECISIONS:
        at = intervals(bits)
        total = sum(at.rational(factor) * _score(kernel, logit, bits) for factor, logit in sums)
        if total > 0 or total < 0:
            return 1 if total > 0 else -1
    return None


@lru_cache(maxsize=512)
def _score(kernel: Kernel, logit: Logit, bits: int) -> Interval:
    return kernel.score(logit, intervals(bits))


@lru_cache(maxsize=64)
def _log(value: Fraction, at: Intervals) -> Interval:
    return at.log(at.rational(value))
