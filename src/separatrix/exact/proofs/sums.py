"""Sums of powers of n times polynomials in log n: their signs at integers n and at all large n, and their zeros."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from flint import arb, arb_poly, ctx, fmpq, fmpq_poly

from separatrix.core.errors import EngineRefusal
from separatrix.core.numbers.exact import MOST_BITS, MOST_DIGITS
from separatrix.core.numbers.logforms import Flint, floor_of, power, sign
from separatrix.core.numbers.spelling import round_up_for_people
from separatrix.exact.outputs.kernels import PRECISIONS

GUARD_BITS = 64
"""Bits of a ball beyond those of n: at neighbouring n, the compared numbers differ by a factor of about 1 + 1/n."""
SHORT_BITS = 1 << 10
"""Longer fractions are compared in balls first, which is faster."""
MOST_LOG = MOST_DIGITS * 2.4
"""The logarithm of n beyond which no zero is searched for: slightly above ln 10 for each digit of the longest n."""
FLOAT_LOG = 30.0
"""The logarithm of n up to which a float64 of log n is a good estimate of the integer n."""
MOST_ITERATIONS = 100


@dataclass(frozen=True)
class PowerSum:
    """The sum of n^e p(log n) over rational exponents e, where p is a polynomial with rational coefficients."""

    terms: Mapping[fmpq, fmpq_poly]
    """The polynomials by exponent; none is 0."""

    def __add__(self, addend: PowerSum) -> PowerSum:
        terms = dict(self.terms)
        for exponent, polynomial in addend.terms.items():
            terms[exponent] = terms.get(exponent, 0) + polynomial
        return _without_zeros(terms)

    def __mul__(self, factor: PowerSum) -> PowerSum:
        terms: dict[fmpq, fmpq_poly] = {}
        for e, p in self.terms.items():
            for f, q in factor.terms.items():
                terms[e + f] = terms.get(e + f, 0) + p * q
        return _without_zeros(terms)

    def __rmul__(self, factor: fmpq) -> PowerSum:
        return _without_zeros({e: factor * p for e, p in self.terms.items()})

    def shifted(self, exponent: fmpq) -> PowerSum:
        """Return n^exponent times the sum."""
        return PowerSum({e + exponent: p for e, p in self.terms.items()})

    @cached_property
    def derivative(self) -> PowerSum:
        """The derivative with respect to log n."""
        return _without_zeros({e: e * p + p.derivative() for e, p in self.terms.items()})

    @cached_property
    def is_short_rational(self) -> bool:
        """Whether all terms are c/n, c or c n with short fractions c, so that values are fractions of few digits."""
        return all(
            e in (-1, 0, 1) and p.degree() == 0 and p[0].height_bits() <= SHORT_BITS for e, p in self.terms.items()
        )

    def sign(self, n: int | None) -> int:
        """Return the exact sign at n, or at all large n for None; raise an EngineRefusal if it is undecided."""
        if n is None:
            return sign(self.terms[max(self.terms)].coeffs()[-1]) if self.terms else 0
        if self.is_short_rational:
            return sign(self._exact(n))
        for precision in precisions(n):
            with ctx.workprec(precision):
                ball = self.value(n)
            if ball > 0 or ball < 0:
                return 1 if ball > 0 else -1
            # The test for a tie is left out until a ball has failed: it costs more than one.
            if self._vanishes(n):
                return 0
        raise EngineRefusal(
            f"undecided at n = {round_up_for_people(n)}: the sign of a power sum is open at {precision:,} bits"
        )

    def value(self, n: int) -> Flint:
        """Return the value at n: a rational, or a ball of the working precision."""
        return self._exact(n) if self.is_short_rational else self._at(arb(n).log())

    def _exact(self, n: int) -> fmpq:
        return sum((p[0] * fmpq(n) ** int(e) for e, p in self.terms.items()), fmpq(0))

    def _at(self, log_n: arb) -> arb:
        return sum((arb_poly(p)(log_n) * (log_n * e).exp() for e, p in self.terms.items()), arb(0))

    def _vanishes(self, n: int) -> bool:
        """Whether the value at n is 0.

        log n is transcendental, so the coefficient of each of its powers has to be 0. In a coefficient, the terms are
        grouped by powers of n with rational quotients, and each group has to sum to 0 (docs/proofs.md, comparisons).
        """
        for degree in range(1 + max(p.degree() for p in self.terms.values())):
            totals: dict[fmpq, fmpq] = {}
            for e, p in self.terms.items():
                for exponent in totals:
                    quotient = power(fmpq(n), e - exponent)
                    if isinstance(quotient, fmpq):
                        totals[exponent] += p[degree] * quotient
                        break
                else:
                    totals[e] = p[degree]
            if any(totals.values()):
                return False
        return True

    def estimate_zero(self, first: int, last: int | None) -> int:
        """Return an estimate of the n between two n of opposite signs (None: all large n) at which the sum is 0."""
        low, high = math.log(first), MOST_LOG if last is None else math.log(last)
        is_rising = self._log_ratio(high)[0] > 0
        if last is None and is_rising is not (self.sign(None) > 0):
            return 1 << MOST_BITS + 64  # the zero is beyond MOST_LOG: a value that the search refuses at once
        x = low
        for _ in range(MOST_ITERATIONS):
            value, slope = self._log_ratio(x)
            low, high = (low, x) if (value > 0) is is_rising else (x, high)
            following = x - value / slope if slope else high
            if not low <= following <= high:
                following = (low + high) / 2
            if abs(following - x) <= 1e-15 * x:
                break
            x = following
        return floor_of(arb(x).exp()) if x < FLOAT_LOG else self._refine(x)

    def _log_ratio(self, x: float) -> tuple[float, float]:
        """Return the logarithm of the positive terms over the negative ones at log n = x, and its derivative."""
        logs, slopes = [], []
        for side in (1, -1):
            # Relative to the largest term, so that nothing overflows.
            terms = [(c + e * x + j * math.log(x), e + j / x) for s, c, e, j in self._log_terms if s == side]
            top = max(log for log, _ in terms)
            weights = [math.exp(log - top) for log, _ in terms]
            logs.append(top + math.log(sum(weights)))
            slopes.append(sum(w * slope for w, (_, slope) in zip(weights, terms, strict=True)) / sum(weights))
        return logs[0] - logs[1], slopes[0] - slopes[1]

    @cached_property
    def _log_terms(self) -> list[tuple[int, float, float, int]]:
        """Sign, logarithm of the absolute value, exponent of n and exponent of log n of every term."""
        return [
            (sign(c), float(abs(arb(c)).log()), float(e), j)
            for e, p in self.terms.items()
            for j, c in enumerate(p.coeffs())
            if c != 0
        ]

    def _refine(self, x: float) -> int:
        """Improve an estimate of log n by Newton's method until n is accurate to about one."""
        with ctx.workprec(GUARD_BITS + int(x * 1.4427)):
            u = arb(x)
            for _ in range(MOST_ITERATIONS):
                change = (self._at(u) / self.derivative._at(u)).mid()
                if not abs(change) < 1:
                    break
                u = (u - change).mid()
                if abs(change) * u.exp() < 1:
                    break
            return floor_of(u.exp())


def constant(value: fmpq | fmpq_poly) -> PowerSum:
    """Return a number, or a polynomial in log n, as a sum."""
    return _without_zeros({fmpq(0): fmpq_poly([1]) * value})


def _without_zeros(terms: Mapping[fmpq, fmpq_poly]) -> PowerSum:
    return PowerSum({e: p for e, p in terms.items() if p})


def precisions(n: int) -> Iterator[int]:
    """Yield the precisions of balls, in bits, to try in turn at n."""
    precision = PRECISIONS[0] + n.bit_length()
    while precision <= PRECISIONS[-1] + 16 * n.bit_length():
        yield precision
        precision *= 4
