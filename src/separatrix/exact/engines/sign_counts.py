"""Counts of sign states: the exact probabilities of one neuron from the least firing P of every sign triple."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

from flint import fmpz

from separatrix.exact.engines.outcome import Neuron

Triple = tuple[int, int, int]
TRIPLES: tuple[Triple, ...] = tuple(product((1, -1), (1, -1), (1, -1)))
"""(y_1, y_k3, y_d)."""


def count_states(least0: Sequence[int], least1: Sequence[int], tails: TailCounts) -> Neuron:
    """Return the probabilities of one neuron that fires on a label from a least P on, in the order of TRIPLES.

    A least P of 0 always fires, and one beyond the number of block signs never does.

    >>> count_states([2] * 8, [1] * 8, TailCounts(1))
    Neuron(p0=Fraction(0, 1), p1=Fraction(1, 2), only=Fraction(1, 2))
    """
    p0 = p1 = only = 0
    for k0, k1 in zip(least0, least1, strict=True):
        tail0, tail1 = tails(k0), tails(k1)
        p0, p1 = p0 + tail0, p1 + tail1
        # Both labels fire from some P on, so D1 fires alone on the counts from k1 to k0.
        only += max(tail1 - tail0, 0)
    states = 1 << (tails.trials + 3)  # the block signs that P counts, and the triple
    return Neuron(Fraction(p0, states), Fraction(p1, states), Fraction(only, states))


class TailCounts:
    """Numbers of sign vectors of length N with at least k plus signs: sums of C(N, i) over i >= k, cached by k.

    >>> [TailCounts(3)(k) for k in (0, 1, 2, 3, 4)]
    [8, 7, 4, 1, 0]
    """

    def __init__(self, trials: int) -> None:
        self.trials = trials
        self._known: dict[int, int] = {}

    def __call__(self, k: int) -> int:
        if k <= 0:
            return 1 << self.trials
        if k > self.trials:
            return 0
        if k not in self._known:
            # The shorter of the two tails is summed; by symmetry, P(X >= k) = 1 - P(X >= trials + 1 - k).
            if 2 * k >= self.trials + 1:
                self._known[k] = self._sum(k)
            else:
                self._known[k] = (1 << self.trials) - self(self.trials + 1 - k)
        return self._known[k]

    def _sum(self, k: int) -> int:
        """C(N,k) (1 + r_k (1 + r_{k+1} (...))) with r_i = (N-i)/(i+1), by binary splitting."""
        _, bottom, total = _split(k, self.trials, self.trials)
        # The sum is an integer, so the division is exact.
        return int(fmpz.bin_uiui(self.trials, k) * (bottom + total) // bottom)


def _split(low: int, high: int, trials: int) -> tuple[fmpz, fmpz, fmpz]:
    """Products of numerators and of denominators of r_i, low <= i < high, and the sum of partial products."""
    if high - low == 0:
        return fmpz(1), fmpz(1), fmpz(0)
    if high - low == 1:
        return fmpz(trials - low), fmpz(low + 1), fmpz(trials - low)
    middle = (low + high) // 2
    top1, bottom1, sum1 = _split(low, middle, trials)
    top2, bottom2, sum2 = _split(middle, high, trials)
    return top1 * top2, bottom1 * bottom2, sum1 * bottom2 + top1 * sum2
