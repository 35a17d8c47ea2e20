"""Theory 3.4, the separation theorem: what it promises, and which hypotheses it needs."""

from __future__ import annotations

import numpy as np

from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import DELTA, Array, Points, Setting, on_grid, point, settled, short
from separatrix.constructions.theorem import enough_signs, enough_width, hypotheses
from separatrix.mechanisms import Linear, Softmax

SETTINGS: tuple[Setting, ...] = (
    {"a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1"},
    {"a0": "0.05", "a1": "0.7", "b": "0.5", "c": "0.4"},
    {"a0": "0.1", "a1": "1.5", "b": "0.5", "c": "1"},
    {"a0": "0.1", "a1": "2", "b": "0.1", "c": "0.5"},
    {"a0": "0.05", "a1": "0.87", "b": "0.2", "c": "0.1"},
    {"a0": "0.05", "a1": "0.62", "b": "0.5", "c": "0.51"},
)
"""From comfortable to hardly admissible: the last has a1(a1+b+c) = 1.01 and a1 - b = 0.12."""
DELTAS = (0.1, 0.01, 1e-6)
BLOCK_SIZES = [10**e for e in (0, 1, 2, 3, 4, 6, 9, 12, 18, 30, 60, 65, 70, 80, 100, 200, 295)]


def failures(setting: Setting, sizes: list[int]) -> dict[str, Array]:
    """The exact probabilities of the four events that must not happen."""
    softmax, linear = (on_grid(mechanism, setting, n=sizes) for mechanism in (Softmax(), Linear()))
    with np.errstate(divide="ignore"):
        silent = np.exp(softmax.m * np.log1p(-softmax.p1))
    return {
        "softmax_fires_on_D0": softmax.fire_d0,
        "softmax_silent_on_D1": silent,
        "linear_fires_on_D0": linear.fire_d0,
        "linear_fires_on_D1": linear.fire_d1,
    }


def admissible(setting: Setting, delta: float) -> Setting:
    """The setting with the least d and m that the theorem asks for, unless it has its own."""
    m = enough_signs(delta)
    return {"d": enough_width(float(setting["b"]), m, delta), "m": m, **setting}


@claim("theorem", "3.4", "rec")
def theorem() -> Finding:
    """If a1(a1+b+c) > 1, a0(a0+b+c) < 1, a1-b > 0.1, d-2 >= 200 b² log(4m/delta) and m >=
    log(1/delta)/log(4/3), then for large n, with probability 1-O(delta), softmax fires on D1 and not on D0,
    and linear fires on neither.

    For each setting the n from which on all four failures stay below delta.
    """
    points = Points(theorem_point(admissible(s, delta), delta) for s in SETTINGS for delta in DELTAS)
    constant = points.largest("largest_over_delta")
    soonest, latest = points.smallest("from_blocks_of"), points.largest("from_blocks_of")
    return points.conclude(
        f"each of the four failures has probability {constant:.2f} delta or less as n grows; 'large n' means "
        f"n/(d-2) >= {soonest:.0f} at best and {latest:.0e} at worst (a1(a1+b+c) = 1.01, a1-b = 0.12)",
        f"the constant in O(delta) is {constant:.2f} here",
    )


def theorem_point(setting: Setting, delta: float) -> Point:
    """Holds if the hypotheses do and, from some n on, every failure is at most delta."""
    sizes = [(setting["d"] - 2) * t for t in BLOCK_SIZES]
    found = failures(setting, sizes)
    worst = np.maximum.reduce(list(found.values()))
    first = settled(worst <= delta)
    holds = first < len(sizes) and all(hypotheses(setting, delta).values())
    measured: Setting = {name: float(each[-1]) for name, each in found.items()}
    if holds:
        measured |= {"from_n": short(sizes[first]), "from_blocks_of": float(BLOCK_SIZES[first])}
    return point({**setting, "delta": delta}, holds, largest_over_delta=worst[-1] / delta, **measured)


WITHOUT: tuple[tuple[str, Setting], ...] = (
    ("a1(a1+b+c) > 1", {"a0": "0.05", "a1": "0.8", "b": "0.2", "c": "0.1"}),
    ("a0(a0+b+c) < 1", {"a0": "0.9", "a1": "1.2", "b": "0.2", "c": "0.1"}),
    ("a1 - b > 0.1", {"a0": "0.05", "a1": "0.75", "b": "0.7", "c": "0.7"}),
    ("d - 2 >= 200 b² log(4m/delta)", {"a0": "0.05", "a1": "1.2", "b": "0.2", "c": "0.1", "d": 6}),
    ("m >= log(1/delta)/log(4/3)", {"a0": "0.05", "a1": "1.2", "b": "0.2", "c": "0.1", "m": 2}),
)
"""Points that violate one hypothesis each."""


@claim("hypotheses-needed", "3.4", "ours")
def hypotheses_needed() -> Finding:
    """No hypothesis of the theorem is idle: without any one of them there are parameters where the conclusion
    fails.

    Without one hypothesis, some failure is far more likely than delta.
    """
    points = Points()
    for dropped, given in WITHOUT:
        setting = admissible(given, DELTA)
        violated = [name for name, holds in hypotheses(setting, DELTA).items() if not holds]
        found = failures(setting, [(setting["d"] - 2) * 10**15])
        worst, name = max((float(p[0]), name) for name, p in found.items())
        points.add(
            {**setting, "delta": DELTA},
            violated == [dropped] and worst > 5 * DELTA,
            without=dropped,
            failure=name,
            probability=worst,
        )
    least = points.smallest("probability")
    return points.conclude(
        "for each hypothesis there are parameters that violate it alone, and there a failure has "
        f"probability {least:.2g} or more at delta = {DELTA}",
        f"failure {least / DELTA:.0f} delta or more",
    )
