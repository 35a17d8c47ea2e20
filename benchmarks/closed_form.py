"""The engines `closed` and `certified`."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from fractions import Fraction
from functools import partial

import numpy as np

from benchmarks._base import Line, Measurement, at_least, at_most, attempt, ratio, require, seconds
from separatrix.constructions.spike import Spike
from separatrix.core.parameters import Grid
from separatrix.exact.engines import certified, closed
from separatrix.mechanisms import Softmax

SIDE = 1000
FIXED = {"m": 12, "a0": "0.01", "b": "0.2", "c": "0.1"}


def measure() -> Iterator[Line]:
    """Yield the measurements of this file."""
    yield from attempt("exact map of 1,000,000 points, d=1002, n=1e3..1e18", whole_map)
    yield at_most("a point at n=1e18 relative to one at n=1e3", slower_at_large_n, "x", 1.2)
    yield at_most("a point at d=1,000,002 relative to one at d=102", slower_at_large_d, "x", 2.0)
    for d, limit in ((102, 50.0), (10_002, 1000.0)):
        yield at_most(f"certified verdict, d={d:,}", partial(certified_milliseconds, d), "ms", limit)


def whole_map() -> Iterator[Measurement]:
    """Time a large map, and one of its points relative to a literal verdict."""
    grid = plane(1002, 1e3, 1e18)
    check_against_certified(grid)
    whole = seconds(lambda: compute(grid))
    yield at_most("exact map of 1,000,000 points, d=1002, n=1e3..1e18", whole, "s", 0.6)
    points = ratio(literal_dense_verdict, lambda: compute(grid))
    yield at_least("one literal dense verdict, n=2000 d=202, relative to one point", points * SIDE**2, "x", 5e5)


def slower_at_large_n() -> float:
    """Return the time of a point at large n relative to small n."""
    small, large = (plane(1002, n, n * 1.01) for n in (1e3, 1e18))
    return ratio(lambda: compute(large), lambda: compute(small))


def slower_at_large_d() -> float:
    """Return the time of a point at large d relative to small d."""
    narrow, wide = (plane(d, 1e6, 1e18) for d in (102, 1_000_002))
    return ratio(lambda: compute(wide), lambda: compute(narrow))


def certified_milliseconds(d: int) -> float:
    """Return the time of one certified verdict."""
    point = Spike.read({**FIXED, "a1": "1.2", "d": d, "n": 1000 * (d - 2)})
    return 1000 * seconds(lambda: certified.solve(point, Softmax()))


def plane(d: int, low: float, high: float) -> Grid:
    """Return a grid over a1 and n, with n rounded to multiples of d-2."""
    steps = np.linspace(math.log10(low), math.log10(high), SIDE)
    n = [max(1, round(10**x / (d - 2))) * (d - 2) for x in steps]
    a1 = [Fraction(1, 2) + Fraction(i, SIDE - 1) for i in range(SIDE)]
    return Grid({**FIXED, "d": d}, ({"a1": a1}, {"n": n}))


def compute(grid: Grid) -> closed.ProbabilityGrid:
    """Compute all probabilities of a grid."""
    probabilities = closed.evaluate(Spike, Softmax(), grid)
    _ = probabilities.distinguish  # a property; its computation is part of the timed work
    return probabilities


def check_against_certified(grid: Grid) -> None:
    """Compare a hundred points of the map with exact fractions."""
    probabilities, rng = compute(grid), random.Random(0)
    for _ in range(100):
        index = rng.randrange(SIDE), rng.randrange(SIDE)
        truth = certified.solve(Spike(grid.at(Spike.schema, index)), Softmax())
        agree = math.isclose(probabilities.distinguish[index], truth.distinguish, rel_tol=1e-9, abs_tol=1e-300)
        require(agree, f"the exact map at {index}")


def literal_dense_verdict() -> tuple[bool, bool]:
    """Compute the definition in NumPy, with its n-by-n matrix, for D0 and D1."""
    n, d, m = 2000, 202, 12
    rng = np.random.default_rng(0)
    signs = 2.0 * rng.integers(0, 2, (m, d)) - 1
    unit = math.sqrt(math.log(n))
    fired = []
    for a in (0.01, 1.2):
        tokens = np.zeros((n, d))
        tokens[np.arange(n), 1 + np.arange(n) // (n // (d - 2))] = 0.2 * unit
        tokens[:, -1] = 0.1 * unit
        tokens[0, 0] = a * unit
        u = np.exp(tokens @ np.ones((d, d)) @ tokens.T)
        c = (u / u.sum(1, keepdims=True)) @ tokens
        inner = np.maximum(np.maximum(c @ signs.T - 0.2 * unit, 0).sum(1), 0)
        fired.append(bool(max(inner.sum(), 0) > 0))
    return fired[0], fired[1]
