"""Theory 3.5, 3.10 and 5, boundaries: in the amplitude, in width, in the degree, in cross-attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from separatrix.claims import _literal as literal
from separatrix.claims._base import BASE, DELTA, Array, Finding, Point, Points, Setting, claim
from separatrix.claims._tools import crossing, first_settled, limit_in_log, on_grid, relative_error, short, spike
from separatrix.claims.units import attention_weights
from separatrix.constructions import Construction
from separatrix.constructions.cross import Cross
from separatrix.constructions.spike import Spike
from separatrix.core.numbers.logforms import LogForm, rational
from separatrix.core.tensors import torch
from separatrix.exact.engines import certified
from separatrix.exact.outputs.kernels import rational_model, spike_weights
from separatrix.exact.proofs import certify_uniformly
from separatrix.exact.proofs.uniform import prove_uniformly
from separatrix.mechanisms import Linear, Power, Softmax, Taylor

MAX_LIMIT_ERROR = 2e-4
"""The distance allowed between the extrapolated boundary and the claimed one."""
BOUNDARY_SIZES = [10**e for e in (3, 6, 12, 30, 100, 300)]


def boundary_finding(
    sizes: Sequence[int],
    limit: float,
    setting: Callable[[int], Setting],
    kind: type[Construction] = Spike,
    largest_a1: str = "1.5",
    checks: Points | None = None,
) -> Finding:
    """Check where P(tells apart) crosses 1/2 in a1 as n grows: from below, and to `limit` like 1/log n.

    `checks` are further points that have to hold; the others are added to them.
    """
    points = Points() if checks is None else checks
    for n in sizes:
        a1, before = crossing_in_a1(setting(n), kind, largest_a1), points.crossing.max
        gap = limit - a1
        rises = math.isnan(before) or a1 > before
        points.add(setting(n), rises and gap > 0, crossing=a1, gap=gap, gap_log_n=gap * math.log(n))
    estimate = limit_in_log(sizes, points.crossing)
    away = abs(estimate - limit)
    points.add({}, away < MAX_LIMIT_ERROR, extrapolated=estimate, claimed=limit, away=away)
    return points.conclude(
        f"P crosses 1/2 at a1 = {points.crossing.min:.4f} for n = {short(sizes[0])} and rises to "
        f"{points.crossing.max:.4f} for n = {short(sizes[-1])}; extrapolated in 1/log n to "
        f"{points.extrapolated.max:.5f}, claimed {points.claimed.max:.5f}",
        f"limit off by {points.away.max:.0e}; {points.gap.max:.2f} lower at n = {short(sizes[0])}",
    )


def crossing_in_a1(setting: Setting, kind: type[Construction] = Spike, largest_a1: str = "1.5") -> float:
    """Return the a1 above 0.5 at which P(tells apart) crosses 1/2."""
    return crossing(lambda a1: on_grid(Softmax(), setting, kind, a1=a1).distinguish, "0.5", largest_a1)


def engines_agree(setting: Setting) -> Point:
    """Check the float64 engine, on which crossings rely, against certified fractions at one point."""
    neuron, grid = certified.count(spike(setting), Softmax()).low, on_grid(Softmax(), setting)
    p0_error, p1_error = relative_error(grid.p0, neuron.p0), relative_error(grid.p1, neuron.p1)
    return Point(setting, max(p0_error, p1_error) < 1e-12, p0_error=p0_error, p1_error=p1_error)


DISTANCES = {0.1: 12, 0.01: 120, 0.001: 1200}
"""Distances from the limit of the boundary, and powers of ten from which on P is on the right side there."""


def ones_setting(n: int) -> Setting:
    """Return the parameters at which a1 is searched for with X = 11ᵀ."""
    return {**BASE, "a1": "searched", "n": n}


def limit_ones(r: Any) -> Any:
    """Return the a1 with a1 (a1 + r) = 1, for a number or an array.

    >>> float(limit_ones(1.5))
    0.5
    """
    return (np.sqrt(r * r + 4) - r) / 2


@claim("boundary-ones", "3.5", "ours")
def boundary_ones() -> Finding:
    """X = 11ᵀ, the theorem's other conditions kept (small a0, a1 - b > 0.1, m and d large enough): the a1 at
    which softmax comes to separate tends to a1(a1+b+c) = 1 (b=.2, c=.1: 0.861); at finite n it is lower.

    From some n on P > 1/2 for every a1 at some distance above the root, and P < 1/2 for every a1 below it.
    """
    limit, points = float(limit_ones(0.3)), Points()
    for distance, exponent in DISTANCES.items():
        for ranges in (f"a1={limit + distance:.6f}:", f"a1=:{limit - distance:.6f}"):
            proof = prove_uniformly("softmax", f"d=102: a0=:0.01 {ranges}", BASE, start=10**exponent)
            above, below = proof.at_least or 0.0, proof.at_most or 0.0
            points.verify(certify_uniformly(proof), above > 0.5 or 0 < below < 0.5, distance=distance)
    return boundary_finding(BOUNDARY_SIZES, limit, ones_setting, checks=points)


@claim("spike-share", "3.5", "ours")
def spike_share() -> Finding:
    """Why it is lower at finite n: it is enough that the spike and its block sign add about 0.1, (a1+b)
    f(j3,j3) = 0.1.

    The contribution of the spike at each crossing: (a1 + b) f(j3,j3), in units of sqrt(log n).
    """
    points = Points()
    for n in BOUNDARY_SIZES:
        a1 = crossing_in_a1(ones_setting(n))
        f = 1 / (1 + (n - 1) * math.exp(-a1 * (a1 + 0.3) * math.log(n)))
        share = (a1 + 0.2) * f
        points.add(ones_setting(n), abs(share - 0.1) < 0.01, a1=a1, f=f, a1_f=a1 * f, with_block=share)
    return points.conclude(
        f"at P = 1/2 the spike and its block sign add (a1+b) f = {points.with_block.min:.3f} to "
        f"{points.with_block.max:.3f} (the spike alone a1 f = {points.a1_f.min:.3f} to "
        f"{points.a1_f.max:.3f}), n = 1e3 to 1e300",
        f"(a1+b) f = {points.with_block.min:.3f} or more; claimed 0.1",
    )


def growing_setting(n: int) -> Setting:
    """Return the parameters for X = I with d - 2 = sqrt(n), which outgrows n^{b²} for b = 0.2."""
    return {**BASE, "a1": "searched", "form": "identity", "n": n, "d": math.isqrt(n) + 2}


@claim("boundary-identity", "3.5", "ours")
def boundary_identity() -> Finding:
    """X = I, d growing faster than n^{b²}, the other conditions kept: the a1 at which softmax comes to
    separate tends to a1² + b² = 1 (one b and c tried; extrapolated in n).

    a1² + b² = 1 with d - 2 = sqrt(n); near the boundary the engine is compared with certified fractions.
    """
    sizes = [10 ** (2 * k) for k in (2, 3, 4, 6, 10, 14)]
    amplitudes = ("0.84", "0.87", "0.9", "0.95")
    checks = Points(engines_agree({**growing_setting(n), "a1": a1}) for n in sizes[:2] for a1 in amplitudes)
    return boundary_finding(sizes, math.sqrt(1 - 0.2**2), growing_setting, checks=checks)


IDENTITY: Setting = {**BASE, "b": "0.5", "form": "identity"}


@claim("identity-separates", "3.5", "ours")
def identity_separates() -> Finding:
    """X = I: softmax separates D0 from D1 for large n.

    Inside: d grows with n. Outside: d = 1002 however large n is. Where the spike's block takes over, the
    engine is compared with certified fractions.
    """
    inside = Points(separates(10 ** (2 * k), 10**k + 2) for k in (3, 4, 6, 8, 12))
    outside = Points(separates(10**e, 1002) for e in (10, 12, 14, 18))
    # Ten n per decade from 1e6 up to 1e13, rounded to multiples of d - 2 = 1000.
    sizes = [1000 * round(10 ** (e / 10 - 3)) for e in range(60, 130)]
    distinguish = on_grid(Softmax(), {**IDENTITY, "d": 1002}, n=sizes).distinguish
    below_half = (f"{n:.0e}".replace("+0", "") for n, p in zip(sizes, distinguish, strict=True) if p < 0.5)
    inside += [engines_agree({**IDENTITY, "n": 10**e, "d": 1002}) for e in (6, 8, 9, 10, 12)]
    turn, largest_p = next(below_half, "none tried"), outside.distinguish.max
    return inside.conclude_where(
        outside,
        "d grows faster than n^{b²}; with d fixed, the tokens in the spike's block win once n^{b²} >> d",
        f"P = {inside.distinguish.min:.5f} or more with d-2 = sqrt(n) up to n = 1e24; at d = 1002, b = 0.5 "
        f"it falls through 1/2 at n = {turn} and is {largest_p:.0e} or less from n = 1e10 on",
        f"P = {largest_p:.0e} at d = 1002 from n = 1e10 on",
    )


def separates(n: int, d: int) -> Point:
    """Check that softmax distinguishes at this n and d."""
    setting = {**IDENTITY, "n": n, "d": d}
    grid, crowd = on_grid(Softmax(), setting), math.exp(0.25 * math.log(n)) / (d - 2)
    p = float(grid.distinguish)
    return Point(setting, p >= 1 - DELTA, distinguish=p, p0=float(grid.p0), n_to_b2_over_blocks=crowd)


MAX_CROSS_ERROR = 1e-11
CROSS_SETTINGS = ((60, 7, "0.5", "1.2"), (100, 12, "1.5", "0.9"), (40, 22, "0.2", "2"))
"""n, d, r_Q, a1."""


def cross_softmax_weight(n: int, a: float, r_q: float) -> float:
    """Return f(., j3) = 1/(1 + (n-1) n^{-a r_Q})."""
    return 1 / (1 + (n - 1) * math.exp(-a * r_q * math.log(n)))


def cross_linear_weight(n: int, a: float, r: float = 0.3) -> float:
    """Return f(., j3) = R/(R + (n-1) r) with the row sums r = b+c of the keys and R = a + r, for any r_Q."""
    return (a + r) / (a + r + (n - 1) * r)


def literal_cross_weights(n: int, d: int, a: float, r_q: float) -> Array:
    """Return f(j, j3) of every row j for uneven queries that have only their row sum in common."""
    queries = np.random.default_rng(0).uniform(-1, 1, (n, d))
    # The same shift of all entries of a row gives it the row sum r_q.
    queries += (r_q - queries.sum(1, keepdims=True)) / d
    keys = literal.spike_matrix(n, d, a, 0.2, 0.1)
    scores = literal.logits(queries.tolist(), literal.weight_matrix("ones", d), keys)
    size = float(n)
    return np.array([literal.unit(row, lambda z: size**z, keys).f[0] for row in scores])


@claim("cross-weight", "5", "ours")
def cross_weight() -> Finding:
    """Cross-attention, X = 11ᵀ: every query row has f(.,j3) = 1/(1+(n-1)n^{-a r_Q}), with r_Q the row sum of
    the queries.

    The closed form against loops on uneven queries, and against the construction's dense tokens. Linear's,
    R/(R+(n-1)r), is compared with dense tokens and with the weights of the certified engine.
    """
    points = Points()
    for n, d, r_q, a1 in CROSS_SETTINGS:
        construction = Cross.read({**BASE, "n": n, "d": d, "m": 1, "r_Q": r_q, "a1": a1})
        softmax, linear = cross_softmax_weight(n, float(a1), float(r_q)), cross_linear_weight(n, float(a1))
        tokens, model = construction.dense(1, 0, torch.float64), rational_model(construction)
        exact = [spike_weights(unit, model, 1)["query"] for unit in (Softmax(), Linear())]
        by_loops = literal_cross_weights(n, d, float(a1), float(r_q))
        on_tokens = [attention_weights(unit, tokens)[:, 0] for unit in (Softmax(), Linear())]
        rows = zip((by_loops, *on_tokens), (softmax, softmax, linear), strict=True)
        errors = [float(np.abs(weights / formula - 1).max()) for weights, formula in rows]
        errors.append(relative_error(list(map(float, exact)), [softmax, linear]))
        names = ("error_loops", "error_dense", "error_linear", "error_certified")
        results = {"weight": softmax, **dict(zip(names, errors, strict=True))}
        points.add({"n": n, "d": d, "r_Q": r_q, "a1": a1}, max(errors) <= MAX_CROSS_ERROR, **results)
    worst = points.values("error_loops", "error_dense").max
    return points.conclude(
        f"every query row, uneven queries included, has the closed form's weight to {worst:.1e} (relative)",
        f"error {worst:.1e}, allowed {MAX_CROSS_ERROR:.0e}",
    )


@claim("boundary-cross", "5", "ours")
def boundary_cross() -> Finding:
    """Cross-attention, the other conditions kept: the a1 at which softmax comes to separate tends to a1 r_Q =
    1 (extrapolated in n); at finite n it is lower.

    a1 r_Q = 1 with r_Q = 1/2: a1 = 2.
    """
    return boundary_finding(BOUNDARY_SIZES, 2.0, lambda n: {**ones_setting(n), "r_Q": "0.5"}, Cross, "3")


STEEP, FLAT = math.log(1.5 / 0.3), math.log(0.31 / 0.3)
"""log(R/r) for the spike of D1 and for the one of D0, at BASE's parameters."""
DEGREE_SIZES = [10**e for e in (3, 6, 9, 12, 18, 100)]


def separation(n: int, degrees: list[Fraction]) -> Array:
    """Return P(tells apart) of power attention at each degree."""
    return np.array([float(on_grid(Power(beta=beta), {**BASE, "n": n}).distinguish) for beta in degrees])


@claim("critical-degree", "3.10", "ours")
def critical_degree() -> Finding:
    """Power attention <q,k>^beta separates if and only if beta is about log n / log(R/r) or more, with R =
    a1+b+c, r = b+c.

    Inside: from the crossing up, where the spike and its block sign add about 0.1 as in 3.5. Outside: far
    above, where D0's own spike gets the weight.
    """
    inside = Points(degree_point(n) for n in DEGREE_SIZES)
    outside = Points(steep_point(n) for n in DEGREE_SIZES[:4])
    betas, limits = (", ".join(f"{x:.1f}" for x in inside.values(name)) for name in ("beta", "claimed"))
    return inside.conclude_where(
        outside,
        "beta also stays below about log n / log((a0+b+c)/(b+c)), past which D0's small spike is found too",
        f"P crosses 1/2 at beta = {betas} for n = 1e3 to 1e100, where log n / log(R/r) = {limits}; at n = "
        f"1e3, beta = {outside.beta.min:.0f} P is {outside.distinguish[0]:.2f} again",
        f"beta {-inside.shift.max:.2f} to {-inside.shift.min:.2f} lower, at any n",
    )


def degree_point(n: int) -> Point:
    """Check that P crosses at log n / log(R/r) less a constant, and is high in the middle of the range.

    At the crossing (a1+b) f(j3,j3) is about 0.1, with f = 1/(1 + (n-1)(r/R)^beta); and the mechanism's own
    log ratio is beta log(R/r).
    """
    limit, top = math.log(n) / STEEP, math.log(n) / FLAT
    # The geometric mean of both ends is far from either at any n.
    middle = Fraction(round(math.sqrt(limit * top)))
    beta = crossing(lambda degrees: separation(n, degrees), "0.1", middle, cells=8, rounds=5)
    plateau, shift = float(separation(n, [middle])[0]), beta - limit
    share = 1.4 / (1 + (n - 1) * math.exp(-beta * STEEP))
    base, step = np.array(0.45 * math.log(n)), np.array(1.8 * math.log(n))
    degrees = (Fraction(1), Fraction(5, 2), middle)
    log_ratios = [Power(beta=degree).log_ratio(base, step) for degree in degrees]
    ratio_off = relative_error(log_ratios, [float(degree) * math.log(5) for degree in degrees])
    is_at_crossing = -3 / STEEP < shift < 0 and abs(share - 0.1) < 0.01
    holds = is_at_crossing and plateau >= 1 - DELTA and ratio_off < 1e-12
    results = {"beta": beta, "claimed": limit, "shift": shift, "plateau": plateau, "with_block": share}
    return Point({**BASE, "n": n}, holds, **results, ratio_off=ratio_off)


def steep_point(n: int) -> Point:
    """Check whether twice the degree at which D0's own spike gets the weight still separates."""
    beta = round(2 * math.log(n) / FLAT)
    p = float(separation(n, [Fraction(beta)])[0])
    return Point({**BASE, "n": n, "beta": beta}, p >= 1 - DELTA, beta=beta, distinguish=p)


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
    starts = ", ".join(f"{p.measured['blind_from']} (order {p.parameters['order']})" for p in points)
    for order in ORDERS:
        n = 100 * 5**order  # R/r = 1.5/0.3 = 5
        proof = prove_uniformly(f"taylor:order={order}", "d=102: a0=:0.01 a1=:1.2", BASE, start=n)
        points.verify(certify_uniformly(proof), proof.verdict == "blind", at_most=proof.at_most)
    return points.conclude(
        f"blind from n = {starts}, and from there to 1e300; of all multiples of 100 up to order "
        f"{LAST_EXHAUSTIVE_ORDER}, of the n tried above it",
        f"10^{points.log10_room.min:.1f} to 10^{points.log10_room.max:.1f} below the bound 100 (R/r)^order",
    )


def taylor_point(order: int) -> Point:
    """Check that P stays at most delta from some n within the bound on."""
    sizes = sizes_for(order)
    first = first_settled(on_grid(Taylor(order=order), BASE, n=sizes).distinguish <= DELTA)
    if first == len(sizes):
        return Point({**BASE, "order": order}, False, blind_from="never")
    room = 2 + order * STEEP / math.log(10) - math.log10(sizes[first])
    pairs = [(taylor_ratio(order, n), log_ratio) for n in (1000, 10**6) for log_ratio in log_ratios_of(order, n)]
    ratio_off = max(abs(math.expm1(expected - log_ratio)) for expected, log_ratio in pairs)
    results = {"blind_from": short(sizes[first]), "log10_room": room, "ratio_off": ratio_off}
    return Point({**BASE, "order": order}, room >= 0 and ratio_off < 1e-12, **results)


def taylor_ratio(order: int, n: int) -> float:
    """Return log T(R² log n)/T(R r log n), R = 1.5 and r = 0.3, with T summed term by term in fractions."""
    log_n = Fraction(math.log(n))
    arguments = Fraction(9, 4) * log_n, Fraction(9, 20) * log_n
    high, low = (sum(x**k / math.factorial(k) for k in range(order + 1)) for x in arguments)
    return math.log(high / low)


def log_ratios_of(order: int, n: int) -> tuple[float, float, float]:
    """Return the same by the mechanism: `log_ratio` in float64, `ratio` in balls and `score` on tokens.

    The base is the logit of the spike's own row on the other tokens, the step leads to that on its own.
    """
    mechanism, log_n = Taylor(order=order), math.log(n)
    in_floats = float(mechanism.log_ratio(np.array(0.45 * log_n), np.array(1.8 * log_n)))
    unit = LogForm.log(rational(n))
    ball = mechanism.ratio(rational(Fraction(9, 20)) * unit, rational(Fraction(9, 5)) * unit)
    low, high = mechanism.score(torch.tensor([0.45 * log_n, 2.25 * log_n], dtype=torch.float64)).tolist()
    return in_floats, float(arb(ball).log()), math.log(high / low)


def sizes_for(order: int) -> list[int]:
    """Return every admissible n up to the bound if they are few, and a ladder of n beyond."""
    if order > LAST_EXHAUSTIVE_ORDER:
        return LADDER
    step, limit = BASE["d"] - 2, 100 * 5**order  # R/r = 1.5/0.3 = 5
    return [*range(step, limit + 1, step), *(n for n in LADDER if n > limit)]
