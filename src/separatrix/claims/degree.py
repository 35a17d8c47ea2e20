"""Theory 3.10, degree: how steep a kernel must be."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from flint import arb

from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import (
    BASE,
    DELTA,
    Array,
    Points,
    crossing,
    on_grid,
    point,
    relative_error,
    settled,
    short,
)
from separatrix.core.numbers.logforms import LogForm, rational
from separatrix.core.tensors import torch
from separatrix.mechanisms import Power, Taylor

STEEP, FLAT = math.log(1.5 / 0.3), math.log(0.31 / 0.3)
"""log(R/r) for the spike of D1 and for the one of D0, at BASE's parameters."""
SIZES = [10**e for e in (3, 6, 9, 12, 18, 100)]


def separation(n: int, degrees: list[Fraction]) -> Array:
    """P(tells apart) of power attention at each degree."""
    return np.array([float(on_grid(Power(beta=beta), {**BASE, "n": n}).distinguish) for beta in degrees])


@claim("critical-degree", "3.10", "ours")
def critical_degree() -> Finding:
    """Power attention <q,k>^beta separates if and only if beta is about log n / log(R/r) or more, with R =
    a1+b+c, r = b+c.

    Inside: from the crossing up, where the spike and its block sign add about 0.1 as in 3.5. Outside: far
    above, where D0's own spike gets the weight.
    """
    inside = Points(degree_point(n) for n in SIZES)
    outside = Points(too_steep(n) for n in SIZES[:4])
    found, claimed = (", ".join(f"{x:.1f}" for x in inside.values(name)) for name in ("beta", "claimed"))
    return inside.conclude_where(
        outside,
        "beta also stays below about log n / log((a0+b+c)/(b+c)), past which D0's small spike is found too",
        f"P crosses 1/2 at beta = {found} for n = 1e3 to 1e100, where log n / log(R/r) = {claimed}; at "
        f"n = 1e3, beta = {outside.smallest('beta'):.0f} P is {outside.values('distinguish')[0]:.2f} again",
        f"beta {-inside.largest('shift'):.2f} to {-inside.smallest('shift'):.2f} lower, at any n",
    )


def degree_point(n: int) -> Point:
    """Holds if P crosses at log n / log(R/r) less a constant, and is high in the middle of the range.

    At the crossing (a1+b) f(j3,j3) is about 0.1, with f = 1/(1 + (n-1)(r/R)^beta); and the mechanism's own
    log ratio is beta log(R/r).
    """
    claimed, top = math.log(n) / STEEP, math.log(n) / FLAT
    middle = Fraction(round(math.sqrt(claimed * top)))
    beta = crossing(lambda degrees: separation(n, degrees), "0.1", middle, cells=8, rounds=5)
    plateau, shift = float(separation(n, [middle])[0]), beta - claimed
    share = 1.4 / (1 + (n - 1) * math.exp(-beta * STEEP))
    base, step = np.array(0.45 * math.log(n)), np.array(1.8 * math.log(n))
    off = max(
        relative_error(float(Power(beta=degree).log_ratio(base, step)), float(degree) * math.log(5))
        for degree in (Fraction(1), Fraction(5, 2), middle)
    )
    is_placed = -3 / STEEP < shift < 0 and abs(share - 0.1) < 0.01
    return point(
        {**BASE, "n": n},
        is_placed and plateau >= 1 - DELTA and off < 1e-12,
        beta=beta,
        claimed=claimed,
        shift=shift,
        plateau=plateau,
        with_block=share,
        ratio_off=off,
    )


def too_steep(n: int) -> Point:
    """Holds if twice the degree at which D0's own spike gets the weight still separates."""
    beta = round(2 * math.log(n) / FLAT)
    found = float(separation(n, [Fraction(beta)])[0])
    return point({**BASE, "n": n, "beta": beta}, found >= 1 - DELTA, beta=beta, distinguish=found)


ORDERS = (1, 2, 4, 8, 16, 32, 64)
LAST_EXHAUSTIVE_ORDER = 4
LADDER = [100 * round(10 ** (e / 4)) for e in range(60)] + [10**e for e in range(17, 301)]


@claim("taylor-order", "3.10", "ours")
def taylor() -> Finding:
    """Softmax with its exponential cut off at a fixed order goes blind as n grows (this reader, tau = c +
    0.1, m = 12): from 100 (R/r)^order on at the latest, since T(sx)/T(x) <= s^order.

    For orders up to 4 the least n from which on it is blind, among all multiples of d-2 up to that bound; for
    others the first of a ladder of n.
    """
    points = Points(taylor_point(order) for order in ORDERS)
    shown = ", ".join(f"{each.measured['blind_from']} (order {each.parameters['order']})" for each in points)
    low, high = points.smallest("log10_room"), points.largest("log10_room")
    return points.conclude(
        f"blind from n = {shown}, and from there to 1e300; of all multiples of 100 up to order "
        f"{LAST_EXHAUSTIVE_ORDER}, of the n tried above it",
        f"10^{low:.1f} to 10^{high:.1f} below the bound 100 (R/r)^order",
    )


def taylor_point(order: int) -> Point:
    """Holds if P stays at most delta from some n within the bound on."""
    sizes = sizes_for(order)
    found = on_grid(Taylor(order=order), BASE, n=sizes).distinguish
    first = settled(found <= DELTA)
    if first == len(sizes):
        return point({**BASE, "order": order}, False, blind_from="never")
    room = 2 + order * STEEP / math.log(10) - math.log10(sizes[first])
    off = max(
        abs(math.expm1(taylor_ratio(order, n) - computed))
        for n in (1000, 10**6)
        for computed in log_ratios_of(order, n)
    )
    return point(
        {**BASE, "order": order},
        room >= 0 and off < 1e-12,
        blind_from=short(sizes[first]),
        log10_room=room,
        ratio_off=off,
    )


def taylor_ratio(order: int, n: int) -> float:
    """log T(R² log n)/T(R r log n), R = 1.5 and r = 0.3, with T summed term by term in fractions."""
    log_n = Fraction(math.log(n))
    high, low = (
        sum(x**k / math.factorial(k) for k in range(order + 1))
        for x in (Fraction(9, 4) * log_n, Fraction(9, 20) * log_n)
    )
    return math.log(high / low)


def log_ratios_of(order: int, n: int) -> tuple[float, float, float]:
    """The same by the mechanism: from `log_ratio` in float64, `ratio` in balls and `score` on tokens.

    The base is the logit of the spike's own row on the other tokens, the step leads to that on its own.
    """
    mechanism, log_n = Taylor(order=order), math.log(n)
    in_floats = float(mechanism.log_ratio(np.array(0.45 * log_n), np.array(1.8 * log_n)))
    unit = LogForm.log(rational(n))
    ball = mechanism.ratio(rational(Fraction(9, 20)) * unit, rational(Fraction(9, 5)) * unit)
    low, high = mechanism.score(torch.tensor([0.45 * log_n, 2.25 * log_n], dtype=torch.float64)).tolist()
    return in_floats, float(arb(ball).log()), math.log(high / low)


def sizes_for(order: int) -> list[int]:
    """Every admissible n up to the bound where these are few, and a ladder of n beyond."""
    if order > LAST_EXHAUSTIVE_ORDER:
        return LADDER
    step, bound = BASE["d"] - 2, 100 * 5**order  # R/r = 1.5/0.3 = 5
    return [*range(step, bound + 1, step), *(n for n in LADDER if n > bound)]
