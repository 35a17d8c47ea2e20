"""Enclose every crossing of a level by P as a1 varies: cut a range into intervals with at most one crossing.

The proof is the section "Every crossing in a1" of docs/proofs.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product

from flint import arb, ctx, fmpq

from separatrix.constructions import Construction
from separatrix.constructions.cross import Cross
from separatrix.constructions.spike import Spike
from separatrix.core.errors import EngineRefusal
from separatrix.core.numbers.logforms import Flint, power, rational
from separatrix.exact.engines.certified import TRIPLES, TailCounts, clipped_floors, count, least_firing
from separatrix.exact.engines.outcome import side_of_fractions
from separatrix.exact.outputs.kernels import PRECISIONS
from separatrix.mechanisms import Linear, Mechanism, Power, Softmax

MOST_BLOCKS = 10_000
"""The largest number of block signs; tails of more take long to sum."""
MOST_INTERVALS = 4000
"""The number of intervals to examine before the rest of a range is left open: about two seconds."""
FINEST = Fraction(1, 10**15)
"""Intervals of this width, relative to their upper end, are not cut any further."""

Interval = tuple[Fraction, Fraction]
Slopes = tuple[Flint, Flint]
"""Bounds of the derivative of log rho on an interval."""


@dataclass(frozen=True)
class RangePartition:
    """Values of a1 between which P crosses the level at most once, except in undecided intervals."""

    values: tuple[Fraction, ...]
    undecided_intervals: tuple[Interval, ...]
    """Intervals in which further crossings are not excluded."""


def partition_range(
    point: Construction, mechanism: Mechanism, stop: Fraction, level: Fraction
) -> RangePartition | None:
    """Cut the range of a1 from that of the point to `stop`; None if the theorem does not apply."""
    if not (isinstance(point, Cross) or (isinstance(point, Spike) and point.form == "ones")):
        return None
    if type(mechanism) not in (Softmax, Linear, Power) or point.d > MOST_BLOCKS:
        return None
    with ctx.workprec(PRECISIONS[0] + point.n.bit_length()):
        try:
            bounds = FiringBounds(point, mechanism, level)
        except EngineRefusal:
            return None
        values, undecided, queue = {point.a1, stop}, list[Interval](), [(point.a1, stop)]
        for _ in range(MOST_INTERVALS):
            if not queue:
                break
            low, high = queue.pop()
            if bounds.crosses_at_most_once(low, high):
                continue
            if high - low <= FINEST * high:
                undecided.append((low, high))
                continue
            (cut,) = sections(low, high, 1)
            values.add(cut)
            queue += [(cut, high), (low, cut)]
    return RangePartition(tuple(sorted(values)), tuple(sorted(undecided + queue)))


class FiringBounds:
    """Bounds of P on an interval of a1, from bounds of the least number of + blocks with which each row fires."""

    def __init__(self, point: Spike | Cross, mechanism: Mechanism, level: Fraction) -> None:
        self.point, self.mechanism, self.level = point, mechanism, level
        self.blocks, self.size = point.d - 3, point.block_size
        self.b, self.c, self.tau = (rational(x) for x in (point.b, point.c, point.tau))
        at_start = count(point, mechanism)
        if not at_start.is_decided:
            raise EngineRefusal("a comparison on D0 is undecided")
        self.p0 = at_start.low.p0
        self.firing_counts_d0 = [least_firing(at_start.thresholds, self.blocks, 0, triple, False) for triple in TRIPLES]
        self.tails = TailCounts(self.blocks)
        self.ratios = cache(self._ratios)
        self.side = cache(self._side)

    def crosses_at_most_once(self, low: Fraction, high: Fraction) -> bool:
        """Whether P stays on one side of the level from `low` to `high`, or is monotone there."""
        min_states, max_states, directions = self._counts(low, high)
        side = self.side(min_states)
        return (side is not None and side == self.side(max_states)) or directions in (set(), {1}, {-1})

    def _counts(self, low: Fraction, high: Fraction) -> tuple[int, int, set[int]]:
        """Return bounds of the number of sign states that fire on D1 only, and the directions in which it may go."""
        u, v = rational(low), rational(high)
        rows = list(zip(self.ratios(u), self.ratios(v), self._slopes(u, v), strict=True))
        min_states = max_states = 0
        directions: set[int] = set()
        for (y_1, y_k, y_d), firing_count_d0 in zip(TRIPLES, self.firing_counts_d0, strict=True):
            mu = self.b * y_k + self.c * y_d - self.tau
            base = mu - self.b * self.blocks + self.blocks * (self.c * y_d - self.tau)
            ranges = []
            for at_low, at_high, (min_slope, max_slope) in rows:
                ends = ((u * y_1 + mu, at_low), (v * y_1 + mu, at_high))
                # y_1 (sigma rho)' / rho = 1 + (a + y_1 mu) (log rho)'
                if 1 + (u + y_1 * mu) * max_slope > 0:
                    direction, products = y_1, [sigma * rho for sigma, rho in ends]
                elif 1 + (v + y_1 * mu) * min_slope < 0:
                    direction, products = -y_1, [sigma * rho for sigma, rho in ends]
                else:  # the range of a product of monotone factors
                    direction, products = 0, [sigma * rho for (sigma, _), (_, rho) in product(ends, ends)]
                floors = [
                    clipped_floors(((mu - share) / self.size - base) / (2 * self.b), self.blocks) for share in products
                ]
                ranges.append((min(floor for floor, _ in floors) + 1, max(floor for _, floor in floors) + 1, direction))
            # From firing_count_d0 on D0 fires, too, and a row fires on D1 from the least count of all rows on: larger
            # counts of a single row change nothing.
            cap = min(firing_count_d0, *(last for _, last, _ in ranges))
            directions |= {direction for first, last, direction in ranges if min(first, cap) < min(last, cap)}
            tail_d0 = self.tails(firing_count_d0)
            min_states += max(self.tails(cap) - tail_d0, 0)
            max_states += max(self.tails(min(first for first, _, _ in ranges)) - tail_d0, 0)
        return min_states, max_states, directions

    def _ratios(self, a: fmpq) -> tuple[Flint, ...]:
        """Return rho, the score of the spike relative to an ordinary one, for every kind of row of D1."""
        if isinstance(self.mechanism, Softmax):
            theta = rational(self.mechanism.temperature)
            return tuple(power(fmpq(self.point.n), a * row_sum / theta) for row_sum in self._row_sums(a))
        r, beta = self.b + self.c, self.mechanism.beta if isinstance(self.mechanism, Power) else Fraction(1)
        return (power((a + r) / r, rational(beta)),)

    def _slopes(self, u: fmpq, v: fmpq) -> list[Slopes]:
        """Return bounds of the derivative of log rho for every kind of row."""
        if isinstance(self.mechanism, Softmax):
            rate = arb(self.point.n).log() / rational(self.mechanism.temperature)
            if isinstance(self.point, Cross):
                return [(rate * rational(self.point.r_Q),) * 2]
            r = self.b + self.c
            return [(rate * (2 * u + r), rate * (2 * v + r)), (rate * r, rate * r)]
        r, beta = self.b + self.c, rational(self.mechanism.beta if isinstance(self.mechanism, Power) else Fraction(1))
        return [(beta / (v + r), beta / (u + r))]

    def _row_sums(self, a: fmpq) -> tuple[fmpq, ...]:
        if isinstance(self.point, Cross):
            return (rational(self.point.r_Q),)
        return a + self.b + self.c, self.b + self.c

    def _side(self, only: int) -> int | None:
        return side_of_fractions(self.p0, Fraction(only, 1 << (self.blocks + 3)), self.point.m, self.level)


def sections(low: Fraction, high: Fraction, count: int) -> list[Fraction]:
    """Return `count` short decimals between two rationals, about evenly spaced.

    >>> sections(Fraction(0), Fraction(1), 3)
    [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]
    """
    width = (high - low) / (count + 1)
    # The coarsest decimals that keep the values apart: exact, and short when they are printed.
    scale = 1
    while scale * width < 4:
        scale *= 10
    decimals = (Fraction(round((low + width * i) * scale), scale) for i in range(1, count + 1))
    return [value for value in dict.fromkeys(decimals) if low < value < high]
