"""Upper tails of Bin(N, 1/2): tables for many queries, functions for huge N."""

from __future__ import annotations

import math
from copy import copy
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import betainc, ndtr

Array = np.ndarray[Any, Any]

EXACT_TO = 2048
"""Up to this N a table is rounded from integers."""
WINDOW = 40.0
"""Standard deviations a table reaches to either side: beyond, the tail is 0 or 1 in float64."""
MOST_ENTRIES = 1 << 21
"""Tables larger than this in all are not built."""


class Tails:
    """`P[Bin(N, 1/2) >= k]` for every N of a small array, looked up for large arrays of k.

    >>> tails = Tails(np.array(3))
    >>> tails(np.array([0, 1, 2, 3, 4])).tolist()
    [1.0, 0.875, 0.5, 0.125, 0.0]
    """

    def __init__(self, trials: Array) -> None:
        self.trials = trials
        self._table: Array | None = None
        distinct = np.unique(trials)
        if sum(_window(float(n))[1] for n in distinct) <= MOST_ENTRIES:
            tables = [_table(int(n)) for n in distinct]
            lengths = np.array([len(table) for _, table in tables])
            place = np.searchsorted(distinct, trials)
            self._table = np.concatenate([table for _, table in tables])
            self._first = np.array([first for first, _ in tables])[place]
            self._last = lengths[place] - 1
            self._offset = (np.cumsum(lengths) - lengths)[place]

    def cut(self, piece: tuple[slice, ...]) -> Tails:
        """The tails for a part of the array of N."""
        if not piece or self.trials.ndim == 0 or self.trials.shape[0] == 1:
            return self
        part = copy(self)
        part.trials = self.trials[piece]
        if part._table is not None:
            part._first, part._last, part._offset = (
                x[piece] for x in (self._first, self._last, self._offset)
            )
        return part

    def __call__(self, k: Array) -> Array:
        """The tails at whole numbers k (as floats or integers), broadcast against N."""
        return self.at(self.place(k))

    def place(self, k: Array) -> Array:
        """Where `at` finds the tail of k; the same place for all k beyond either end."""
        if self._table is None:
            return np.clip(k, 0, self.trials + 1)
        place: Array = np.clip(k - self._first, 0, self._last).astype(np.int32)
        return place

    def at(self, place: Array) -> Array:
        """The tails at places."""
        if self._table is None:
            return _by_function(place, self.trials)
        found: Array = self._table.take(place + self._offset)
        return found


NORMAL_FROM = 1e14
"""From this N on, the normal tail with a continuity correction is the more accurate one."""


def _by_function(k: Array, trials: Array) -> Array:
    inside = np.clip(k, 1, trials)
    normal = ndtr((trials - 2.0 * k + 1.0) / np.sqrt(trials))
    tail = np.where(trials < NORMAL_FROM, betainc(inside, trials - inside + 1.0, 0.5), normal)
    found: Array = np.where(k <= 0, 1.0, np.where(k > trials, 0.0, tail))
    return found


def _window(trials: float) -> tuple[int, int]:
    """The first k of the table, and its length; its last entry is 0."""
    reach = WINDOW * math.sqrt(trials) / 2 + 2
    first = max(0, math.floor(trials / 2 - reach))
    last = min(trials + 1, math.ceil(trials / 2 + reach))
    return first, int(last - first + 1)


@lru_cache(maxsize=256)
def _table(trials: int) -> tuple[int, Array]:
    """P[Bin >= k] for k in the window; 1 just below it, 0 at its end."""
    if trials <= EXACT_TO:
        total, term, sums = 0, 1, [0.0]
        for k in range(trials, -1, -1):
            total, term = total + term, term * k // (trials - k + 1)
            sums.append(total / (1 << trials))
        return 0, np.array(sums[::-1])
    first, length = _window(trials)
    counts = np.arange(first, first + length - 2, dtype=np.longdouble)
    steps = np.log((trials - counts) / (counts + 1))
    log_mass = np.concatenate([[np.longdouble(0)], np.cumsum(steps)])
    middle = trials // 2 - first
    log_mass += _log_central(trials) - log_mass[middle]
    tails = np.concatenate([np.cumsum(np.exp(log_mass)[::-1])[::-1], [np.longdouble(0)]]).astype(float)
    tails[0] = 1.0
    return first, np.minimum(tails, 1.0)


def _log_central(trials: int) -> float:
    """log of `C(N, N//2) / 2^N`, by Stirling's series for the central binomial coefficient."""
    h = (trials + 1) // 2
    return -0.5 * math.log(math.pi * h) - 1 / (8 * h) + 1 / (192 * h**3) - 1 / (640 * h**5)
