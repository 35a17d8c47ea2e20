"""Upper tails of Bin(N, 1/2): tables for many queries, an integral for huge N.

Relative accuracy matters: m may be 1e30, and m times a tail decides. The relative error of every tail is at
most ACCURACY, except below LEAST, where float64 underflows.
"""

from __future__ import annotations

import math
from copy import copy
from functools import lru_cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

EXACT_TO = 2048
"""Up to this N tables are computed from integers."""
WINDOW = 40.0
"""Standard deviations covered by a table on either side; beyond, the tail is 0 or 1 in float64."""
ACCURACY = 1e-12
"""A bound on the relative error of every tail, tables and integral alike."""
LEAST = 1e-290
"""The absolute error of tails below this."""
ROUNDING = float(np.finfo(np.longdouble).eps) / 2
MOST_ENTRIES = min(1 << 21, int(ACCURACY / (2 * ROUNDING)))
"""The maximum total size of tables: with three roundings per entry, errors would add up to ACCURACY."""
WHOLE = 2.0**52
"""Up to this size, integers and their halves are exact in float64."""


class Tails:
    """P[Bin(N, 1/2) >= k] for every N of a small array and large arrays of k.

    >>> tails = Tails(np.array(3))
    >>> tails(np.array([0, 1, 2, 3, 4])).tolist()
    [1.0, 0.875, 0.5, 0.125, 0.0]
    """

    def __init__(self, trials: Array) -> None:
        self.trials = trials
        distinct = np.unique(trials)
        has_all_tables = distinct[-1] <= WHOLE and sum(_window(float(n))[1] for n in distinct) <= MOST_ENTRIES
        self._far: Array | None = None if has_all_tables else trials > EXACT_TO
        """Where no table exists."""
        tabulated_sizes = distinct if has_all_tables else distinct[distinct <= EXACT_TO]
        tables = [_table(int(n)) for n in tabulated_sizes] or [(0, np.zeros(1))]
        lengths = np.array([len(table) for _, table in tables])
        position = np.minimum(np.searchsorted(tabulated_sizes, trials), len(tables) - 1)
        self._table = np.concatenate([table for _, table in tables])
        self._first = np.array([first for first, _ in tables])[position]
        self._last = lengths[position] - 1
        self._offset = (np.cumsum(lengths) - lengths)[position]

    def cut(self, piece: tuple[slice, ...]) -> Tails:
        """Return the tails for a part of the array of N."""
        if not piece or self.trials.ndim == 0 or self.trials.shape[0] == 1:
            return self
        part = copy(self)
        part.trials = self.trials[piece]
        part._first, part._last, part._offset = (x[piece] for x in (self._first, self._last, self._offset))
        part._far = None if self._far is None else self._far[piece]
        return part

    def __call__(self, k: Array) -> Array:
        """Return the tails at integers k (of any dtype), broadcast against N."""
        if self._far is None:
            # Beyond its ends a table continues with 1 and 0, which its first and last entries are.
            index = np.clip(k - self._first, 0, self._last).astype(np.int32)
            values: Array = self._table.take(index + self._offset)
            return values
        within = np.clip(k, 0, self.trials + 1)
        k, trials, far, offset = np.broadcast_arrays(within, self.trials, self._far, self._offset)
        tails = np.array(self._table.take(np.where(far, 0, k).astype(np.int64) + offset))
        tails[far] = upper_tail(k[far], trials[far])
        return tails


def upper_tail(k: Array, trials: Array) -> Array:
    """Return P[Bin(N, 1/2) >= k] for N above EXACT_TO, from the smaller of the two tails."""
    # 2k - N is exact for the k within the window, and cancels before 1 is subtracted.
    excess = np.asarray((2.0 * k - trials) - 1.0)
    smaller = np.zeros(np.shape(excess))
    inside = np.abs(excess) <= WINDOW * np.sqrt(trials)
    smaller[inside] = _smaller_tail(np.abs(excess[inside]), np.asarray(trials)[inside] + 1.0)
    # 1 minus the larger tail would lose the digits of a small one, so the smaller one is computed.
    return np.where(excess < 0, 1.0 - smaller, smaller)


NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


def _smaller_tail(excess: Array, nu: Array) -> Array:
    """Return the tail at k = (nu + A)/2, with nu = N + 1 and A >= 0.

    `I_{1/2}(k, nu-k) = 2^-N / B(k, nu-k) * integral of exp(-A t) sech(t)^nu over t > 0`. The factor is
    Stirling's, the integral in units of 1/sqrt(nu) Gauss's rule up to where the integrand is e^-40:
    in these units it hardly depends on nu, and 24 nodes are good to 3e-14.
    """
    root = np.sqrt(nu)
    slope = excess / root
    reach = 80 / (slope + np.sqrt(slope * slope + 80))
    total = np.zeros(np.shape(excess))
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        y = reach * ((1 + node) / 2)
        total += weight * np.exp(-slope * y - 0.5 * nu * np.log1p(np.sinh(y / root) ** 2))
    log_factor, u = _log_factor(excess, nu)
    factor = np.sqrt((1 - u * u) / 2 / np.longdouble(np.pi)) * np.exp(log_factor)
    tail: Array = (factor * (total * reach / 2)).astype(float)
    return tail


def _log_factor(excess: Array, nu: Array) -> tuple[Array, Array]:
    """Return -nu H(u) plus the Stirling correction of 1/B, and u = A/nu; H is the relative entropy.

    Its absolute error is the relative error of the tail, and it may be in the hundreds: so it is computed in
    extended precision.
    """
    excess, nu = excess.astype(np.longdouble), nu.astype(np.longdouble)
    u = excess / nu
    entropy = (np.log1p(-u * u) + 2 * u * np.arctanh(u)) / 2
    return -nu * entropy + _stirling(nu) - _stirling((nu + excess) / 2) - _stirling((nu - excess) / 2), u


def _stirling(x: Array) -> Array:
    """Return the correction to Stirling's formula for log Gamma(x), accurate to 1e-18 for x above 100."""
    square = x * x
    correction: Array = (1 - (1 - 2 / (7 * square)) / (30 * square)) / (12 * x)
    return correction


def _window(trials: float) -> tuple[int, int]:
    """Return the first k of the table and its length; its last entry is 0."""
    reach = WINDOW * math.sqrt(trials) / 2 + 2
    first = max(0, math.floor(trials / 2 - reach))
    last = min(trials + 1, math.ceil(trials / 2 + reach))
    return first, int(last - first + 1)


@lru_cache(maxsize=256)
def _table(trials: int) -> tuple[int, Array]:
    """Return the first k of the window and P[Bin >= k] for its k."""
    if trials <= EXACT_TO:
        total, term, sums = 0, 1, [0.0]
        for k in range(trials, -1, -1):
            total, term = total + term, term * k // (trials - k + 1)
            sums.append(total / (1 << trials))
        return 0, np.array(sums[::-1])
    first, length = _window(trials)
    middle, end = (trials + 1) // 2, first + length - 1
    counts = np.arange(middle, end - 1, dtype=np.longdouble)
    # Products of ratios from the middle outwards, in extended precision: their roundings add up.
    steps = np.concatenate([[np.longdouble(_central(trials))], (trials - counts) / (counts + 1)])
    # Summed from the far end, so that small terms are not lost to large partial sums.
    upper = np.cumsum(np.cumprod(steps)[::-1])[::-1].astype(float)
    lower = 1.0 - np.append(upper, [0.0, 0.0])[trials + 2 - 2 * middle :]
    return first, np.concatenate([lower[: middle - first][::-1], upper, [0.0]])


def _central(trials: int) -> float:
    """Return C(N, N//2) / 2^N by Stirling's series for the central binomial coefficient."""
    h = (trials + 1) // 2
    return math.exp(-1 / (8 * h) + 1 / (192 * h**3) - 1 / (640 * h**5)) / math.sqrt(math.pi * h)
