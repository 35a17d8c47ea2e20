"""The least firing P of one label, sign triple and kind of row, for every n at once.

Divided by t and by the score of an ordinary token, (pre-activation - tau) times the sum of the scores is
`numerator(n)/ordinary(n) + w_P`, where only the constant w_P depends on P and grows with it. So the row fires from a
least P on, T(t), and T is monotone wherever numerator/ordinary is: docs/proofs.md has the lemmas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from flint import ctx, fmpq

from separatrix.constructions import Label
from separatrix.core.errors import EngineRefusal
from separatrix.core.numbers.exact import MOST_BITS, MOST_DIGITS
from separatrix.core.numbers.logforms import Flint, floor_of
from separatrix.exact.engines.certified import Triple
from separatrix.exact.proofs.sums import GUARD_BITS, PowerSum

Steps = tuple[tuple[int, int], ...]
"""Pairs (t, T): T is the least firing P from this t until the next one, the last for ever."""
BEYOND = f"open: a firing threshold changes beyond n = 10^{MOST_DIGITS}, the largest n here"
Range = tuple[int, int | None]
"""First and last t; None if it has no end."""


@dataclass(frozen=True)
class FiringLine:
    """T(t) for one label, sign triple and kind of row; t is the number of tokens in a block, n = (d-2) t."""

    label: Label
    signs: Triple
    row: str
    own_sign: int
    """The sign of the row's own block, or 0 if it does not matter."""
    block_count: int
    """d - 2, the number of blocks; as a value of T it means that the row never fires."""
    numerator: PowerSum
    """F of docs/proofs.md: `ordinary` times the contributions of the spike, its block and the row's own block."""
    ordinary: PowerSum
    """The score of an ordinary token, in the unit of all scores."""
    base: fmpq
    """w_0, the contribution of all other blocks, one token of each, at P = 0.

    P counts the plus signs of all blocks but the spike's, including the row's own one, whose sign is known: it is
    subtracted here.
    """
    rise: fmpq
    """2b, by which w_P grows with P."""
    start: int
    """The least t."""

    def excess(self, plus: int) -> PowerSum:
        """Return the sum that is positive exactly if the row fires with P = `plus`."""
        return self.numerator + (self.base + plus * self.rise) * self.ordinary

    def least_firing_count(self, t: int | None) -> int:
        """Return T(t), or T at all large t for None: the least P that fires, or `block_count` if none does."""
        first, last, n = 0, self.block_count, self._length(t)
        if n is not None:
            with ctx.workprec(GUARD_BITS + n.bit_length()):
                # The row fires exactly if P exceeds this.
                x = -(self.numerator.value(n) / self.ordinary.value(n) + self.base) / self.rise
                low, high = (x, x) if isinstance(x, fmpq) else (x.lower(), x.upper())
                first, last = self._clip(low), self._clip(high)
        while first < last:  # rounding leaves several candidates: decide exactly
            middle = (first + last) // 2
            # A tie does not fire.
            first, last = (first, middle) if self.excess(middle).sign(n) > 0 else (middle + 1, last)
        return first

    def _length(self, t: int | None) -> int | None:
        return None if t is None else self.block_count * t

    def _clip(self, x: Flint) -> int:
        """Return floor(x) + 1 within 0..block_count."""
        # Compared before converting: a number that is far out has no integer of reasonable size.
        if x < 0:
            return 0
        if x >= self.block_count:
            return self.block_count
        return min(floor_of(x) + 1, self.block_count)

    @cached_property
    def levels(self) -> tuple[PowerSum, ...]:
        """The sums h_1, h_2, … of Lemma 2 in docs/proofs.md.

        h_1 has the sign of the derivative of numerator/ordinary by log n; h_{i+1} is the derivative of h_i divided by
        its least power of n. The last one is a single term, so it has one sign.
        """
        levels = []
        level = self.numerator.derivative * self.ordinary + fmpq(-1) * (self.numerator * self.ordinary.derivative)
        while level.terms:
            levels.append(level)
            level = level.shifted(-min(level.terms)).derivative
        return tuple(levels)

    @cached_property
    def turns(self) -> tuple[int, ...]:
        """The t that end a range: on each range, no level changes its sign, so that T is monotone."""
        ranges: list[Range] = [(self.start, None)]
        # Where h_{i+1} keeps its sign, h_i times a power of n is monotone, so h_i changes its sign at most once.
        for level in reversed(self.levels):
            ranges = [part for whole in ranges for part in self._cut(level, *whole)]
        return tuple(last for _, last in ranges if last is not None)

    def _cut(self, level: PowerSum, first: int, last: int | None) -> tuple[Range, ...]:
        """Cut a range after the last t with the sign of the first, if a sum changes its sign in it."""
        side = level.sign(self.block_count * first)
        if side * level.sign(self._length(last)) >= 0:
            return ((first, last),)
        cut = self._first_where(level, lambda sign: sign != side, first, last) - 1
        return (first, cut), (cut + 1, last)

    @property
    def ranges(self) -> list[Range]:
        """The ranges on each of which T is monotone."""
        return list(zip([self.start, *(turn + 1 for turn in self.turns)], [*self.turns, None], strict=True))

    def most_steps(self) -> int:
        """Return an upper bound on the number of steps, without searching for them."""
        ends = ((self.least_firing_count(first), self.least_firing_count(last)) for first, last in self.ranges)
        return sum(1 + abs(least - final) for least, final in ends)

    @cached_property
    def steps(self) -> Steps:
        """All values of T from the start on."""
        steps: list[tuple[int, int]] = []
        for first, last in self.ranges:
            for t, least in self._piece(first, last):
                if not steps or steps[-1][1] != least:
                    steps.append((t, least))
        return tuple(steps)

    def _piece(self, low: int, high: int | None) -> Iterator[tuple[int, int]]:
        """Yield the steps of T on a range on which it is monotone, from `low` to `high` (None: for ever)."""
        t, least, last = low, self.least_firing_count(low), self.least_firing_count(high)
        yield t, least
        while least != last:
            is_rising = least < last
            # T rises where P = `least` stops firing, and falls where one less starts firing.
            excess = self.excess(least if is_rising else least - 1)
            t = self._first_where(excess, (lambda sign: sign <= 0) if is_rising else (lambda sign: sign > 0), t, high)
            least = self.least_firing_count(t)
            yield t, least

    def _first_where(self, level: PowerSum, holds: Callable[[int], bool], low: int, high: int | None) -> int:
        """Return the least t in (low, high] from which on the sign of a sum satisfies a condition."""
        near = level.estimate_zero(self.block_count * low, self._length(high)) // self.block_count
        t = first_where(lambda t: holds(level.sign(self.block_count * t)), low, high, near)
        if t.bit_length() > MOST_BITS:
            raise EngineRefusal(BEYOND)
        return t


def first_where(holds: Callable[[int], bool], low: int, high: int | None, near: int) -> int:
    """Return the least t in (low, high] from which on a monotone condition holds, searching from `near`.

    The condition does not hold at `low`, and holds at `high` (None: at all large t).

    >>> first_where(lambda t: t * t > 1000, 1, None, 5)
    32
    """
    near = max(near, low + 1) if high is None else min(max(near, low + 1), high)
    distance = 1  # about squared at every step, so that few steps suffice for a t with thousands of digits
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
                raise EngineRefusal(BEYOND)
        high = low + distance if high is None else min(low + distance, high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
