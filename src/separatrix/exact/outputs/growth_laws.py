"""Bounds that hold for every n from one on: the margin, and the distance of the output rows of D0 and D1.

They are proved for the spike with X = 11ᵀ and for cross-attention, where a row gives one weight f to the
spike and equal weights to all other keys: f = w/(w + n - 1), with w the spike's score over that of another
key. The proofs are in docs/theory.md 3.8 and 3.11. Every number is computed in balls and rounded outwards.

>>> from separatrix.constructions.spike import Spike
>>> from separatrix.mechanisms import mechanism_named
>>> margin_law(Spike.read(Spike.example), mechanism_named("linear")).statement
'for every n >= 1000: 5.965762 <= n margin <= 5.989667'
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from flint import arb, ctx, fmpq

from separatrix.constructions import Construction, Label
from separatrix.constructions.cross import Cross
from separatrix.constructions.spike import Spike
from separatrix.core.documents import Document, Hidden, shown, shown_as
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.logforms import Flint, rational
from separatrix.core.numbers.spelling import for_people
from separatrix.exact.outputs.kernels import rational_model
from separatrix.exact.outputs.proved import ends, precision
from separatrix.mechanisms import Linear, Mechanism, Power, Softmax, Taylor

DIGITS = 7
"""Significant digits of a bound in a sentence; JSON has the float."""
SMALLEST = 1e-300
"""Smaller bounds are rounded outwards to this or to 0 in a sentence."""
ALIKE = "all n rows differ alike: sqrt(n) times the distance of one row"
MAX_LOG2_WEIGHT = 900
"""Bounds that may exceed 2 to this power would not be floats."""


@dataclass(frozen=True)
class GrowthLaw(Document):
    """Bounds of a quantity divided by a power of n, for every n from one on."""

    quantity: str
    exponent: Fraction
    """The power of n."""
    start: Hidden[int]
    """The bounds hold for every n from here on, with all other parameters fixed."""
    bounds: Hidden[tuple[Fraction, Fraction]]
    """Bounds of quantity / n^exponent."""
    reason: str
    """The reason in one line."""
    tag: str = "[ours]"

    @shown_as("from")
    def first_n(self) -> int:
        """The bounds hold for every n from here on, with all other parameters fixed."""
        return self.start

    @shown
    def low(self) -> float:
        """A lower bound of quantity / n^exponent, rounded down."""
        low = float(self.bounds[0])
        return low if Fraction(low) <= self.bounds[0] else math.nextafter(low, -math.inf)

    @shown
    def high(self) -> float:
        """An upper bound of quantity / n^exponent, rounded up."""
        high = float(self.bounds[1])
        return high if Fraction(high) >= self.bounds[1] else math.nextafter(high, math.inf)

    @shown
    def statement(self) -> str:
        """The bounds as a sentence, with a few digits rounded outwards."""
        low, high = (_decimal(bound, up) for bound, up in zip(self.bounds, (False, True), strict=True))
        return f"for every n >= {_whole(self.start)}: {low} <= {self.subject} <= {high}"

    @property
    def subject(self) -> str:
        """The bounded quantity, such as `n margin`."""
        power = -self.exponent
        if not power:
            return self.quantity
        if abs(power) == Fraction(1, 2):
            return f"sqrt(n) {self.quantity}" if power > 0 else f"{self.quantity}/sqrt(n)"
        return f"n {self.quantity}" if power == 1 else f"n^{_exponent(power)} {self.quantity}"


@dataclass(frozen=True)
class Shares:
    """The score w of the spike over that of another key, as a function of n, for D0 and D1.

    For softmax, w = n^s with s = `power`; else w is `limit` for every n, or increases to it.
    """

    construction: Construction
    mechanism: Linear | Power | Softmax | Taylor
    row: int
    """The kind of row: 0 for the spike's, -1 for the others."""

    def ratio(self, label: Label, n: int) -> Flint:
        """Return w at n."""
        row = rational_model(self.construction, n).rows[label][self.row]
        return self.mechanism.ratio(row.base, row.spike)

    def weight(self, label: Label, n: int) -> Flint:
        """Return the spike's attention weight f at n."""
        w = self.ratio(label, n)
        return w / (w + (n - 1))

    def limit(self, label: Label) -> Flint:
        """Return the limit of w for kernels in which it is bounded."""
        point = self.construction.parameters
        quotient = 1 + self.amplitude(label) / rational(point.b + point.c)
        if isinstance(self.mechanism, Taylor):
            return quotient**self.mechanism.order
        beta = self.mechanism.beta if isinstance(self.mechanism, Power) else Fraction(1)
        return quotient ** int(beta) if beta.denominator == 1 else arb(quotient) ** arb(rational(beta))

    def power(self, label: Label) -> Fraction:
        """Return the exponent s of w = n^s for softmax."""
        assert isinstance(self.mechanism, Softmax)
        point = self.construction.parameters
        a: Fraction = (point.a0, point.a1)[label]
        row_sum = point.b + point.c + (a if self.row == 0 else 0)
        query: Fraction = point.r_Q if isinstance(self.construction, Cross) else row_sum
        return a * query / self.mechanism.temperature

    def amplitude(self, label: Label) -> fmpq:
        """Return a0 or a1."""
        point = self.construction.parameters
        return rational((point.a0, point.a1)[label])

    def margin(self, n: int) -> Flint:
        """Return a1 f1 - a0 f0 at n."""
        return self.amplitude(1) * self.weight(1, n) - self.amplitude(0) * self.weight(0, n)

    def distance(self, n: int) -> Flint:
        """Return the distance of this row of D0 from that of D1 at n (theory 3.11)."""
        gain = self.weight(1, n) - self.weight(0, n)
        return self.length(self.margin(n), gain * fmpq(n, n - 1))

    def length(self, margin: Flint, gain: Flint) -> Flint:
        """Return sqrt(margin² + b² (d-3)/(d-2) gain²), gain = (f1 - f0) n/(n-1)."""
        point = self.construction.parameters
        share = rational(point.b**2 * Fraction(point.d - 3, point.d - 2))
        return arb(margin * margin + share * (gain * gain)).sqrt()


def margin_law(construction: Construction, mechanism: Mechanism) -> GrowthLaw | None:
    """Return bounds of the margin for every n from the construction's on, or None if none are known."""
    shares = _shares(construction, mechanism)
    if shares is None:
        return None
    with ctx.workprec(precision(construction)):
        if isinstance(shares.mechanism, Softmax):
            return _softmax_margin(shares)
        return _bounded_margin(shares)


def distance_laws(construction: Construction, mechanism: Mechanism) -> tuple[GrowthLaw | None, GrowthLaw | None]:
    """Return bounds of the distance of D0 and D1 in one row, the best one, and in all rows together."""
    shares = _shares(construction, mechanism)
    if shares is None:
        return None, None
    with ctx.workprec(precision(construction)):
        if isinstance(shares.mechanism, Softmax):
            return _softmax_distance(shares), _softmax_total(shares)
        return tuple(_bounded_distances(shares))  # type: ignore[return-value]


def _shares(construction: Construction, mechanism: Mechanism) -> Shares | None:
    """Return the weights of the row that gives the spike most, if a law is known for them."""
    if type(construction) not in (Spike, Cross) or not isinstance(mechanism, Linear | Power | Softmax | Taylor):
        return None
    if isinstance(construction, Spike) and construction.form != "ones":
        return None
    if isinstance(mechanism, Power | Taylor):
        degree = float(mechanism.beta if isinstance(mechanism, Power) else mechanism.order)
        point = construction.parameters
        if degree * math.log2(1 + point.a1 / (point.b + point.c)) > MAX_LOG2_WEIGHT:
            return None
    return Shares(construction, mechanism, 0)


def _bounded_margin(shares: Shares) -> GrowthLaw:
    """Linear, power and Taylor kernels: n f = n w/(n + w - 1) grows with w and with n, to the limit of w.

    If w does not depend on n, n margin grows too: the derivative of a n w/(n + w - 1) is
    a w (w - 1)/(n + w - 1)², which grows with a and w.
    """
    n, (a0, a1) = shares.construction.n, (shares.amplitude(0), shares.amplitude(1))
    high = a1 * shares.limit(1) - a0 * shares.limit(0)
    if isinstance(shares.mechanism, Taylor):
        low = a1 * n * shares.weight(1, n) - a0 * shares.limit(0)
        high = a1 * shares.limit(1) - a0 * n * shares.weight(0, n)
        reason = "n f increases with n to the spike's score in the limit, ((a+b+c)/(b+c))^order"
    else:
        low, reason = n * shares.margin(n), "n margin increases with n to its limit"
    return _law("margin", Fraction(-1), n, low, high, reason)


def _softmax_margin(shares: Shares) -> GrowthLaw:
    """Bounds of a1 f1 - a0 f0 with f = 1/(1 + (n-1) n^-s), from the monotonicity of (n-1) n^-s.

    It decreases from n = s/(s-1) on if s > 1, and increases if s <= 1.
    """
    (s0, s1), n = (shares.power(0), shares.power(1)), shares.construction.n
    if s1 < 1:
        low, high = _small_margin(shares, n)
        name = "s = a1 r_Q" if isinstance(shares.construction, Cross) else "s = a1(a1+b+c)"
        reason = f"{name} is below 1: the spike's weight falls like n^(s-1)"
        return _law("margin", s1 - 1, n, low, high, reason)
    start = max(n, *(math.ceil(s / (s - 1)) for s in (s0, s1) if s > 1), 2)
    (low1, high1), (low0, high0) = (_weight_bounds(shares, label, start) for label in (1, 0))
    a0, a1 = shares.amplitude(0), shares.amplitude(1)
    reason = "the spike's weight increases to 1 in D1 and decreases to 0 in D0"
    if not s0 < 1 < s1:
        limits = [format_exact(Fraction(1, 2) if s == 1 else Fraction(int(s > 1))) for s in (s1, s0)]
        reason = f"the spike's weight is monotone, with limit {limits[0]} in D1 and {limits[1]} in D0"
    return _law("margin", Fraction(0), start, a1 * low1 - a0 * high0, a1 * high1 - a0 * low0, reason)


def _weight_bounds(shares: Shares, label: Label, start: int) -> tuple[Flint, Flint]:
    """Return bounds of softmax's f for every n from `start` on, which is s/(s-1) or more if s > 1."""
    s, first = shares.power(label), shares.weight(label, start)
    if s > 1:
        return first, fmpq(1)
    return (fmpq(1, 2) if s == 1 else fmpq(0)), first


def _small_margin(shares: Shares, n: int) -> tuple[Flint, Flint]:
    """Return bounds of n^(1-s1) margin for s1 < 1."""
    low1, high0 = _small_weights(shares, n)
    # n^s >= 1 makes n^(1-s) f = n/(n - 1 + n^s) at most 1.
    return shares.amplitude(1) * low1 - shares.amplitude(0) * high0, shares.amplitude(1)


def _small_weights(shares: Shares, n: int) -> tuple[Flint, Flint]:
    """Return a lower bound of n^(1-s1) f1 and an upper bound of n^(1-s1) f0, for every n from this one on.

    n^(1-s) f = 1/(1 + k) with k = (n^s - 1)/n, which increases up to n = (1-s)^(-1/s) and decreases from
    there on; its largest value is s (1-s)^(1/s - 1).
    """
    s0, s1 = (arb(rational(shares.power(label))) for label in (0, 1))
    is_past_peak = arb(n) ** s1 * (1 - s1) >= 1
    k = (arb(n) ** s1 - 1) / n if is_past_peak else s1 * (1 - s1) ** (1 / s1 - 1)
    return 1 / (1 + k), arb(n) ** (s0 - s1)


def _bounded_distances(shares: Shares) -> Iterator[GrowthLaw | None]:
    """Linear, power and Taylor kernels: n margin and n²/(n-1) (f1 - f0) have increasing bounds.

    n²/(n-1) (f1 - f0) = n² (w1 - w0)/((n + w0 - 1)(n + w1 - 1)). With w independent of n it increases to
    w1 - w0, and all n rows have the same difference.
    """
    n, limits = shares.construction.n, [shares.limit(label) for label in (0, 1)]
    if isinstance(shares.mechanism, Taylor):
        law = _bounded_margin(shares)
        # Rows without the spike give it less weight, so w0 >= 1 and f0 >= 0 are what holds for all rows.
        high = shares.length(shares.amplitude(1) * limits[1], limits[1] - 1)
        yield _law("distance", Fraction(-1), n, rational(max(law.bounds[0], Fraction(0))), high, law.reason)
        yield None
        return
    low, gain = n * shares.distance(n), limits[1] - limits[0]
    high = shares.length(shares.amplitude(1) * limits[1] - shares.amplitude(0) * limits[0], gain)
    yield _law("distance", Fraction(-1), n, low, high, "n distance increases with n to its limit")
    yield _law("distance", Fraction(-1, 2), n, low, high, ALIKE)


def _softmax_distance(shares: Shares) -> GrowthLaw | None:
    """Bounds for the spike's row, which hold for the best row: no row's weight exceeds the bounds used."""
    (s0, s1), n = (shares.power(0), shares.power(1)), shares.construction.n
    wider = fmpq(max(n, 2), max(n, 2) - 1)
    if s1 < 1:
        (low, high), (low1, high0) = _small_margin(shares, n), _small_weights(shares, n)
        lowest = [x if x > 0 else fmpq(0) for x in (low, low1 - high0)]
        bounds = shares.length(*lowest), shares.length(high, wider)
        return _law("distance", s1 - 1, n, *bounds, "margin and f1 - f0 fall like n^(s-1)")
    if not s0 < 1 < s1:
        return None
    start = max(n, math.ceil(s1 / (s1 - 1)))
    gain = shares.weight(1, start) - shares.weight(0, start)
    bounds = shares.length(shares.margin(start), gain), shares.length(shares.amplitude(1), fmpq(start, start - 1))
    return _law("distance", Fraction(0), start, *bounds, "margin and f1 - f0 increase to a1 and to 1")


def _softmax_total(shares: Shares) -> GrowthLaw | None:
    """All rows where the spike's dominates: the n-1 others have weights of order n^(s'-1), s' < 1/2.

    Together they add at most n (a1² + b² (d-3)/(d-2) (n/(n-1))²) n^(2s'-2), which falls with n. In
    cross-attention all rows are alike.
    """
    law = _softmax_distance(shares)
    if law is None:
        return None
    if isinstance(shares.construction, Cross):
        return replace(law, exponent=law.exponent + Fraction(1, 2), reason=ALIKE)
    others = Shares(shares.construction, shares.mechanism, -1)
    if law.exponent or not 2 * others.power(1) < 1:
        return None
    start = law.start
    bound = shares.length(shares.amplitude(1), fmpq(start, start - 1))
    rest = arb(start) ** arb(rational(2 * others.power(1) - 1))
    high = bound * (1 + rest).sqrt()
    reason = "the spike's row, and n-1 others that add a share of order n^(2 a1 (b+c)/temperature - 1)"
    return _law("distance", Fraction(0), start, rational(law.bounds[0]), high, reason)


def _law(quantity: str, exponent: Fraction, start: int, low: Flint, high: Flint, reason: str) -> GrowthLaw:
    return GrowthLaw(quantity, exponent, start, (ends(low)[0], ends(high)[1]), reason)


def _decimal(bound: Fraction, up: bool) -> str:
    """Return a number with a few digits, rounded in the direction that keeps the statement true.

    >>> _decimal(Fraction(6, 5), up=True), _decimal(Fraction(1, 3), up=True), _decimal(Fraction(1, 3), up=False)
    ('1.2', '0.3333334', '0.3333333')
    """
    if abs(bound) < SMALLEST:
        return "0" if not bound or up == (bound < 0) else f"{'' if up else '-'}{SMALLEST}"
    places = DIGITS - 1 - math.floor(math.log10(abs(bound)))
    scaled = bound * Fraction(10) ** places
    rounded = Fraction(math.ceil(scaled) if up else math.floor(scaled)) / Fraction(10) ** places
    text = format_exact(rounded)
    return text if len(text) <= DIGITS + 6 else f"{float(rounded):.{DIGITS - 1}e}"


def _exponent(power: Fraction) -> str:
    text = format_exact(power)
    return text if len(text) <= DIGITS and "/" not in text else f"({text})"


def _whole(n: int) -> str:
    """Return an integer, in short notation only where that loses no digit."""
    return for_people(n) if int(float(f"{n:.6g}")) == n and n >= 10**6 else str(n)
