"""Hoeffding's bound against the exact value, or how loose the proof is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from separatrix.claims.paper.base import BASE, MECHANISMS, Parameter
from separatrix.constructions import Construction
from separatrix.constructions.spike import Spike
from separatrix.constructions.theorem import required_width
from separatrix.core.parameters import Grid
from separatrix.exact.engines import closed
from separatrix.exact.outputs.kernels import rational_model, spike_weights, with_kernel
from separatrix.exact.verdicts import DELTA
from separatrix.mechanisms import mechanism_named

BLOCK_SIZE = 1000
"""n = 1000 (d-2)."""
WIDEST = 300
SURE = float(DELTA)
TARGET = SURE / int(BASE["m"])
"""With p0 at most this, m neurons fire on D0 with probability at most SURE."""
ASKED = required_width(float(BASE["b"]), int(BASE["m"]), SURE)
"""The d that the theorem asks for."""


@dataclass(frozen=True)
class Looseness:
    """P(a neuron fires on D0) and its bound, over d."""

    mechanism: str
    d: tuple[int, ...]
    exact: tuple[float, ...]
    bound: tuple[float, ...]

    @property
    def ratio(self) -> tuple[float, ...]:
        """How many times too large the bound is."""
        return tuple(b / p for b, p in zip(self.bound, self.exact, strict=True))

    def enough(self, values: Sequence[float], target: float) -> int:
        """The least d from which on `values` stay at or below `target`."""
        above = [d for d, value in zip(self.d, values, strict=True) if value > target]
        return next(d for d in self.d if d > above[-1])


def point(d: int) -> dict[str, Parameter]:
    """The base point with another width, in blocks of the same size."""
    return {**BASE, "n": BLOCK_SIZE * (d - 2), "d": d}


def compute() -> tuple[Looseness, ...]:
    """Both mechanisms over d = 4, 8, 12, ...: sums of signs that never meet the threshold exactly."""
    widths = tuple(range(4, WIDEST + 1, 4))
    return tuple(_looseness(mechanism, widths) for mechanism in MECHANISMS)


def _looseness(mechanism: str, widths: tuple[int, ...]) -> Looseness:
    attends = mechanism_named(mechanism)
    fixed = {name: value for name, value in BASE.items() if name not in ("n", "d")}
    axis = {"d": widths, "n": [BLOCK_SIZE * (d - 2) for d in widths]}
    found = closed.evaluate(Spike, attends, Grid(fixed, (axis,))).p0
    bounds = tuple(hoeffding(Spike.read(point(d)), mechanism) for d in widths)
    return Looseness(mechanism, widths, tuple(float(p) for p in found), bounds)


def hoeffding(construction: Construction, mechanism: str) -> float:
    """The bound on P(some row's pre-activation exceeds tau on D0), form=ones.

    Row j says `a0 f_j y_1 + b sum_k w_jk y_k + c y_d` with f_j its weight on the spike and w_jk on
    block k. Given y_d it must exceed tau - c y_d, and by Hoeffding a sum of independent signs with
    weights of squared length V_j exceeds s with probability at most exp(-s²/(2 V_j)).
    """
    values = construction.parameters.filled()
    n, d, size = int(values["n"]), int(values["d"]), int(values["n"] // (values["d"] - 2))
    a0, b, c, tau = (float(values[name]) for name in ("a0", "b", "c", "tau"))
    total = 0.0
    for weight in spike_weights(
        with_kernel(mechanism_named(mechanism)), rational_model(construction), 0
    ).values():
        f = float(weight)
        each = (1 - f) / (n - 1)
        squared = (a0 * f) ** 2 + b**2 * ((f + (size - 1) * each) ** 2 + (d - 3) * (size * each) ** 2)
        total += sum(0.5 * math.exp(-((tau - c * sign) ** 2) / (2 * squared)) for sign in (1, -1))
    return min(total, 1.0)
