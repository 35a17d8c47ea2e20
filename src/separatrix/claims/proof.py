"""Theory 3.6, steps of the proof: how loose Hoeffding is, and how often one neuron fires."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np

from separatrix.claims._base import DELTA, Finding, Point, Points, Setting, claim
from separatrix.claims._tools import first_settled, on_grid, prove_for_ever, relative_error, spike
from separatrix.claims.theorem import literal_signs, literal_width
from separatrix.constructions.theorem import required_signs, required_width
from separatrix.exact.engines import certified
from separatrix.mechanisms import Linear, Softmax

PROOF_SETTING: Setting = {"a0": "0.01", "a1": "1.2", "c": "0.1"}
PROOF_WIDTHS = range(12, 1003)
"""Every width: the extremes that are stated are those of them all."""
PROVED_WIDTHS = (12, 42, 102, 302)
BLOCK = 10**6
"""Tokens in a block: large enough for the spike of D0 not to matter."""


def hoeffding_bound(b: float, d: int) -> float:
    """Return exp(-(d-2) s²/2), s = 0.1/b: a bound on the chance that the mean of d-2 signs exceeds s."""
    return math.exp(-(d - 2) / (200 * b * b))


@claim("hoeffding", "3.6", "rec")
def hoeffding() -> Finding:
    """Hoeffding: for large n one neuron fires on D0 with probability at most exp(-(d-2)/(200 b²)).

    The bound over the exact probability, and the d that each of them needs; that d is the least, by certified
    fractions.
    """
    points = Points()
    for b, mechanism in product(("0.2", "0.5"), (Softmax(), Linear())):
        setting = {**PROOF_SETTING, "b": b, "m": 1}
        p0 = on_grid(mechanism, setting, d=[*PROOF_WIDTHS], n=[(d - 2) * BLOCK for d in PROOF_WIDTHS]).p0
        bound = np.array([hoeffding_bound(float(b), d) for d in PROOF_WIDTHS])
        # The floor only matters if a faulty engine returns p0 = 0: the ratio stays a finite number for JSON.
        ratio = bound / np.maximum(p0, 1e-300)
        parameters = {**setting, "d": "12:1002", "block": BLOCK, "mechanism": mechanism.name}
        least, most = PROOF_WIDTHS[int(ratio.argmin())], PROOF_WIDTHS[int(ratio.argmax())]
        ratios = {"smallest_ratio": ratio.min(), "largest_ratio": ratio.max()}
        points.add(parameters, (p0 <= bound).all(), **ratios, at_d=least, then_at_d=most)
    for b, name, d in product(("0.2", "0.5"), ("softmax", "linear"), PROVED_WIDTHS):
        certificate, neurons = prove_for_ever(name, {**PROOF_SETTING, "b": b, "m": 1, "d": d, "n": (d - 2) * BLOCK})
        largest = float(max(neuron.p0 for neuron in neurons))
        points.verify(certificate, largest <= hoeffding_bound(float(b), d), p0_for_ever=largest)
    points.append(widths_point("0.2", required_width(0.2, required_signs(DELTA), DELTA), needed_width("0.2")))
    return points.conclude(
        f"the bound is {points.smallest_ratio.min:.1f} to {points.largest_ratio.max:.2g} times the exact "
        f"probability (every d from 12 to 1002); at delta = {DELTA}, b = 0.2 the proof asks for d = "
        f"{points.asked.max:.0f}, and d = {points.needed.max:.0f} is enough",
        f"{points.smallest_ratio.min:.1f} to {points.largest_ratio.max:.2g} times too large; d = "
        f"{points.asked.max:.0f} asked, {points.needed.max:.0f} needed",
    )


def needed_width(b: str) -> int:
    """Return the least d from which on m neurons fire on D0 with probability at most delta.

    Every d up to the one that the theorem needs is tried; from there on Hoeffding's bound is enough.
    """
    m = required_signs(DELTA)
    widths = list(range(4, required_width(float(b), m, DELTA) + 1))
    setting = {**PROOF_SETTING, "b": b, "m": m}
    fire_d0 = on_grid(Softmax(), setting, d=widths, n=[(d - 2) * BLOCK for d in widths]).fire_d0
    return widths[first_settled(fire_d0 <= DELTA)]


def widths_point(b: str, theorem_width: int, least_width: int) -> Point:
    """Check the width the proof asks for by its formula, and the width that is enough by fractions.

    With m neurons, P(fires on D0) = 1 - (1-p0)^m is at most delta at `least_width`, above it one narrower.
    """
    m = literal_signs(DELTA)
    setting, widths = {**PROOF_SETTING, "b": b, "m": m}, (least_width - 1, least_width)
    sizes = [(d - 2) * BLOCK for d in widths]
    constructions = [spike(setting, d=d, n=n) for d, n in zip(widths, sizes, strict=True)]
    neurons = [certified.count(construction, Softmax()).low for construction in constructions]
    fires = [float(1 - (1 - Fraction(neuron.p0)) ** m) for neuron in neurons]
    error = relative_error(on_grid(Softmax(), setting, d=widths, n=sizes).fire_d0, fires)
    is_literal, is_least = theorem_width == literal_width(float(b), m, DELTA), fires[1] <= DELTA < fires[0]
    holds = is_literal and is_least and error < 1e-12
    results = {"asked": theorem_width, "needed": least_width, "fires_one_narrower": fires[0]}
    return Point({**setting, "delta": DELTA}, holds, **results, fires=fires[1], error=error)


FULL_WEIGHT: tuple[tuple[Fraction, Setting], ...] = (
    (Fraction(1, 2), {"a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1", "d": 202}),
    (Fraction(3, 8), {"a0": "0.05", "a1": "0.7", "b": "0.5", "c": "0.4", "d": 1002}),
    (Fraction(1, 4), {"a0": "0.1", "a1": "1.5", "b": "0.5", "c": "1", "d": 1002}),
)


def firing_triples(a: Fraction, b: Fraction, c: Fraction) -> Fraction:
    """Return the share of sign triples with a y_1 + b y_k3 + c y_d > c + 0.1, at full weight of the spike."""
    signs = list(product((1, -1), repeat=3))
    return Fraction(sum(a * x + b * y + c * z > c + Fraction(1, 10) for x, y, z in signs), len(signs))


@claim("firing-probability", "3.6", "ours")
def firing_probability() -> Finding:
    """Softmax: for large n one neuron fires on D1 with probability 1/2, or 3/8 or 1/4 where b and c matter,
    and hardly ever on D0.

    Certified p1 against the share of the triples that fire.
    """
    points = Points()
    for expected, setting in FULL_WEIGHT:
        n = (setting["d"] - 2) * 10**12
        neuron = certified.count(spike(setting, n=n), Softmax()).low
        share = firing_triples(*(Fraction(setting[name]) for name in ("a1", "b", "c")))
        p0, p1, gap = float(neuron.p0), float(neuron.p1), abs(float(neuron.p1 - expected))
        holds = share == expected and gap < 1e-6 and neuron.p0 < 1e-6
        points.add({**setting, "n": n}, holds, p1=p1, share_of_triples=str(share), gap=gap, p0=p0)
        certificate, neurons = prove_for_ever("softmax", {**setting, "m": 1, "n": n})
        farthest = float(max(abs(neuron.p1 - share) for neuron in neurons))
        points.verify(certificate, farthest < 1e-6 and all(p.p0 < 1e-6 for p in neurons), for_ever_gap=farthest)
    return points.conclude(
        f"p1 is 1/2, 3/8, 1/4 to {points.gap.max:.0e} at blocks of 1e12 tokens, and p0 is {points.p0.max:.0e} or less",
        f"p1 off by {points.gap.max:.0e}; p0 {points.p0.max:.0e} or less",
    )
