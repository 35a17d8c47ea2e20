"""Theory 4: the plain case, softmax regression."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
from flint import arb, ctx

from separatrix.claims._base import DELTA, Array, Finding, Point, Points, claim
from separatrix.claims._tools import first_settled, on_grid, relative_error, short
from separatrix.constructions.plain import Plain
from separatrix.core.tensors import torch
from separatrix.exact.engines import dense
from separatrix.exact.outputs.kernels import rational_model, spike_weights
from separatrix.mechanisms import Linear, ScoreMechanism, Softmax

SMALL_SIZES = (3, 10, 100, 1000, 10_000)
LARGE_SIZES = (10**6, 10**12, 10**18)


def plain(n: int, spread: str = "0") -> Plain:
    """Return the plain construction at n."""
    return Plain.read({"n": n, "m": 1, "spread": spread})


def peak_and_rest(construction: Plain, exponential: bool) -> tuple[float, float]:
    """Return the weight of the peak and of all other tokens in D1, summed score by score.

    The peak has the score 4 log n, the others are spread around log 1.5.
    """
    n, spread = construction.n, float(construction.spread)
    low, high = math.log(1.5 - spread), math.log(1.5 + spread)
    scores = [4 * math.log(n), *(low + (high - low) * i / (n - 1) for i in range(1, n))]
    u = [math.exp(z) for z in scores] if exponential else scores
    return u[0] / math.fsum(u), math.fsum(u[1:]) / math.fsum(u)


def softmax_rest(n: int) -> float:
    """Return the weight that softmax leaves to all tokens but the peak: 1.5(n-1)/(n⁴ + 1.5(n-1))."""
    return float(Fraction(3 * (n - 1), 2 * n**4 + 3 * (n - 1)))


def linear_constant(n: int) -> float:
    """Return linear's weight of the peak in units of log n / n: 4 n/(4 log n + (n-1) log 1.5)."""
    return 4 * n / (4 * math.log(n) + (n - 1) * math.log(1.5))


def peak_ball(mechanism: ScoreMechanism, n: int) -> arb:
    """Return the weight of the peak at any n without spread, as a ball."""
    return arb(spike_weights(mechanism, rational_model(plain(n)), 1)["query"])


def large_points(name: str, limit: str, to_ball: Callable[[int], arb], to_float: Callable[[int], float]) -> Points:
    """Check at large n that a scaled weight, as a ball, is within the limit and equals its closed form."""
    points = Points()
    # At n = 1e18 softmax leaves about 1e-54 to the other tokens: 1 - weight cancels 180 bits.
    with ctx.workprec(400):
        for n in LARGE_SIZES:
            ball = to_ball(n)
            holds = bool(ball <= arb(limit)) and relative_error(float(ball), to_float(n)) < 1e-9
            points.add({"n": n, "spread": "0"}, holds, **{name: float(ball)})
    return points


@claim("plain-softmax-peak", "4", "rec")
def softmax_peak() -> Finding:
    """Softmax puts at least 1 - 1.6/n³ on the one large score.

    1 - f(peak) against 1.6/n³: on all tokens up to n = 1e4, and in balls beyond.
    """
    points = Points()
    for n, spread in product(SMALL_SIZES, ("0", "0.1")):
        weight, other_weight = peak_and_rest(plain(n, spread), exponential=True)
        error = abs(dense.probe(plain(n, spread), Softmax(), 1, torch.float64) - weight)
        is_closed = spread != "0" or relative_error(other_weight, softmax_rest(n)) < 1e-9
        holds = other_weight * n**3 <= 1.6 and error < 1e-12 and is_closed
        points.add({"n": n, "spread": spread}, holds, rest_n3=other_weight * n**3, error=error)
    points += large_points(
        "rest_n3", "1.6", lambda n: (1 - peak_ball(Softmax(), n)) * n**3, lambda n: softmax_rest(n) * n**3
    )
    return points.conclude(
        f"softmax leaves {points.rest_n3.max:.3f}/n³ or less to all other tokens, n = 3 to 1e18, with and "
        "without spread",
        f"{points.rest_n3.max:.2f} of the 1.6 allowed",
    )


@claim("plain-linear-peak", "4", "rec")
def linear_peak() -> Finding:
    """Linear puts at most 12 log n / n on it."""
    points = Points()
    for n, spread in product(SMALL_SIZES, ("0", "0.1")):
        weight, _ = peak_and_rest(plain(n, spread), exponential=False)
        error = relative_error(dense.probe(plain(n, spread), Linear(), 1, torch.float64), weight)
        constant = weight * n / math.log(n)
        points.add({"n": n, "spread": spread}, constant <= 12 and error < 1e-12, constant=constant)
    points += large_points("constant", "12", lambda n: peak_ball(Linear(), n) * n / arb(n).log(), linear_constant)
    return points.conclude(
        f"linear gives the peak {points.constant.max:.2f} log n / n or less, n = 3 to 1e18, with and without spread",
        f"{points.constant.max:.1f} of the 12 allowed",
    )


LAST_TRIED = 2048
PLAIN_SIZES = range(3, LAST_TRIED + 1)
"""Every n up to where `bounds_beyond` take over."""
COUNTED_SIZES = (*range(20, 460, 20), 144, 251, 433)
"""The n at which P is compared with counts of the definition."""


def signs_for(n: int) -> int:
    """Return m of order log(n/delta): log2(n/delta) with delta = 0.01."""
    return math.ceil(math.log2(n / DELTA))


@claim("plain-linear-reach", "4", "rec")
def linear_reach() -> Finding:
    """With these constants the linear network also succeeds up to n of about 200, and is blind from about
    500.

    How far linear follows softmax with m = log2(n/delta), at every n, and with far more sign vectors.
    """
    m = [signs_for(n) for n in PLAIN_SIZES]
    softmax, linear = (on_grid(unit, {}, Plain, n=[*PLAIN_SIZES], m=m).distinguish for unit in (Softmax(), Linear()))
    above = [n for n, p in zip(PLAIN_SIZES, linear, strict=True) if p > 0.5] or [PLAIN_SIZES[0]]
    blind_from, keeps_from = _settles_at(linear <= DELTA), _settles_at(softmax >= 1 - DELTA)
    # P is not monotone in n: how many of n signs make a mean above tau = 1/4 depends on n mod 8.
    pairs = zip(PLAIN_SIZES, softmax, strict=True)
    misses = ", ".join(str(n) for n, p in pairs if keeps_from - 7 < n and p < 1 - DELTA)
    linear_bound, softmax_bound = bounds_beyond(LAST_TRIED)
    inside, signs = Points(), {"m": "log2(n/0.01)"}
    reach = {"linear_above_half_from_n": above[0], "linear_above_half_to_n": above[-1]}
    inside.add(signs, 150 <= above[-1] <= 300, **reach)
    inside.add(signs, 350 <= blind_from <= 550, linear_blind_from_n=blind_from)
    inside.add(signs, keeps_from <= 300, softmax_distinguishes_from_n=keeps_from, softmax_partial_at=misses)
    bounds = {"linear_at_most": linear_bound, "softmax_fails_at_most": softmax_bound}
    inside.add({**signs, "n": f"above {LAST_TRIED}"}, max(bounds.values()) <= DELTA, **bounds)
    inside += [counted_point(n, exponential) for n in COUNTED_SIZES for exponential in (True, False)]
    outside = Points([many_signs_point(500, 10**5), many_signs_point(1000, 10**11)])
    best = int(np.argmax(linear))
    return inside.conclude_where(
        outside,
        "m = O(log(n/delta)); with far more sign vectors one that fires on D1 alone is met after all",
        f"linear: best P {linear[best]:.4f} at n = {PLAIN_SIZES[best]}, above 1/2 to n = {above[-1]}, at "
        f"most {DELTA} from n = {short(blind_from)}; softmax at least {1 - DELTA} from n = "
        f"{short(keeps_from)}, not at {misses}; every n up to {LAST_TRIED}, bounds beyond; but with m = 1e5 "
        f"linear has P = {outside.distinguish[0]:.3f} at n = 500",
        f"above 1/2 to {above[-1]}, blind from {short(blind_from)}; claimed 200, 500",
    )


def counted_point(n: int, exponential: bool) -> Point:
    """Check P against binomial counts of the definition: k of the n signs, or of the other signs, are +."""
    m, tau = signs_for(n), 0.25
    peak, base = 4 * math.log(n), math.log(1.5)
    u, v = (math.exp(peak), math.exp(base)) if exponential else (peak, base)
    weight = u / (u + (n - 1) * v)
    p0 = sum(math.comb(n, k) for k in range(n + 1) if (2 * k - n) / n > tau) / 2**n
    neither = 0.0
    for y, k in product((1, -1), range(n)):
        fires_d1 = weight * y + (1 - weight) * (2 * k - (n - 1)) / (n - 1) > tau
        fires_d0 = (y + 2 * k - (n - 1)) / n > tau
        neither += math.comb(n - 1, k) / 2**n * (not fires_d1 and not fires_d0)
    expected = (1 - p0) ** m - neither**m
    unit = Softmax() if exponential else Linear()
    p = float(on_grid(unit, {"n": n, "m": m}, Plain).distinguish)
    return Point({"n": n, "mechanism": unit.name}, abs(p - expected) < 1e-9, p=p, counted=expected)


def bounds_beyond(start: int) -> tuple[float, float]:
    """Return upper bounds for every n from `start` (2000 or more) on: on linear's P, and on the chance that
    softmax fails.

    Hoeffding: weights f fire with probability exp(-tau²/(2 |f|²)) at most, with tau = 1/4. Linear gives the
    peak w <= 4 log n/(n log 1.5) <= 10 log n/n on D1, and |f|² <= w² + 1/(n-1) <= 4/n from n = 2000 on; on D0
    softmax has |f|² = 1/n. On D1 softmax fires wherever the sign of the peak is +, since the others have
    1.6/n³ of the weight. m is below log2(n/delta) + 1, and both bounds decrease in n.
    """
    if start < 2000:
        raise ValueError("the bound 4/n on the squared weights needs n >= 2000")
    m = math.log2(start / DELTA) + 1
    return m * math.exp(-start / 128), m * math.exp(-start / 32) + DELTA / start


def _settles_at(good: Array) -> int:
    """Return the least of PLAIN_SIZES from which on it is good; 10^100 if it never is."""
    first = first_settled(good)
    return PLAIN_SIZES[first] if first < len(PLAIN_SIZES) else 10**100


def many_signs_point(n: int, m: int) -> Point:
    """Check whether linear is blind."""
    p = float(on_grid(Linear(), {"n": n, "m": m}, Plain).distinguish)
    return Point({"n": n, "m": m}, p <= DELTA, distinguish=p)
