"""Where softmax separates, over the spike and the row sum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from separatrix.analysis.maps import boundary
from separatrix.claims.boundary import limit_ones
from separatrix.claims.paper.base import BASE, MECHANISMS, Parameter, outcome_at
from separatrix.constructions.spike import Spike
from separatrix.constructions.theorem import required_blocks
from separatrix.core.parameters import Grid
from separatrix.exact.engines import closed
from separatrix.exact.verdicts import DELTA
from separatrix.mechanisms import mechanism_named

Array = np.ndarray[Any, Any]

LARGE_N, SMALL_N = 10**18, 10**4
WIDTH = 10_002
"""Wide enough for b = 1: the theorem asks for d - 2 >= 200 b² log(4m/delta)."""
SPAN_A1 = (Fraction(3, 10), Fraction(8, 5))
SPAN_R = (Fraction(1, 10), Fraction(3, 2))
SHARE_B = Fraction(2, 3)
"""b = 2(b+c)/3, c = (b+c)/3, as at the base point."""
BASE_R = float(Fraction(BASE["b"]) + Fraction(BASE["c"]))
ASKED = required_blocks(float(SHARE_B * SPAN_R[1]), int(BASE["m"]), float(DELTA))
"""The most that the theorem asks of d - 2 on the map."""


def _point(n: int, a1: str, r: str) -> dict[str, Parameter]:
    b = SHARE_B * Fraction(r)
    return {"n": n, "d": WIDTH, "m": BASE["m"], "a0": BASE["a0"], "a1": a1, "b": b, "c": Fraction(r) - b}


MIDDLE = _point(LARGE_N, "1.2", "0.6")
IN_STRIP = _point(LARGE_N, "1", "1.5")
"""Where |a1 - b| < 0.1."""


@dataclass(frozen=True)
class PhaseMap:
    """P(tells apart) over a1 (columns) and r = b+c (rows)."""

    a1: Array
    r: Array
    large: Mapping[str, Array]
    """By mechanism, at the large n."""
    margin: Mapping[str, Array]
    """Of each mechanism, in units of √(log n), likewise."""
    small: Array
    """Softmax at the small n."""
    limit: Array
    """The a1 of the boundary as n grows, by row: a1 (a1 + r) = 1."""
    limit_at_base: float
    """The limit at the base point's r."""
    crossings: Mapping[int, float]
    """For softmax at the base point's b and c: the a1 where P passes 1/2, by n."""
    middle: Mapping[str, float]
    """By mechanism, in the middle of where softmax separates."""
    in_strip: float
    """Softmax where |a1 - b| < 0.1."""


def compute(side: int) -> PhaseMap:
    """Both mechanisms on one grid, with so many values along each axis."""
    a1, r = _spread(SPAN_A1, side), _spread(SPAN_R, side)
    rows = np.array([float(x) for x in r])
    large = {mechanism: _map(mechanism, LARGE_N, a1, r) for mechanism in MECHANISMS}
    return PhaseMap(
        np.array([float(x) for x in a1]),
        rows,
        {mechanism: found.distinguish for mechanism, found in large.items()},
        {mechanism: found.margin for mechanism, found in large.items()},
        _map("softmax", SMALL_N, a1, r).distinguish,
        limit_ones(rows),
        float(limit_ones(BASE_R)),
        {n: _crossing(n) for n in (SMALL_N, LARGE_N)},
        {mechanism: outcome_at(mechanism, MIDDLE).distinguish for mechanism in MECHANISMS},
        outcome_at("softmax", IN_STRIP).distinguish,
    )


def _spread(span: tuple[Fraction, Fraction], side: int) -> list[Fraction]:
    return [span[0] + (span[1] - span[0]) * i / (side - 1) for i in range(side)]


def _map(mechanism: str, n: int, a1: list[Fraction], r: list[Fraction]) -> closed.ProbabilityGrid:
    fixed = {"n": n, "d": WIDTH, "m": BASE["m"], "a0": BASE["a0"]}
    blocks = {"b": [SHARE_B * x for x in r], "c": [(1 - SHARE_B) * x for x in r]}
    return closed.evaluate(Spike, mechanism_named(mechanism), Grid(fixed, (blocks, {"a1": a1})))


def _crossing(n: int) -> float:
    """The a1 where P passes 1/2."""
    a1 = ":".join(map(str, map(float, SPAN_A1)))
    (crossing,) = boundary("spike", "softmax", {**BASE, "n": n, "d": WIDTH, "a1": a1}).crossings
    return crossing.middle
