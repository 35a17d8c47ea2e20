"""Theory 3.6, what the proof uses: how loose Hoeffding is, and how often one neuron fires."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np

from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import DELTA, Points, Setting, on_grid, point, relative_error, settled, spike
from separatrix.claims.theorem import literal_signs, literal_width
from separatrix.constructions.theorem import required_signs, required_width
from separatrix.exact.engines import certified
from separatrix.mechanisms import Linear, Softmax

SETTING: Setting = {"a0": "0.01", "a1": "1.2", "c": "0.1"}
WIDTHS = range(12, 1003)
"""Every width: the extremes that are stated are those of them all."""
BLOCK = 10**6
"""Tokens in a block: large enough for the spike of D0 not to matter."""


def hoeffding_bound(b: float, d: int) -> float:
    """exp(-(d-2) s²/2) with s = 0.1/b: a bound on the chance that the mean of d-2 signs exceeds s."""
    return math.exp(-(d - 2) / (200 * b * b))


@claim("hoeffding", "3.6", "rec")
def hoeffding() -> Finding:
    """Hoeffding: for large n one neuron fires on D0 with probability at most exp(-(d-2)/(200 b²)).

    The bound over the exact probability, and the d each of them asks for; that d is the least, by certified
    fractions.
    """
    points = Points()
    for b, mechanism in product(("0.2", "0.5"), (Softmax(), Linear())):
        setting = {**SETTING, "b": b, "m": 1}
        p0 = on_grid(mechanism, setting, d=[*WIDTHS], n=[(d - 2) * BLOCK for d in WIDTHS]).p0
        bound = np.array([hoeffding_bound(float(b), d) for d in WIDTHS])
        ratio = bound / np.maximum(p0, 1e-300)
        points.add(
            {**setting, "d": f"{WIDTHS[0]}:{WIDTHS[-1]}", "block": BLOCK, "mechanism": mechanism.name},
            bool((p0 <= bound).all()),
            smallest_ratio=ratio.min(),
            at_d=WIDTHS[int(ratio.argmin())],
            largest_ratio=ratio.max(),
            then_at_d=WIDTHS[int(ratio.argmax())],
        )
    low, high = points.smallest("smallest_ratio"), points.largest("largest_ratio")
    asked, needed = required_width(0.2, required_signs(DELTA), DELTA), needed_width("0.2")
    points.append(widths_point("0.2", asked, needed))
    return points.conclude(
        f"the bound is {low:.1f} to {high:.2g} times the exact probability (every d from 12 to 1002); at "
        f"delta = {DELTA}, b = 0.2 the proof asks for d = {asked}, and d = {needed} is enough",
        f"{low:.1f} to {high:.2g} times too large; d = {asked} asked, {needed} needed",
    )


def needed_width(b: str) -> int:
    """The least d from which on m neurons fire on D0 with probability at most delta.

    Every d up to the one that the theorem asks for is tried; from there on Hoeffding's bound is enough.
    """
    widths = list(range(4, required_width(float(b), required_signs(DELTA), DELTA) + 1))
    setting = {**SETTING, "b": b, "m": required_signs(DELTA)}
    found = on_grid(Softmax(), setting, d=widths, n=[(d - 2) * BLOCK for d in widths]).fire_d0
    return widths[settled(found <= DELTA)]


def widths_point(b: str, asked: int, needed: int) -> Point:
    """Check the width the proof asks for by its formula, and the width that is enough by fractions.

    With m neurons, P(fires on D0) = 1 - (1-p0)^m is at most delta at `needed`, and above it at `needed` - 1.
    """
    m = literal_signs(DELTA)
    setting, widths = {**SETTING, "b": b, "m": m}, (needed - 1, needed)
    sizes = [(d - 2) * BLOCK for d in widths]
    counts = [
        certified.count(spike(setting, d=d, n=n), Softmax()).low for d, n in zip(widths, sizes, strict=True)
    ]
    fires = [float(1 - (1 - Fraction(neuron.p0)) ** m) for neuron in counts]
    computed = on_grid(Softmax(), setting, d=widths, n=sizes).fire_d0
    error = max(relative_error(float(p), right) for p, right in zip(computed, fires, strict=True))
    is_asked, is_least = asked == literal_width(float(b), m, DELTA), fires[1] <= DELTA < fires[0]
    return point(
        {**setting, "delta": DELTA},
        is_asked and is_least and error < 1e-12,
        asked=asked,
        needed=needed,
        fires_one_narrower=fires[0],
        fires=fires[1],
        error=error,
    )


FULL_WEIGHT: tuple[tuple[Fraction, Setting], ...] = (
    (Fraction(1, 2), {"a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1", "d": 202}),
    (Fraction(3, 8), {"a0": "0.05", "a1": "0.7", "b": "0.5", "c": "0.4", "d": 1002}),
    (Fraction(1, 4), {"a0": "0.1", "a1": "1.5", "b": "0.5", "c": "1", "d": 1002}),
)


def firing_triples(a: Fraction, b: Fraction, c: Fraction) -> Fraction:
    """The share of the sign triples with a y_1 + b y_k3 + c y_d > c + 0.1: the spike has all the weight."""
    signs = list(product((1, -1), repeat=3))
    return Fraction(sum(a * x + b * y + c * z > c + Fraction(1, 10) for x, y, z in signs), len(signs))


@claim("firing-probability", "3.6", "ours")
def firing_probability() -> Finding:
    """Softmax: for large n one neuron fires on D1 with probability 1/2, or 3/8 or 1/4 where b and c matter,
    and hardly ever on D0.

    Certified p1 against the share of the triples that fire.
    """
    points = Points()
    for claimed, setting in FULL_WEIGHT:
        n = (setting["d"] - 2) * 10**12
        neuron = certified.count(spike(setting, n=n), Softmax()).low
        share = firing_triples(*(Fraction(setting[name]) for name in ("a1", "b", "c")))
        gap = abs(float(neuron.p1 - claimed))
        points.add(
            {**setting, "n": n},
            share == claimed and gap < 1e-6 and neuron.p0 < 1e-6,
            p1=float(neuron.p1),
            share_of_triples=str(share),
            gap=gap,
            p0=float(neuron.p0),
        )
    gap, p0 = points.largest("gap"), points.largest("p0")
    shares = ", ".join(str(claimed) for claimed, _ in FULL_WEIGHT)
    return points.conclude(
        f"p1 is {shares} to {gap:.0e} at blocks of 1e12 tokens, and p0 is {p0:.0e} or less",
        f"p1 off by {gap:.0e}; p0 {p0:.0e} or less",
    )
