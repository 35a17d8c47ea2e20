"""Theory 3.7, the caveat: what a tuned threshold does for linear attention."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np

from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import BASE, DELTA, Points, Setting, on_grid, point, relative_error, spike
from separatrix.exact.engines import certified
from separatrix.exact.verdicts import readers
from separatrix.mechanisms import Linear

SPIKES = (Fraction(1, 100), Fraction(6, 5))
B, C = Fraction(1, 5), Fraction(1, 10)
"""BASE's a0, a1, b and c."""
CASES = ((10**3, 4, 80), (10**6, 4, 80), (10**18, 4, 80), (10**3, 6, 300), (10**18, 6, 300))
"""n, d, m."""


def level(a: Fraction, n: int, d: int, triple: tuple[int, ...], plus: int) -> Fraction:
    """The linear pre-activation in a sign state (X = 11ᵀ), in units of sqrt(log n)."""
    total, size = a + n * (B + C), n // (d - 2)
    own, other = (a + B + C) / total, (B + C) / total
    y_1, y_k, y_d = triple
    blocks = y_k * (own + (size - 1) * other) + (2 * plus - (d - 3)) * size * other
    return own * a * y_1 + B * blocks + C * y_d


def best_midpoint(setting: Setting) -> tuple[Fraction, float]:
    """The best tau halfway between two neighbouring pre-activations, and its P(tells apart).

    P changes with tau only at a pre-activation of some sign state, so there is no better tau.
    """
    n, d = setting["n"], setting["d"]
    states = product(SPIKES, product((1, -1), repeat=3), range(d - 2))
    levels = sorted({level(a, n, d, triple, plus) for a, triple, plus in states})
    taus = [(low + high) / 2 for low, high in pairwise([Fraction(0), *(x for x in levels if x > 0)])]
    chances = on_grid(Linear(), setting, tau=taus).distinguish
    best = int(np.nanargmax(chances))
    return taus[best], float(chances[best])


def tuned_point(n: int, d: int, m: int) -> Point:
    """Holds if the best threshold, certified, separates, and is as good as the one that `readers` finds."""
    setting = {**BASE, "n": n, "d": d, "m": m}
    states = list(product(product((1, -1), repeat=3), range(d - 2)))
    levels = [[level(a, n, d, triple, plus) for a in SPIKES] for triple, plus in states]
    chances = [Fraction(math.comb(d - 3, plus), 2**d) for _, plus in states]
    best, _ = best_midpoint(setting)
    tuned = certified.solve(spike(setting, tau=best), Linear())
    usual = certified.solve(spike(setting), Linear())
    reader = readers("spike", "linear", setting).threshold
    counted = tuple(
        sum(p for p, pair in zip(chances, levels, strict=True) if pair[label] > best) for label in (0, 1)
    )
    is_best = reader is not None and relative_error(reader.outcome.distinguish, tuned.distinguish) < 1e-12
    separates = tuned.distinguish >= 1 - DELTA and usual.distinguish <= DELTA
    return point(
        setting,
        separates and is_best and (tuned.p0, tuned.p1) == counted,
        tuned_tau=float(best),
        tuned=tuned.distinguish,
        usual=usual.distinguish,
        p1=str(tuned.p1),
        room_for_tau=float(max(high - low for low, high in levels)),
    )


@claim("tuned-threshold", "3.7", "ours")
def tuned_threshold() -> Finding:
    """'Cannot distinguish' is about this reader with this tau: with a tuned tau and no noise the linear
    network separates the data too, at any n (m of order 2^d).

    Any n, small d; and for comparison the best there is at d = 102.
    """
    points = Points(tuned_point(*case) for case in CASES)
    least, usual = points.smallest("tuned"), points.largest("usual")
    tuned = readers("spike", "linear", {**BASE, "n": 1000}).threshold
    wide = math.nan if tuned is None else tuned.outcome.distinguish
    _, expected = best_midpoint({**BASE, "n": 1000})
    points.add(
        {**BASE, "n": 1000}, relative_error(wide, expected) < 1e-9, best=wide, best_of_midpoints=expected
    )
    return points.conclude(
        f"tau just below what all signs + give on D1: P = {least:.4f} or more up to n = 1e18 (d=4, m=80; "
        f"d=6, m=300), where tau = c + 0.1 gives {usual:.1g}; at d=102, m=12, n=1000 the best tau gives "
        f"{wide:.2f}",
        f"P {least:.3f}; but tau must be right to {points.smallest('room_for_tau'):.0e} at n = 1e18",
    )
