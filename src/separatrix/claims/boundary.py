"""Theory 3.5, where the separation stops: sharp boundaries, and width that does not grow."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import (
    BASE,
    DELTA,
    Points,
    Setting,
    crossing,
    limit_in_log,
    on_grid,
    point,
    relative_error,
    short,
    spike,
)
from separatrix.constructions import Construction
from separatrix.constructions.spike import Spike
from separatrix.exact.engines import certified
from separatrix.mechanisms import Softmax

CLOSE = 2e-4
"""How near the extrapolated boundary must come to the one claimed."""
SIZES = [10**e for e in (3, 6, 12, 30, 100, 300)]


def boundary_finding(
    sizes: Sequence[int],
    limit: float,
    setting: Callable[[int], Setting],
    kind: type[Construction] = Spike,
    most: str = "1.5",
    checks: Sequence[Point] = (),
) -> Finding:
    """Where P(tells apart) crosses 1/2 in a1 as n grows: from below, and to `limit` like 1/log n.

    `checks` are further points that have to hold.
    """
    points = Points(checks)
    for n in sizes:
        a1, before = crossing_in_a1(setting(n), kind, most), points.largest("crossing")
        gap = limit - a1
        rises = math.isnan(before) or a1 > before
        points.add(setting(n), rises and gap > 0, crossing=a1, gap=gap, gap_log_n=gap * math.log(n))
    reached = limit_in_log(sizes, points.values("crossing"))
    away = abs(reached - limit)
    points.add({}, away < CLOSE, extrapolated=reached, claimed=limit, away=away)
    first, last = short(sizes[0]), short(sizes[-1])
    return points.conclude(
        f"P crosses 1/2 at a1 = {points.smallest('crossing'):.4f} for n = {first} and rises to "
        f"{points.largest('crossing'):.4f} for n = {last}; extrapolated in 1/log n to {reached:.5f}, "
        f"claimed {limit:.5f}",
        f"limit off by {away:.0e}; {points.largest('gap'):.2f} lower at n = {first}",
    )


def crossing_in_a1(setting: Setting, kind: type[Construction] = Spike, most: str = "1.5") -> float:
    """The a1 from 0.5 to `most` at which P(tells apart) crosses 1/2."""
    return crossing(lambda a1: on_grid(Softmax(), setting, kind, a1=a1).distinguish, "0.5", most)


def engines_agree(setting: Setting) -> Point:
    """Check the float64 engine, on which crossings rely, against certified fractions at one point."""
    neuron = certified.count(spike(setting), Softmax()).low
    grid = on_grid(Softmax(), setting)
    errors = {
        "p0_error": relative_error(float(grid.p0), float(neuron.p0)),
        "p1_error": relative_error(float(grid.p1), float(neuron.p1)),
    }
    return point(setting, max(errors.values()) < 1e-12, **errors)


def _ones(n: int) -> Setting:
    return {**BASE, "a1": "searched", "n": n}


def limit_ones(r: Any) -> Any:
    """The a1 with a1 (a1 + r) = 1, of a number or an array of them.

    >>> float(limit_ones(1.5))
    0.5
    """
    return (np.sqrt(r * r + 4) - r) / 2


@claim("boundary-ones", "3.5", "ours")
def boundary_ones() -> Finding:
    """X = 11ᵀ, the theorem's other conditions kept (small a0, a1 - b > 0.1, m and d large enough): the a1 at
    which softmax comes to separate tends to a1(a1+b+c) = 1 (b=.2, c=.1: 0.861; extrapolated in n); at finite
    n it is lower.

    The root of a(a+b+c) = 1 for b = .2, c = .1.
    """
    return boundary_finding(SIZES, float(limit_ones(0.3)), _ones)


@claim("spike-share", "3.5", "ours")
def spike_share() -> Finding:
    """Why it is lower at finite n: it is enough that the spike and its block sign add about 0.1, (a1+b)
    f(j3,j3) = 0.1.

    At each crossing, how much the spike adds: (a1 + b) f(j3,j3), in units of sqrt(log n).
    """
    points = Points()
    for n in SIZES:
        a1 = crossing_in_a1(_ones(n))
        f = 1 / (1 + (n - 1) * math.exp(-a1 * (a1 + 0.3) * math.log(n)))
        share = (a1 + 0.2) * f
        points.add(_ones(n), abs(share - 0.1) < 0.01, a1=a1, f=f, a1_f=a1 * f, with_block=share)
    return points.conclude(
        f"at P = 1/2 the spike and its block sign add (a1+b) f = {points.smallest('with_block'):.3f} to "
        f"{points.largest('with_block'):.3f} (the spike alone a1 f = {points.smallest('a1_f'):.3f} to "
        f"{points.largest('a1_f'):.3f}), n = 1e3 to 1e300",
        f"(a1+b) f = {points.smallest('with_block'):.3f} or more; claimed 0.1",
    )


def _growing(n: int) -> Setting:
    """d - 2 = sqrt(n), which outgrows n^{b²} for b = 0.2."""
    return {**BASE, "a1": "searched", "form": "identity", "n": n, "d": math.isqrt(n) + 2}


@claim("boundary-identity", "3.5", "ours")
def boundary_identity() -> Finding:
    """X = I, d growing faster than n^{b²}, the other conditions kept: the a1 at which softmax comes to
    separate tends to a1² + b² = 1 (one b and c tried; extrapolated in n).

    a1² + b² = 1 with d - 2 = sqrt(n); near the boundary the engine is compared with certified fractions.
    """
    sizes = [10 ** (2 * k) for k in (2, 3, 4, 6, 10, 14)]
    checks = [
        engines_agree({**_growing(n), "a1": a1}) for n in sizes[:2] for a1 in ("0.84", "0.87", "0.9", "0.95")
    ]
    return boundary_finding(sizes, math.sqrt(1 - 0.2**2), _growing, checks=checks)


IDENTITY: Setting = {**BASE, "b": "0.5", "form": "identity"}


@claim("identity-separates", "3.5", "ours")
def identity_separates() -> Finding:
    """X = I: softmax separates D0 from D1 for large n.

    Inside: d grows with n. Outside: d = 1002 however large n is. Where the spike's block takes over, the
    engine is compared with certified fractions.
    """
    inside = Points(separates(10 ** (2 * k), 10**k + 2) for k in (3, 4, 6, 8, 12))
    outside = Points(separates(10**e, 1002) for e in (10, 12, 14, 18))
    sizes = [1000 * round(10 ** (e / 10 - 3)) for e in range(60, 130)]
    along = on_grid(Softmax(), {**IDENTITY, "d": 1002}, n=sizes).distinguish
    gone = next(
        (f"{n:.0e}".replace("+0", "") for n, p in zip(sizes, along, strict=True) if p < 0.5), "none tried"
    )
    inside += [engines_agree({**IDENTITY, "n": 10**e, "d": 1002}) for e in (6, 8, 9, 10, 12)]
    left = outside.largest("distinguish")
    return inside.conclude_where(
        outside,
        "d grows faster than n^{b²}; with d fixed, the tokens in the spike's block win once n^{b²} >> d",
        f"P = {inside.smallest('distinguish'):.5f} or more with d-2 = sqrt(n) up to n = 1e24; at d = 1002, "
        f"b = 0.5 it falls through 1/2 at n = {gone} and is {left:.0e} or less from n = 1e10 on",
        f"P = {left:.0e} at d = 1002 from n = 1e10 on",
    )


def separates(n: int, d: int) -> Point:
    """Holds if softmax distinguishes at this n and d."""
    found = on_grid(Softmax(), {**IDENTITY, "n": n, "d": d})
    p, crowd = float(found.distinguish), math.exp(0.25 * math.log(n)) / (d - 2)
    measured = {"distinguish": p, "p0": float(found.p0), "n_to_b2_over_blocks": crowd}
    return point({**IDENTITY, "n": n, "d": d}, p >= 1 - DELTA, **measured)
