"""The boundary of softmax in a1 with an error term: a1 (a1+b+c) = 1 up to constants over log n, at every n.

The proof is the section "The boundary with an error term" of docs/proofs.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from flint import arb, ctx

from separatrix.constructions import Construction
from separatrix.constructions.spike import Spike
from separatrix.core.documents import Document, Hidden, shown
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.logforms import floor_of, rational
from separatrix.mechanisms import Mechanism, Softmax

PRECISION = 128
STEPS = 1000
"""Constants are multiples of 1/1000."""


@dataclass(frozen=True)
class ErrorTerm(Document):
    """Where P is below and above the level, at every n >= `n` and d >= `d`."""

    n: int
    d: int
    below: Fraction | None
    """P is below the level wherever a1 (a1+b+c) / temperature <= 1 - below / log n; null if that is not proved."""
    above: Fraction | None
    """P is above the level wherever a1 (a1+b+c) / temperature >= 1 - above / log n; null if that is not proved."""
    level: Hidden[Fraction]
    temperature: Hidden[Fraction]

    @shown
    def statement(self) -> str:
        """The theorem in one sentence."""
        divisor = "" if self.temperature == 1 else f"/{format_exact(self.temperature)}"
        parts = [
            f"P {sign} {format_exact(self.level)} if a1(a1+b+c){divisor} {sign}= 1 - {float(constant):g}/log n"
            for sign, constant in (("<", self.below), (">", self.above))
            if constant is not None
        ]
        return f"For every n >= {self.n} and d >= {self.d}, all else equal: {' and '.join(parts)} (proved) [ours]."


def bound_error_term(point: Construction, mechanism: Mechanism, level: Fraction) -> ErrorTerm | None:
    """Return the constants of theorem B1 of docs/proofs.md for a point with any a1; None where nothing is proved."""
    if not isinstance(point, Spike) or point.form != "ones" or type(mechanism) is not Softmax or point.tau <= point.c:
        return None
    with ctx.workprec(PRECISION):
        constants = _ErrorBounds(point, mechanism.temperature, level)
        below, above = constants.below(), constants.above()
    if below is None and above is None:
        return None
    return ErrorTerm(point.n, point.d, below, above, level, mechanism.temperature)


class _ErrorBounds:
    """The bounds of theorem B1 of docs/proofs.md, in balls.

    h = tau - c, and gamma = (1 - s) log n for s = a1 (a1+b+c) / temperature.
    """

    def __init__(self, point: Spike, temperature: Fraction, level: Fraction) -> None:
        self.n, self.d, self.m = point.n, point.d, point.m
        self.a0, self.b, self.c, self.h, self.temperature, self.level = (
            arb(rational(x)) for x in (point.a0, point.b, point.c, point.tau - point.c, temperature, level)
        )
        self.log_n = arb(self.n).log()

    def below(self) -> Fraction | None:
        """Return a gamma from which on P < level, C of the theorem, rounded up."""
        allowed = 1 - (1 - self.level) ** (arb(1) / self.m)  # one neuron may fire on D1 this often
        eta = self.b * (-2 * allowed.log() / (self.d - 2)).sqrt()
        weight = (self.h - eta) / (self._alpha(arb(0)) + self.b)
        if not weight > 0:
            return None
        odds = (1 / weight - 1) / (1 - arb(1) / self.n)
        return Fraction(floor_of((odds.log() * STEPS).upper()) + 1 if odds > 1 else 1, STEPS)

    def above(self) -> Fraction | None:
        """Return a gamma up to which P > level, rounded down."""
        if not self._is_above(0):
            return None
        low, high = 0, math.floor(float(self.log_n) * STEPS)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._is_above(middle) else (low, middle)
        return Fraction(low, STEPS)

    def _is_above(self, steps: int) -> bool:
        gamma = arb(steps) / STEPS
        s0 = self.a0 * (self.a0 + self.b + self.c) / self.temperature
        eta = self.h - (self.a0 + self.b) / (1 + (self.n - 1) * (-s0 * self.log_n).exp())
        if not (s0 < 1 and eta > 0):
            return False
        p0 = (-((eta / self.b) ** 2) * (self.d - 2) / 2).exp()
        f, a = 1 / (1 + gamma.exp()), self._alpha(gamma)
        p1 = sum((self._firing_probability(f, a, *signs) for signs in product((1, -1), repeat=2)), arb(0)) / 8
        return bool((1 - p0) ** self.m - (1 - p1) ** self.m > self.level)

    def _firing_probability(self, f: arb, a: arb, y_k: int, y_d: int) -> arb:
        """Return pi of the theorem: the spike's row fires on D1 with this probability or more at these signs."""
        needed = self.h + self.c * (1 - y_d)
        slack = (f * (a + y_k * self.b) - needed) / ((1 - f) * self.b) - (arb(1) / (self.d - 2) if y_k < 0 else 0)
        if not slack > 0 or (y_k < 0 and not a - self.b > needed):
            return arb(0)
        tail = 1 - (-(slack**2) * (self.d - 3) / 2).exp()
        return tail if tail > 0.5 else arb(0.5)

    def _alpha(self, gamma: arb) -> arb:
        """Return alpha of the theorem, the a1 with s = 1 - gamma / log n; it grows with n."""
        r = self.b + self.c
        return ((r**2 + 4 * self.temperature * (1 - gamma / self.log_n)).sqrt() - r) / 2
