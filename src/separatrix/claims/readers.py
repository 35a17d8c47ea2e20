"""Theory 3.8 and 3.11: bounds for every n, and the limits of every reader of one row and of all rows."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from flint import arb, ctx

from separatrix.claims import _literal
from separatrix.claims._base import BASE, Finding, Point, Points, Setting, claim
from separatrix.claims._tools import prove_law, spike
from separatrix.constructions.lengths import admissible
from separatrix.constructions.spike import Spike
from separatrix.core.numbers.logforms import Flint, rational
from separatrix.exact.outputs.growth_laws import GrowthLaw, distance_laws
from separatrix.exact.outputs.kernels import probe_margin, rational_model, with_kernel
from separatrix.exact.outputs.proved import proved_outputs
from separatrix.exact.verdicts.best_reader import BestReader, best_reader
from separatrix.mechanisms import mechanism_named

LAW_MECHANISMS = ("softmax", "softmax:temperature=2", "linear", "power:beta=3", "taylor:order=3")
LAW_SETTINGS: tuple[Setting, ...] = (
    {**BASE, "n": 1000},
    {**BASE, "n": 100, "a1": "0.5"},
    {"n": 4, "d": 4, "m": 1, "a0": "0", "a1": "0.9", "b": "0.1", "c": "0.1"},
    {"n": 20, "d": 12, "m": 1, "a0": "0.9", "a1": "1.3", "b": "0.3", "c": "0.2"},
)
"""Softmax with s1 > 1 > s0; with s1 < 1; with s1 = 0.99, where n^(1-s1) f falls before it rises; s0 > 1."""
LAW_EXPONENTS = (0, 0.1, 0.4, 1, 1.5, 2.5, 6, 15, 27)
PRECISION = 600
NAIVE_SETTINGS: tuple[Setting, ...] = (
    {"n": 16, "d": 6, "m": 1, "a0": "0.05", "a1": "1.1", "b": "0.55", "c": "0.3"},
    {"n": 24, "d": 5, "m": 1, "a0": "0.4", "a1": "0.5", "b": "0.2", "c": "0.1"},
)
NOISE = Fraction(1, 2)
DECISIONS = 10_000
SEED = 20


@claim("margin-laws", "3.8", "ours")
def margin_laws() -> Finding:
    """For every n from a given one on: linear and power have N margin(N) <= n margin < its limit; softmax has
    margin(N) <= margin < a1 if a1(a1+b+c) > 1 > a0(a0+b+c), and n^(1-s) margin between two constants if
    s = a1(a1+b+c) < 1; Taylor has constants for n margin.

    The certified margin at n up to 1e30 is compared with the bounds from the first n.
    """
    points = Points()
    for setting, name in product(LAW_SETTINGS, LAW_MECHANISMS):
        mechanism, first = mechanism_named(name), spike(setting)
        certificate, law = prove_law(name, setting)
        points.verify(certificate, law.low <= law.high)
        for exponent in LAW_EXPONENTS:
            n = round(max(first.n, law.start) * 10**exponent)
            at = Spike.read(admissible(Spike, {**setting, "n": n}))
            with ctx.workprec(PRECISION):
                margin = probe_margin(with_kernel(mechanism), rational_model(at))[2]
                points.append(_law_point({**setting, "mechanism": name, "n": at.n, "from": first.n}, law, at.n, margin))
    return points.conclude(
        f"bounds from the first n contain the certified margin at {len(points)} points, n up to "
        f"{max(LAW_EXPONENTS):.0f} powers of ten larger",
        f"the upper bound is {points.width.min:.6f} to {points.width.max:.3g} times the value",
    )


def _law_point(place: Setting, law: GrowthLaw, n: int, value: Flint) -> Point:
    """Check that the bounds of a law contain a value."""
    scaled = value * arb(n) ** arb(rational(-law.exponent))
    low, high = (rational(bound) for bound in law.bounds)
    # At the first n a bound may be the value itself.
    holds = (n < law.start) or not (scaled < low or scaled > high)
    return Point(place, holds, low=law.low, high=law.high, value=float(scaled), width=law.high / float(scaled))


def naive_rows(setting: Setting, kernel: Callable[[float], float]) -> list[Any]:
    """Return all output rows of D0 and those of D1 by loops, in form ones and units of sqrt(log n)."""
    n, log_n = setting["n"], math.log(setting["n"])
    a0, a1, b, c = (float(setting[name]) for name in ("a0", "a1", "b", "c"))
    matrices = [_literal.spike_matrix(n, setting["d"], a, b, c, n // 2) for a in (a0, a1)]
    return [np.array(_literal.outputs(tokens, "ones", lambda logit: kernel(log_n * logit))) for tokens in matrices]


KERNELS: dict[str, Callable[[float], float]] = {
    "softmax": math.exp,
    "linear": lambda logit: logit,
    "power:beta=3": lambda logit: logit**3,
}


@claim("best-reader", "3.11", "ours")
def best_reader_accuracy() -> Finding:
    """Under Gaussian noise, the best reader of one row, and of all rows, is right with probability
    Phi(distance/(2 sd)), and an L-Lipschitz reader has a gap of at most L times the distance.

    Distances against naive attention on all tokens; accuracies against simulated likelihood decisions;
    Lipschitz readers at random.
    """
    points, rng = Points(), np.random.default_rng(SEED)
    for setting, (name, kernel) in product(NAIVE_SETTINGS, KERNELS.items()):
        (rows0, rows1), limits = naive_rows(setting, kernel), _limits(setting, name)
        squares = ((rows1 - rows0) ** 2).sum(1)
        best = [int(squares.argmax())]
        for kind, limit, chosen in (("one", limits.one_row, best), ("all", limits.all_rows, range(len(squares)))):
            d0, d1 = (rows[list(chosen)].ravel() for rows in (rows0, rows1))
            distance = float(np.linalg.norm(d1 - d0))
            noisy = float(NOISE) * rng.standard_normal((DECISIONS, len(d0)))
            # By symmetry the share of right decisions is the same for both labels.
            share = float((((noisy + (d1 - d0) / 2) @ (d1 - d0)) > 0).mean())
            gap, accuracy = _largest_gap(rng, d0, d1), limit.accuracy or 0.0
            error = abs(limit.distance - distance) / distance
            holds = error < 1e-9 and abs(share - accuracy) < 4 * 0.5 / math.sqrt(DECISIONS)
            holds = holds and gap <= limit.distance * (1 + 1e-9)
            place = {**setting, "mechanism": name, "rows": kind, "noise": NOISE}
            points.add(place, holds, error=error, accuracy=accuracy, share=share, gap_over_distance=gap / distance)
    return points.conclude(
        f"distances agree to {points.error.max:.0e}; {len(points)} accuracies are those of {DECISIONS} simulated "
        "decisions each, within four standard errors",
        f"the gap of random 1-Lipschitz readers is {points.gap_over_distance.max:.3f} of the distance at most",
    )


def _limits(setting: Setting, name: str) -> BestReader:
    point, mechanism = spike(setting), mechanism_named(name)
    limits = best_reader(point, mechanism, proved_outputs(point, mechanism), NOISE)
    assert limits is not None
    return limits


def _largest_gap(rng: np.random.Generator, d0: Any, d1: Any) -> float:
    """Return the largest gap of some 1-Lipschitz readers: maxima of unit projections, distances to a point."""
    gaps = []
    for _ in range(50):
        weights, centre = rng.standard_normal((4, len(d0))), rng.standard_normal(len(d0))
        weights /= np.linalg.norm(weights, axis=1, keepdims=True)
        gaps.append(abs(float((weights @ d1).max() - (weights @ d0).max())))
        gaps.append(abs(float(np.linalg.norm(d1 - centre) - np.linalg.norm(d0 - centre))))
    return max(gaps)


@claim("one-row-and-all-rows", "3.11", "ours")
def one_row_and_all_rows() -> Finding:
    """Linear: n times the distance of one row increases with n to a limit, 6.0415 here, and all rows together
    have sqrt(n) times that of one row: a reader of one row falls to chance like 1/n, one of all rows like
    1/sqrt(n). Softmax beyond the boundary keeps a distance between two constants.

    Exact rows at n up to 1e30, compared with the bounds from n = 1000 and with the limit by its formula.
    """
    points, chance = Points(), random.Random(SEED)
    first = spike({**BASE, "n": 1000})
    b, r, d = Fraction("0.2"), Fraction("0.3"), 102
    a0, a1 = Fraction("0.01"), Fraction("1.2")
    slope = a1 * (a1 + r) / r - a0 * (a0 + r) / r
    limit = math.sqrt(slope**2 + b**2 * ((a1 - a0) / r) ** 2 * Fraction(d - 3, d - 2))
    for name in ("linear", "softmax"):
        mechanism = mechanism_named(name)
        laws = distance_laws(first, mechanism)
        for exponent in (0.0, 1.0, *(chance.uniform(0, 27) for _ in range(6)), 27.0):
            n = round(10 * 10**exponent) * 100
            limits = _limits({**BASE, "n": n}, name)
            one, every = limits.one_row.distance, limits.all_rows.distance
            pairs = list(zip((one, every), laws, strict=True))
            scaled = [x / float(n) ** float(law.exponent) if law else math.nan for x, law in pairs]
            bounds = [(law.low * (1 - 1e-12), law.high * (1 + 1e-12)) if law else (1.0, 0.0) for law in laws]
            holds = all(low <= x <= high for x, (low, high) in zip(scaled, bounds, strict=True))
            if name == "linear":
                holds = holds and abs(every / one / math.sqrt(n) - 1) < 1e-12 and scaled[0] < limit * (1 + 1e-12)
                holds = holds and (n < 10**9 or scaled[0] > limit * (1 - 1e-8))
            place = {**BASE, "n": n, "mechanism": name, "noise": NOISE}
            points.add(place, holds, one_row=limits.one_row.accuracy, all_rows=limits.all_rows.accuracy)
    return points.conclude(
        f"linear at n = 1000 and sd 0.5: accuracy {points[0].measured['one_row']:.6f} of one row, "
        f"{points[0].measured['all_rows']:.6f} of all rows; the limit of n times the distance is {limit:.4f}",
        f"softmax: {points.one_row.max:.4f} of one row, {points.all_rows.max:.4f} of all rows at most",
    )
