"""The least firing P of one label, sign triple and kind of row, for every n at once.

The numerator of (pre-activation - tau), `N(P, t) = sigma rho(n) + w_P t - mu` with n = (d-2) t, decides: the row
fires exactly if N > 0. It grows with P, so the row fires from a least P on, T(t). By the shape lemma of
docs/proofs.md, T is monotone on both sides of at most one turn, and takes its limit at some finite t.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from flint import ctx, fmpq

from separatrix.constructions import Label
from separatrix.core.errors import EngineRefusal
from separatrix.core.numbers.exact import MOST_BITS, MOST_DIGITS
from separatrix.core.numbers.logforms import Flint, floor_of, sign
from separatrix.exact.engines.certified import Triple
from separatrix.exact.proofs.ratios import GUARD_BITS, Ratio

Steps = tuple[tuple[int, int], ...]
"""Pairs (t, T): T is the least firing P from this t until the next one, the last for ever."""


@dataclass(frozen=True)
class FiringLine:
    """T(t) for one label, sign triple and kind of row; t is the number of tokens in a block, n = (d-2) t."""

    label: Label
    signs: Triple
    row: str
    """`spike`, `other`, or `every` where all rows are equal."""
    ratio: Ratio
    columns: int
    """d - 2, the number of blocks; as a value of T it means that the row never fires."""
    sigma: fmpq
    """a y1 + mu, the spike's own contribution beyond tau."""
    mu: fmpq
    """b yk + c yd - tau, the contribution beyond tau of the other tokens in the spike's block."""
    base: fmpq
    """w_0, the contribution of all blocks, one token of each, if the other blocks have P = 0 plus signs."""
    rise: fmpq
    """2b, by which w_P grows with P."""
    start: int
    """The least t."""

    def fires(self, plus: int, t: int) -> bool:
        """Whether the row fires if `plus` of the other blocks have a plus sign; a tie does not fire."""
        slope = self.base + plus * self.rise
        return self.ratio.sign(self.sigma, slope * t - self.mu, self.columns * t) > 0

    def least(self, t: int) -> int:
        """Return T(t): the least P that fires, or `columns` if none does."""
        n = self.columns * t
        with ctx.workprec(GUARD_BITS + n.bit_length()):
            # N(P, t) > 0 exactly if P exceeds this.
            x = ((self.mu - self.ratio.value(n) * self.sigma) / t - self.base) / self.rise
            low, high = (x, x) if isinstance(x, fmpq) else (x.lower(), x.upper())
            first, last = (self._clip(end) for end in (low, high))
        while first < last:  # rounding leaves several candidates: decide exactly
            middle = (first + last) // 2
            first, last = (first, middle) if self.fires(middle, t) else (middle + 1, last)
        return first

    def _clip(self, x: Flint) -> int:
        """Return floor(x) + 1 within 0..columns."""
        # Compared before converting: a number that is far out has no integer of reasonable size.
        if x < 0:
            return 0
        if x >= self.columns:
            return self.columns
        return min(floor_of(x) + 1, self.columns)

    @cached_property
    def limit(self) -> int:
        """The value of T at all large t."""
        s, sigma, mu = self.ratio.exponent, self.sigma, self.mu
        if s > 1 and sigma != 0:
            return 0 if sigma > 0 else self.columns
        # x of `least` tends to this, and `side` is the sign of the difference, which decides where it is an integer.
        x = ((-sigma * self.columns if s == 1 else 0) - self.base) / self.rise
        if s == 0:
            side = -self.ratio.sign(sigma, -mu, self.columns)
        else:
            side = -sign(sigma) if s < 1 and sigma != 0 else sign(mu)
        least = -floor_of(-x) if side < 0 else floor_of(x) + 1
        return min(max(least, 0), self.columns)

    @cached_property
    def turn(self) -> int | None:
        """The t such that T is monotone up to t and from t+1 on; None if it is monotone from the start."""
        # With x of `least`: 2b n^2/(d-2) dx/dn = -(factor n^s + mu), and n^s is monotone in n.
        factor = self.sigma * (self.ratio.exponent - 1)
        if self.ratio.exponent == 0 or sign(factor) * sign(self.mu) >= 0:
            return None
        first = self._turning(factor, self.start)
        if first in (0, sign(factor)):
            return None
        near = self.ratio.inverse(-self.mu / factor, self.columns, self.start)
        return _first_where(lambda t: self._turning(factor, t) != first, self.start, None, near) - 1

    def _turning(self, factor: fmpq, t: int) -> int:
        return self.ratio.sign(factor, self.mu, self.columns * t)

    @cached_property
    def steps(self) -> Steps:
        """All values of T from the start on."""
        pieces: tuple[tuple[int, int | None], ...] = ((self.start, None),)
        if self.turn is not None:
            pieces = ((self.start, self.turn), (self.turn + 1, None))
        steps: list[tuple[int, int]] = []
        for low, high in pieces:
            for t, least in self._piece(low, high):
                if not steps or steps[-1][1] != least:
                    steps.append((t, least))
        return tuple(steps)

    def _piece(self, low: int, high: int | None) -> Iterator[tuple[int, int]]:
        """Yield the steps of T on a piece on which it is monotone, from `low` to `high` (None: for ever)."""
        t, least = low, self.least(low)
        last = self.limit if high is None else self.least(high)
        yield t, least
        while least != last:
            if least < last:
                t = self._first(lambda t, plus=least: not self.fires(plus, t), least, t, high)  # type: ignore[misc]
            else:
                t = self._first(lambda t, plus=least - 1: self.fires(plus, t), least - 1, t, high)  # type: ignore[misc]
            least = self.least(t)
            yield t, least

    def _first(self, holds: Callable[[int], bool], plus: int, low: int, high: int | None) -> int:
        """Return the first t beyond `low` from which on `holds`, near the zero of N(plus, t)."""
        slope = self.base + plus * self.rise
        return _first_where(holds, low, high, self.ratio.root(self.sigma, slope, self.mu, self.columns, low))


def _first_where(holds: Callable[[int], bool], low: int, high: int | None, near: int) -> int:
    """Return the least t in (low, high] from which on a monotone condition holds, searching from `near`.

    The condition does not hold at `low`, and holds at `high` (None: at all large t).

    >>> _first_where(lambda t: t * t > 1000, 1, None, 5)
    32
    """
    near = max(near, low + 1) if high is None else min(max(near, low + 1), high)
    distance = 1  # squared at every step: of numbers with thousands of digits, the number of digits is doubled
    if holds(near):
        high = near
        while high - distance > low and holds(high - distance):
            high, distance = high - distance, 2 * distance * distance
        low = max(low, high - distance)
    else:
        low = near
        while (high is None or low + distance < high) and not holds(low + distance):
            low, distance = low + distance, 2 * distance * distance
            if low.bit_length() > MOST_BITS:
                raise EngineRefusal(f"open: a firing threshold changes beyond n = 10^{MOST_DIGITS}, the largest n here")
        high = low + distance if high is None else min(low + distance, high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
