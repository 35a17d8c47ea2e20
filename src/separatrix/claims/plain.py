"""Theory 4: the plain case, softmax regression."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
from flint import arb, ctx

from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import DELTA, Array, Points, on_grid, point, relative_error, settled, short
from separatrix.constructions.plain import Plain
from separatrix.core.tensors import torch
from separatrix.exact.engines import dense
from separatrix.exact.outputs.kernels import rational_model, spike_weights
from separatrix.mechanisms import Linear, ScoreMechanism, Softmax

SMALL = (3, 10, 100, 1000, 10_000)
LARGE = (10**6, 10**12, 10**18)
SPREADS = ("0", "0.1")


def plain(n: int, spread: str = "0") -> Plain:
    """The plain construction at n."""
    return Plain(Plain.schema.read({"n": n, "m": 1, "spread": spread}))


def peak_and_rest(made: Plain, exponential: bool) -> tuple[float, float]:
    """The weight of the peak and of all else in D1, summed score by score from the definition.

    The peak has the score 4 log n, the others are spread around log 1.5.
    """
    spread = float(made.parameters.spread)
    low, high = math.log(1.5 - spread), math.log(1.5 + spread)
    ordinary = [low + (high - low) * i / (made.n - 1) for i in range(1, made.n)]
    scores = [4 * math.log(made.n), *ordinary]
    u = [math.exp(z) for z in scores] if exponential else scores
    return u[0] / math.fsum(u), math.fsum(u[1:]) / math.fsum(u)


def softmax_rest(n: int) -> float:
    """What softmax leaves to all tokens but the peak: 1.5(n-1)/(n⁴ + 1.5(n-1)), about 1.5/n³."""
    return float(Fraction(3 * (n - 1), 2 * n**4 + 3 * (n - 1)))


def linear_constant(n: int) -> float:
    """Linear's weight of the peak in units of log n / n: 4 n/(4 log n + (n-1) log 1.5)."""
    return 4 * n / (4 * math.log(n) + (n - 1) * math.log(1.5))


def peak_ball(mechanism: ScoreMechanism, n: int) -> arb:
    """The weight of the peak at any n without spread, as a ball."""
    return arb(spike_weights(mechanism, rational_model(plain(n)), 1)["query"])


@claim("plain-softmax-peak", "4", "rec")
def softmax_peak() -> Finding:
    """Softmax puts at least 1 - 1.6/n³ on the one large score.

    1 - f(peak) against 1.6/n³: on all tokens up to n = 1e4, and in balls beyond.
    """
    points = Points()
    for n, spread in product(SMALL, SPREADS):
        weight, rest = peak_and_rest(plain(n, spread), exponential=True)
        error = abs(dense.probe(plain(n, spread), Softmax(), 1, torch.float64) - weight)
        holds = rest * n**3 <= 1.6 and error < 1e-12
        if spread == "0":
            holds = holds and relative_error(rest, softmax_rest(n)) < 1e-9
        points.add({"n": n, "spread": spread}, holds, rest_n3=rest * n**3, error=error)
    with ctx.workprec(400):
        for n in LARGE:
            left = (1 - peak_ball(Softmax(), n)) * n**3
            holds = bool(left <= arb("1.6")) and relative_error(float(left), softmax_rest(n) * n**3) < 1e-9
            points.add({"n": n, "spread": "0"}, holds, rest_n3=float(left))
    used = points.largest("rest_n3")
    return points.conclude(
        f"softmax leaves {used:.3f}/n³ or less to all other tokens, n = 3 to 1e18, with and without spread",
        f"{used:.2f} of the 1.6 allowed",
    )


@claim("plain-linear-peak", "4", "rec")
def linear_peak() -> Finding:
    """Linear puts at most 12 log n / n on it."""
    points = Points()
    for n, spread in product(SMALL, SPREADS):
        weight, _ = peak_and_rest(plain(n, spread), exponential=False)
        error = relative_error(dense.probe(plain(n, spread), Linear(), 1, torch.float64), weight)
        constant = weight * n / math.log(n)
        points.add({"n": n, "spread": spread}, constant <= 12 and error < 1e-12, constant=constant)
    with ctx.workprec(400):
        for n in LARGE:
            ball = peak_ball(Linear(), n) * n / arb(n).log()
            holds = bool(ball <= 12) and relative_error(float(ball), linear_constant(n)) < 1e-9
            points.add({"n": n, "spread": "0"}, holds, constant=float(ball))
    used = points.largest("constant")
    return points.conclude(
        f"linear gives the peak {used:.2f} log n / n or less, n = 3 to 1e18, with and without spread",
        f"{used:.1f} of the 12 allowed",
    )


LAST = 2048
SIZES = range(3, LAST + 1)
"""Every n up to where `bounds_beyond` take over."""


COUNTED = (*range(20, 460, 20), 144, 251, 433)
"""Where P is compared with counts of the definition."""


def signs_for(n: int) -> int:
    """m of order log(n/delta): log2(n/delta) with delta = 0.01."""
    return math.ceil(math.log2(n / DELTA))


@claim("plain-linear-reach", "4", "rec")
def linear_reach() -> Finding:
    """With these constants the linear network also succeeds up to n of about 200, and is blind from about
    500.

    How far linear follows softmax with m = log2(n/delta), at every n, and with far more sign vectors.
    """
    m = [signs_for(n) for n in SIZES]
    softmax, linear = (
        on_grid(each, {}, Plain, n=[*SIZES], m=m).distinguish for each in (Softmax(), Linear())
    )
    above = [n for n, p in zip(SIZES, linear, strict=True) if p > 0.5]
    first, last = (above[0], above[-1]) if above else (SIZES[0], SIZES[0])
    blind = _from(linear <= DELTA)
    keeps = _from(softmax >= 1 - DELTA)
    misses = ", ".join(str(n) for n, p in zip(SIZES, softmax, strict=True) if keeps - 7 < n and p < 1 - DELTA)
    linear_bound, softmax_bound = bounds_beyond(LAST)
    inside, signs = Points(), {"m": "log2(n/0.01)"}
    inside.add(signs, 150 <= last <= 300, linear_above_half_from_n=first, linear_above_half_to_n=last)
    inside.add(signs, 350 <= blind <= 550, linear_blind_from_n=blind)
    inside.add(signs, keeps <= 300, softmax_distinguishes_from_n=keeps, softmax_partial_at=misses)
    inside.add(
        {**signs, "n": f"above {LAST}"},
        linear_bound <= DELTA and softmax_bound <= DELTA,
        linear_at_most=linear_bound,
        softmax_fails_at_most=softmax_bound,
    )
    inside += [counted_point(n, exponential) for n in COUNTED for exponential in (True, False)]
    outside = [many_signs(500, 10**5), many_signs(1000, 10**11)]
    best = int(np.argmax(linear))
    return inside.conclude_where(
        outside,
        "m = O(log(n/delta)); with far more sign vectors one that fires on D1 alone is met after all",
        f"linear: best P {linear[best]:.4f} at n = {SIZES[best]}, above 1/2 to n = {last}, at most {DELTA} "
        f"from n = {short(blind)}; softmax at least {1 - DELTA} from n = {short(keeps)}, not at {misses}; "
        f"every n up to {LAST}, bounds beyond; but with m = 1e5 linear has "
        f"P = {outside[0].measured['distinguish']:.3f} at n = 500",
        f"above 1/2 to {last}, blind from {short(blind)}; claimed 200, 500",
    )


def counted_point(n: int, exponential: bool) -> Point:
    """Holds if P is what binomial counts of the definition give: k of the n signs, or of the rest, are +."""
    m, tau = signs_for(n), 0.25
    peak, base = 4 * math.log(n), math.log(1.5)
    u, v = (math.exp(peak), math.exp(base)) if exponential else (peak, base)
    weight = u / (u + (n - 1) * v)
    p0 = sum(math.comb(n, k) for k in range(n + 1) if (2 * k - n) / n > tau) / 2**n
    p1 = neither = 0.0
    for y, k in product((1, -1), range(n)):
        share = math.comb(n - 1, k) / 2**n
        fires = weight * y + (1 - weight) * (2 * k - (n - 1)) / (n - 1) > tau
        before = (y + 2 * k - (n - 1)) / n > tau
        p1 += share * fires
        neither += share * (not fires and not before)
    expected = (1 - p0) ** m - neither**m
    unit = Softmax() if exponential else Linear()
    found = float(on_grid(unit, {"n": n, "m": m}, Plain).distinguish)
    return point({"n": n, "mechanism": unit.name}, abs(found - expected) < 1e-9, p=found, counted=expected)


def bounds_beyond(start: int) -> tuple[float, float]:
    """Upper bounds for every n from `start` (2000 or more) on: on linear's P, and on the chance that softmax
    fails.

    Hoeffding: weights f fire with probability exp(-tau²/(2 |f|²)) at most, with tau = 1/4. Linear gives the
    peak w <= 4 log n/(n log 1.5) <= 10 log n/n on D1, and |f|² <= w² + 1/(n-1) <= 4/n from n = 2000 on; on D0
    softmax has |f|² = 1/n. On D1 softmax fires wherever the sign of the peak is +, since the others have
    1.6/n³ of the weight. m is below log2(n/delta) + 1, and both bounds decrease in n.
    """
    if start < 2000:
        raise ValueError("the bound 4/n on the squared weights needs n >= 2000")
    m = math.log2(start / DELTA) + 1
    return m * math.exp(-start / 128), m * math.exp(-start / 32) + DELTA / start


def _from(good: Array) -> int:
    """The least of SIZES from which on it is good; 10^100 if it never is."""
    first = settled(good)
    return SIZES[first] if first < len(SIZES) else 10**100


def many_signs(n: int, m: int) -> Point:
    """Holds if linear is blind."""
    found = float(on_grid(Linear(), {"n": n, "m": m}, Plain).distinguish)
    return point({"n": n, "m": m}, found <= DELTA, distinguish=found)
