"""The score of the spike relative to an ordinary token, as a function of n, with exact comparisons."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from flint import arb, ctx, fmpq

from separatrix.core.errors import EngineRefusal
from separatrix.core.numbers.exact import MOST_BITS, MOST_DIGITS
from separatrix.core.numbers.logforms import Flint, floor_of, power, sign
from separatrix.core.numbers.spelling import round_up_for_people
from separatrix.exact.outputs.kernels import PRECISIONS

GUARD_BITS = 64
"""Bits of a ball beyond those of n: at neighbouring n, the compared numbers differ by a factor of about 1 + 1/n."""
MOST_LOG = MOST_DIGITS * 2.4
"""The logarithm of n beyond which no root is searched for; longer integers are refused."""
MOST_ITERATIONS = 40


class Ratio(ABC):
    """rho(n), the score of the spike divided by that of an ordinary token; positive at every n."""

    exponent: fmpq
    """rho grows like n to this power."""

    @abstractmethod
    def sign(self, factor: fmpq, offset: fmpq, n: int) -> int:
        """Return the exact sign of `factor rho(n) + offset`, or raise an EngineRefusal."""

    @abstractmethod
    def value(self, n: int) -> Flint:
        """Return rho(n), a rational or a ball of the working precision."""

    @abstractmethod
    def root(self, factor: fmpq, slope: fmpq, offset: fmpq, columns: int, near: int) -> int:
        """Return an estimate of the t with `factor rho(columns t) + slope t = offset`; `near` if there is none."""

    @abstractmethod
    def inverse(self, value: fmpq, columns: int, near: int) -> int:
        """Return an estimate of the t with `rho(columns t) = value`; `near` if there is none."""


@dataclass(frozen=True)
class ConstantRatio(Ratio):
    """rho = (R/r)^beta of linear and power attention, and 1 for softmax with a spike of 0."""

    rho: fmpq
    exponent = fmpq(0)

    def sign(self, factor: fmpq, offset: fmpq, n: int) -> int:
        return int(sign(factor * self.rho + offset))

    def value(self, n: int) -> Flint:
        return self.rho

    def root(self, factor: fmpq, slope: fmpq, offset: fmpq, columns: int, near: int) -> int:
        return near if slope == 0 else floor_of((offset - factor * self.rho) / slope)

    def inverse(self, value: fmpq, columns: int, near: int) -> int:
        return near


@dataclass(frozen=True)
class PowerRatio(Ratio):
    """rho = n^s of softmax, s > 0."""

    exponent: fmpq

    def sign(self, factor: fmpq, offset: fmpq, n: int) -> int:
        factor_sign, offset_sign = sign(factor), sign(offset)
        if factor_sign * offset_sign >= 0:  # rho is positive
            return factor_sign or offset_sign
        for precision in precisions(n):
            with ctx.workprec(precision):
                ball = self.value(n) * factor + offset
            if ball > 0 or ball < 0:
                return 1 if ball > 0 else -1
            # Only a rational n^s can be a tie. The test is left out until a ball has failed: it costs more than one.
            exact = power(fmpq(n), self.exponent)
            if isinstance(exact, fmpq):
                return sign(factor * exact + offset)
        raise EngineRefusal(
            f"undecided at n = {round_up_for_people(n)}: whether a pre-activation exceeds tau is open at "
            f"{precision:,} bits"
        )

    def value(self, n: int) -> Flint:
        return arb(n) ** arb(self.exponent)

    def root(self, factor: fmpq, slope: fmpq, offset: fmpq, columns: int, near: int) -> int:
        s = self.exponent
        if s == 1:
            total = factor * columns + slope
            return near if total == 0 else floor_of(offset / total)
        with ctx.workprec(GUARD_BITS + near.bit_length()):
            start = arb(near).log()
            if factor * slope < 0:
                # The offset matters only at small t. Without it, the equation is linear in log t.
                start = ((arb(-slope / factor)).log() - s * arb(columns).log()) / (s - 1)
        if start > MOST_LOG:
            return 1 << MOST_BITS  # out of range, which the search finds at its first step
        if not start > -MOST_LOG:
            return near
        with ctx.workprec(GUARD_BITS + max(int(float(start) * 1.4427), near.bit_length())):
            return _refine(start, factor, slope, offset, columns, s) or near

    def inverse(self, value: fmpq, columns: int, near: int) -> int:
        log_t = arb(value).log() / self.exponent - arb(columns).log()
        return floor_of(log_t.exp()) if log_t < MOST_LOG else near


def precisions(n: int) -> Iterator[int]:
    """Yield the precisions of balls, in bits, to try in turn at n."""
    precision = PRECISIONS[0] + n.bit_length()
    while precision <= PRECISIONS[-1] + 16 * n.bit_length():
        yield precision
        precision *= 4


def _refine(u: arb, factor: fmpq, slope: fmpq, offset: fmpq, columns: int, s: fmpq) -> int | None:
    """Solve the equation of `Ratio.root` for u = log t by Newton's method on the logarithms of both sides."""
    start = arb(factor if factor > 0 else -factor).log() + s * arb(columns).log()
    least_change = arb(2) ** -int(ctx.prec)
    for _ in range(MOST_ITERATIONS):
        t = u.exp().mid()
        right = (offset - slope * t) / (1 if factor > 0 else -1)
        if not right > 0 or not t > 0:
            return None
        change = ((start + s * u - right.log()) / (s + slope * t / (offset - slope * t))).mid()
        u = (u - change).mid()
        if not abs(u) < MOST_LOG:
            return None
        if abs(change) * t < arb(2) ** -8 or abs(change) < least_change:
            break
    return floor_of(u.exp())
