"""The computations behind the figures and tables of the reproduction, around the paper's base point."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np
import torch

from separatrix.analysis import maps
from separatrix.analysis.laws import Scalings, scaling
from separatrix.claims._base import DELTA, LABELS, Array
from separatrix.claims._tools import on_grid
from separatrix.claims.boundary import limit_ones
from separatrix.constructions import Construction, Label
from separatrix.constructions.spike import Spike
from separatrix.constructions.theorem import required_blocks, required_width
from separatrix.core.parameters import Grid
from separatrix.exact.engines import Outcome, closed
from separatrix.exact.outputs.kernels import rational_model, spike_weights, with_kernel
from separatrix.exact.reader import FourLayerNetwork
from separatrix.exact.verdicts import lost_from, verdict
from separatrix.mechanisms import examples, mechanism_named

Parameter = int | str | Fraction

BASE = cast(Mapping[str, Parameter], Spike.example)
"""The point where softmax distinguishes and linear is blind; the sweeps vary one parameter at a time."""
MECHANISMS = ("softmax", "linear")


def outcome_at(mechanism: str, parameters: Mapping[str, Any]) -> Outcome:
    """Return the outcome that `separatrix verdict spike …` prints at a point."""
    return verdict("spike", mechanism, **parameters).outcome


ATTENTION_POINT: Mapping[str, Parameter] = {**BASE, "n": 40, "d": 12}
SPIKE_TOKEN, OTHER_TOKEN = 17, 30
"""The token with the spike, and an ordinary one in another block."""


@dataclass(frozen=True)
class AttentionRows:
    """The weights of all keys in two rows of one attention matrix."""

    mechanism: str
    label: Label
    from_spike: Array
    from_other: Array
    margin: float
    """The mechanism's margin at this point."""


def attention_rows() -> tuple[AttentionRows, ...]:
    """Return the rows for both labels under both mechanisms, from the reader's first layer."""
    construction, rows = Spike.read(ATTENTION_POINT), []
    for mechanism in MECHANISMS:
        network = FourLayerNetwork.draw(mechanism_named(mechanism), construction, seed=0)
        margin = outcome_at(mechanism, ATTENTION_POINT).margin
        for label in LABELS:
            weights = network.layers(construction.dense(label, SPIKE_TOKEN, torch.float64)).attention.numpy()
            rows.append(AttentionRows(mechanism, label, weights[SPIKE_TOKEN], weights[OTHER_TOKEN], margin))
    return tuple(rows)


LENGTHS = "1e3:1e6:4:log"
GROWTH_PARAMETERS = {**BASE, "n": LENGTHS}


def margin_growth(tell: Callable[[str], None] = lambda _: None, mechanisms: Sequence[str] | None = None) -> Scalings:
    """Return how the margin grows with n, a row for each of these mechanisms or of all."""
    result: Scalings = scaling("spike", [*(mechanisms or examples())], GROWTH_PARAMETERS, of="margin", tell=tell)
    return result


LINE_MECHANISMS = ("softmax", "power:beta=12", "linear")


def boundary_map(side: int) -> maps.Map:
    """Return the map of P(tells apart) over a1 and n in closed form, with `side` values of each."""
    axes = {"a1": f"0.5:1.5:{side}", "n": f"1e3:1e18:{side}:log"}
    return maps.map("spike", LINE_MECHANISMS, {**axes, **{k: v for k, v in BASE.items() if k not in axes}})


HOEFFDING_BLOCK = 1000
"""n = 1000 (d-2)."""
SURE = DELTA
"""The largest probability of firing on D0 that is accepted."""
TARGET_P0 = SURE / int(BASE["m"])
"""With p0 at most this, m neurons fire on D0 with probability at most SURE."""
REQUIRED_WIDTH = required_width(float(BASE["b"]), int(BASE["m"]), SURE)
"""The d that the theorem needs."""


@dataclass(frozen=True)
class HoeffdingCurve:
    """P(a neuron fires on D0) and Hoeffding's bound on it, over d."""

    mechanism: str
    d: tuple[int, ...]
    exact: tuple[float, ...]
    bound: tuple[float, ...]

    @property
    def ratio(self) -> tuple[float, ...]:
        """How many times too large the bound is."""
        return tuple(b / p for b, p in zip(self.bound, self.exact, strict=True))

    def enough(self, values: Sequence[float], target: float) -> int:
        """Return the least d from which on `values` stay at or below `target`."""
        above = [d for d, value in zip(self.d, values, strict=True) if value > target]
        return next(d for d in self.d if d > above[-1])


def hoeffding_point(d: int) -> dict[str, Parameter]:
    """Return the base point with another width, in blocks of the same size."""
    return {**BASE, "n": HOEFFDING_BLOCK * (d - 2), "d": d}


def hoeffding_curves() -> tuple[HoeffdingCurve, ...]:
    """Return both mechanisms over d = 4, 8, 12, ...: sums of signs that never meet the threshold exactly."""
    widths, curves = tuple(range(4, 301, 4)), []
    for name in MECHANISMS:
        p0 = on_grid(mechanism_named(name), BASE, d=widths, n=[HOEFFDING_BLOCK * (d - 2) for d in widths]).p0
        bounds = tuple(hoeffding_bound(Spike.read(hoeffding_point(d)), name) for d in widths)
        curves.append(HoeffdingCurve(name, widths, tuple(map(float, p0)), bounds))
    return tuple(curves)


def hoeffding_bound(construction: Construction, mechanism: str) -> float:
    """Return the bound on P(some row's pre-activation exceeds tau on D0), form=ones.

    Row j gives `a0 f_j y_1 + b sum_k w_jk y_k + c y_d` with f_j its weight on the spike and w_jk on block k;
    every other token has the weight g. Given y_d it must exceed tau - c y_d, and by Hoeffding a sum of
    independent signs with weights of squared length V_j exceeds s with probability at most exp(-s²/(2 V_j)).
    """
    values = construction.parameters.complete_values()
    n, d, size = int(values["n"]), int(values["d"]), int(values["n"] // (values["d"] - 2))
    a0, b, c, tau = (float(values[name]) for name in ("a0", "b", "c", "tau"))
    total = 0.0
    kernel = with_kernel(mechanism_named(mechanism))
    for f in map(float, spike_weights(kernel, rational_model(construction), 0).values()):
        g = (1 - f) / (n - 1)
        squares = (a0 * f) ** 2 + b**2 * ((f + (size - 1) * g) ** 2 + (d - 3) * (size * g) ** 2)
        total += sum(0.5 * math.exp(-((tau - c * sign) ** 2) / (2 * squares)) for sign in (1, -1))
    return min(total, 1.0)


MARGIN_MECHANISMS = ("softmax", "power:beta=4", "taylor:order=2", "linear")
LAST_DECADE = 20


@dataclass(frozen=True)
class MarginCurve:
    """The relative margin of one mechanism over n, and where it is lost in number formats."""

    mechanism: str
    n: tuple[int, ...]
    margin: tuple[float, ...]
    relative: tuple[float, ...]
    """margin / v(D1) = 2^-bits."""
    lost: Mapping[str, int | None]
    relative_when_lost: Mapping[str, float]

    def at(self, n: int) -> float:
        """Return the margin at one of the curve's n, in units of sqrt(log n)."""
        return self.margin[self.n.index(n)]


def margin_curves() -> tuple[MarginCurve, ...]:
    """Return every mechanism from n = 100 to 10^20; powers of ten are always among the n."""
    decades = [10**i for i in range(2, LAST_DECADE + 1)]
    sizes = sorted({*decades, *(100 * round(10 ** (i / 8)) for i in range(8 * (LAST_DECADE - 2)))})
    curves = []
    for name in MARGIN_MECHANISMS:
        mechanism, count = mechanism_named(name), len(sizes)
        lost_sizes = lost_from(Spike.read(BASE), mechanism)
        ends = {format_name: n for format_name, n in lost_sizes.items() if n is not None}
        grid = on_grid(mechanism, BASE, n=[*sizes, *ends.values()])
        margin, relative = (tuple(map(float, values)) for values in (grid.margin, grid.margin / grid.v1))
        at_ends = dict(zip(ends, relative[count:], strict=True))
        curves.append(MarginCurve(name, tuple(sizes), margin[:count], relative[:count], lost_sizes, at_ends))
    return tuple(curves)


LARGE_N, SMALL_N = 10**18, 10**4
PHASE_WIDTH = 10_002
"""Wide enough for b = 1: the theorem needs d - 2 >= 200 b² log(4m/delta)."""
SPAN_A1 = (Fraction(3, 10), Fraction(8, 5))
SPAN_R = (Fraction(1, 10), Fraction(3, 2))
SHARE_B = Fraction(2, 3)
"""b = 2(b+c)/3, c = (b+c)/3, as at the base point."""
BASE_R = float(Fraction(BASE["b"]) + Fraction(BASE["c"]))
REQUIRED_BLOCKS = required_blocks(float(SHARE_B * SPAN_R[1]), int(BASE["m"]), DELTA)
"""The largest d - 2 that the theorem needs on the map."""


def _phase_point(a1: str, r: str) -> dict[str, Parameter]:
    b = SHARE_B * Fraction(r)
    return {**BASE, "n": LARGE_N, "d": PHASE_WIDTH, "a1": a1, "b": b, "c": Fraction(r) - b}


MIDDLE = _phase_point("1.2", "0.6")
IN_STRIP = _phase_point("1", "1.5")
"""A point with |a1 - b| < 0.1."""


@dataclass(frozen=True)
class PhaseMap:
    """P(tells apart) over a1 (columns) and r = b+c (rows)."""

    a1: Array
    r: Array
    large: Mapping[str, Array]
    """P at the large n, by mechanism."""
    margin: Mapping[str, Array]
    """The margin at the large n in units of √(log n), by mechanism."""
    small: Array
    """P for softmax at the small n."""
    limit: Array
    """The a1 of the boundary as n grows, by row: a1 (a1 + r) = 1."""
    limit_at_base: float
    """The limit at the base point's r."""
    crossings: Mapping[int, float]
    """For softmax at the base point's b and c: the a1 where P passes 1/2, by n."""
    middle: Mapping[str, float]
    """P in the middle of where softmax separates, by mechanism."""
    in_strip: float
    """P for softmax where |a1 - b| < 0.1."""


def phase_map(side: int) -> PhaseMap:
    """Return both mechanisms on one grid, with `side` values along each axis."""
    a1, r = ([low + (high - low) * i / (side - 1) for i in range(side)] for low, high in (SPAN_A1, SPAN_R))
    blocks = {"b": [SHARE_B * x for x in r], "c": [(1 - SHARE_B) * x for x in r]}
    constants = {"d": PHASE_WIDTH, "m": BASE["m"], "a0": BASE["a0"]}

    def grid(mechanism: str, n: int) -> closed.ProbabilityGrid:
        return closed.evaluate(Spike, mechanism_named(mechanism), Grid({**constants, "n": n}, (blocks, {"a1": a1})))

    large = {mechanism: grid(mechanism, LARGE_N) for mechanism in MECHANISMS}
    rows = np.array(r, dtype=float)
    return PhaseMap(
        np.array(a1, dtype=float),
        rows,
        {mechanism: grid.distinguish for mechanism, grid in large.items()},
        {mechanism: grid.margin for mechanism, grid in large.items()},
        grid("softmax", SMALL_N).distinguish,
        limit_ones(rows),
        float(limit_ones(BASE_R)),
        {n: _crossing(n) for n in (SMALL_N, LARGE_N)},
        {mechanism: outcome_at(mechanism, MIDDLE).distinguish for mechanism in MECHANISMS},
        outcome_at("softmax", IN_STRIP).distinguish,
    )


def _crossing(n: int) -> float:
    """Return the a1 where P passes 1/2."""
    a1 = ":".join(str(float(end)) for end in SPAN_A1)
    (crossing,) = maps.boundary("spike", "softmax", {**BASE, "n": n, "d": PHASE_WIDTH, "a1": a1}).crossings
    return crossing.middle
