"""Where softmax separates, over the spike and the row sum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from separatrix.constructions import Spike
from separatrix.engines import exact
from separatrix.mechanisms import mechanism_named
from separatrix.paper.base import BASE, MECHANISMS, Parameter, outcome_at
from separatrix.paper.effort import FULL, Effort
from separatrix.parameters import Grid

Array = np.ndarray[Any, Any]

LARGE_N, SMALL_N = 10**18, 10**4
WIDTH = 10_002
"""Wide enough for b = 1: the theorem asks for d - 2 >= 200 b² log(4m/delta)."""
SPAN_A1 = (Fraction(3, 10), Fraction(8, 5))
SPAN_R = (Fraction(1, 10), Fraction(3, 2))
SHARE_B = Fraction(2, 3)
"""b = 2(b+c)/3, c = (b+c)/3, as at the base point."""


def _point(n: int, a1: str, r: str) -> dict[str, Parameter]:
    b = SHARE_B * Fraction(r)
    return {"n": n, "d": WIDTH, "m": BASE["m"], "a0": BASE["a0"], "a1": a1, "b": b, "c": Fraction(r) - b}


MIDDLE = _point(LARGE_N, "1.2", "0.6")
IN_STRIP = _point(LARGE_N, "1", "1.5")
"""Where |a1 - b| < 0.1."""


@dataclass(frozen=True)
class PhaseMap:
    """P[distinguishes] over a1 (columns) and r = b+c (rows)."""

    a1: Array
    r: Array
    large: Mapping[str, Array]
    """By mechanism, at the large n."""
    small: Array
    """Softmax at the small n."""
    crossings: Mapping[int, float]
    """For softmax at the base point's b and c: the a1 where P passes 1/2, by n."""
    middle: Mapping[str, float]
    """By mechanism, in the middle of where softmax separates."""
    in_strip: float
    """Softmax where |a1 - b| < 0.1."""


def compute(effort: Effort = FULL) -> PhaseMap:
    """Both mechanisms on one grid."""
    a1, r = _spread(SPAN_A1, effort.map_side), _spread(SPAN_R, effort.map_side)
    return PhaseMap(
        np.array([float(x) for x in a1]),
        np.array([float(x) for x in r]),
        {mechanism: _map(mechanism, LARGE_N, a1, r) for mechanism in MECHANISMS},
        _map("softmax", SMALL_N, a1, r),
        {n: _crossing(n) for n in (SMALL_N, LARGE_N)},
        {mechanism: outcome_at(mechanism, MIDDLE).distinguish for mechanism in MECHANISMS},
        outcome_at("softmax", IN_STRIP).distinguish,
    )


def _spread(span: tuple[Fraction, Fraction], side: int) -> list[Fraction]:
    return [span[0] + (span[1] - span[0]) * i / (side - 1) for i in range(side)]


def _map(mechanism: str, n: int, a1: list[Fraction], r: list[Fraction]) -> Array:
    fixed = {"n": n, "d": WIDTH, "m": BASE["m"], "a0": BASE["a0"]}
    blocks = {"b": [SHARE_B * x for x in r], "c": [(1 - SHARE_B) * x for x in r]}
    return exact.evaluate(Spike, mechanism_named(mechanism), Grid(fixed, (blocks, {"a1": a1}))).distinguish


def _crossing(n: int) -> float:
    """The a1 where P passes 1/2, to a thousandth."""
    a1 = [Fraction(i, 1000) for i in range(300, 1601)]
    row = _map("softmax", n, a1, [Fraction(BASE["b"]) + Fraction(BASE["c"])])[0]
    return float(a1[int(np.argmax(row > 0.5))])


def boundary(r: Array) -> Array:
    """The a1 with a1 (a1 + r) = 1."""
    a1: Array = (np.sqrt(r * r + 4) - r) / 2
    return a1
