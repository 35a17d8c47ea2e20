"""The closed form over sign states in float64, for whole grids of parameters at once.

A pre-activation depends on the signs through (y_1, y_k3, y_d) and P ~ Bin(blocks, 1/2), the number
of + among the other block signs, and increases with P. So for each of the 8 triples there is a
least P that fires. With H = (tau - c y_d)/b, A = a/b, D = 2P - blocks and a row's attention ratios
`rho = u / u_ordinary`, a row fires exactly when

    D > [H (blocks+1) - y_k3]                                                   the uniform part
        + (rho_spike - 1)/t (H - y_k3 - A y_1) + (t-1)/t (rho_mate - 1)(H - y_k3)
        + (rho_own - 1)(H - sigma) - A y_1/t                                    the correction

where sigma is the row's own block sign. The uniform part is rational and full of ties, so it is
computed exactly; the correction may be as small as 1/n and is computed to full relative accuracy.
Where float64 still cannot decide, the point is handed to the certified engine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from separatrix.constructions import BlockModel, Construction, Label, Presence, Row
from separatrix.engines import certified
from separatrix.engines._base import EngineRefusal, Outcome
from separatrix.engines.amplitudes import ScaledAmplitudes, float_values, scale
from separatrix.engines.certified import with_kernel
from separatrix.engines.tails import Tails
from separatrix.mechanisms import Mechanism, ScoreMechanism
from separatrix.parameters import Grid

Array = np.ndarray[Any, Any]

TRIPLES = tuple(product((1, -1), repeat=3))
"""(y_1, y_k3, y_d)."""
CHUNK = 1 << 16
"""Points computed at once by one thread: what fits the caches."""
LARGEST_N = 10**300
MOST_RESOLVED = 2000
"""Points handed on to the certified engine per grid; the rest stay undecided."""
EPSILON = float(np.finfo(float).eps)
NEGLIGIBLE = 1e-15
"""A tie that moves a probability by less than this is none."""


@dataclass(frozen=True)
class ExactGrid:
    """Probabilities on a grid, each an array of the grid's shape."""

    p0: Array
    p1: Array
    only: Array
    """P[a neuron fires on D1 and not on D0]."""
    m: Array
    v0: Array
    """The largest pre-activation of D0 with all signs +, in units of sqrt(log n)."""
    margin: Array
    undecided: Array
    """Where a tie could not be decided; the numbers there are NaN."""

    @property
    def fire_d0(self) -> Array:
        """P[F(D0) > 0] = 1 - (1-p0)^m."""
        with np.errstate(divide="ignore"):
            fires: Array = -np.expm1(self.m * np.log1p(-self.p0))
            return fires

    @property
    def fire_d1(self) -> Array:
        """P[F(D1) > 0] = 1 - (1-p1)^m."""
        with np.errstate(divide="ignore"):
            fires: Array = -np.expm1(self.m * np.log1p(-self.p1))
            return fires

    @property
    def distinguish(self) -> Array:
        """(1-p0)^m - q^m, with q = 1 - p0 - only, arranged so that nothing cancels."""
        with np.errstate(divide="ignore", invalid="ignore"):
            silent = self.m * np.log1p(-self.p0)
            both = -np.expm1(self.m * np.log1p(-np.minimum(self.only / (1 - self.p0), 1.0)))
            return np.where(self.p0 < 1, np.exp(silent) * both, 0.0)

    @property
    def v1(self) -> Array:
        """The largest pre-activation of D1."""
        return self.v0 + self.margin

    @property
    def bits(self) -> Array:
        """log2(v1 / margin)."""
        with np.errstate(divide="ignore"):
            return np.log2(self.v1 / self.margin)


def evaluate(construction: type[Construction], mechanism: Mechanism, grid: Grid) -> ExactGrid:
    """The closed form on every point of `grid`."""
    mechanism = with_kernel(mechanism)
    columns = grid.columns(construction.schema)
    if max(columns["n"].flat) > LARGEST_N:
        raise EngineRefusal("the exact engine's floats end at n=1e300; use --engine certified")
    values = float_values(columns)
    whole = construction.block_model(values, np.log)
    if whole is None:
        raise EngineRefusal(
            f"these parameters of {construction.name} have no closed form; use --engine grouped"
        )
    if np.max(whole.blocks) > 1e15 and construction.name != "plain":
        raise EngineRefusal("the exact engine counts blocks in float64, to d=1e15; use a smaller d")
    amplitudes = scale(construction.amplitudes(columns), np.asarray(whole.blocks))
    tails = Tails(np.asarray(whole.blocks))
    pieces = list(_pieces(grid.shape))
    results = {name: np.empty(grid.shape) for name in ("p0", "p1", "only", "v0", "margin")}
    undecided = np.empty(grid.shape, dtype=bool)

    def work(piece: tuple[slice, ...]) -> None:
        with np.errstate(over="ignore", under="ignore"):
            model = construction.block_model({k: _cut(v, piece) for k, v in values.items()}, np.log)
            assert model is not None
            part = _Part(mechanism, model, _cut_amplitudes(amplitudes, piece), tails.cut(piece))
            p0, p1, only, unsure = part.probabilities()
            v0, margin = part.probe()
        for name, array in zip(results, (p0, p1, only, v0, margin), strict=True):
            results[name][piece] = array
        undecided[piece] = unsure

    if len(pieces) == 1:
        work(pieces[0])
    else:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(work, pieces))
    m = np.broadcast_to(values["m"], grid.shape)
    outcome = ExactGrid(**results, m=m, undecided=undecided)
    _resolve(construction, mechanism, grid, outcome)
    return outcome


def solve(construction: Construction, mechanism: Mechanism) -> Outcome:
    """One point, as every engine gives it."""
    grid = Grid(
        {name: value for name, value in construction.parameters.values().items() if value is not None}
    )
    result = evaluate(type(construction), mechanism, grid)
    if result.undecided.item():
        raise EngineRefusal("a tie here is too close for float64; use --engine certified")
    distinguish = result.distinguish.item()
    return Outcome(
        engine="exact",
        evidence="closed form over all sign states, in float64",
        p0=result.p0.item(),
        p1=result.p1.item(),
        fire_d0=result.fire_d0.item(),
        fire_d1=result.fire_d1.item(),
        distinguish=distinguish,
        interval=(distinguish, distinguish),
        v0=result.v0.item(),
        v1=result.v1.item(),
        margin=result.margin.item(),
    )


class _Part:
    """One piece of a grid small enough for the caches."""

    def __init__(
        self, mechanism: ScoreMechanism, model: BlockModel, amplitudes: ScaledAmplitudes, tails: Tails
    ) -> None:
        self.mechanism, self.model, self.amplitudes, self.tails = mechanism, model, amplitudes, tails
        self.blocks, self.size = np.asarray(model.blocks), np.asarray(model.size)
        self.excess = tuple(tuple(self._excess(row) for row in rows) for rows in model.rows)

    def probabilities(self) -> tuple[Array, Array, Array, Array]:
        """p0, p1, P[fires on D1 only], and where a tie is undecided."""
        p0: Any = 0.0
        p1: Any = 0.0
        only: Any = 0.0
        undecided: Any = False
        for triple in TRIPLES:
            least0, unsure0 = self._least(0, triple)
            least1, unsure1 = self._least(1, triple)
            tail0, tail1 = self.tails(least0), self.tails(least1)
            p0, p1, only = p0 + tail0, p1 + tail1, only + np.maximum(tail1 - tail0, 0.0)
            undecided = undecided | unsure0 | unsure1
        return p0 / 8, p1 / 8, only / 8, undecided

    def probe(self) -> tuple[Array, Array]:
        """v0 and v1 - v0, the latter without the part they have in common."""
        peaks = []
        for label in (0, 1):
            weights = [self._spike_weight(row, excess) for row, excess in self._rows(label)]
            peaks.append(np.maximum.reduce(np.broadcast_arrays(*weights)))
        probe = self.model.probe
        v0 = probe.offset + probe.a[0] * peaks[0]
        return v0, probe.a[1] * peaks[1] - probe.a[0] * peaks[0]

    def _rows(self, label: Label) -> Iterator[tuple[Row, _Excess]]:
        return zip(self.model.rows[label], self.excess[label], strict=True)

    def _excess(self, row: Row) -> _Excess:
        """The three (rho - 1) factors of the correction, and how far they may be off."""
        ratios = [self._log_ratio(row.base, step) for step in (row.spike, row.mate, row.own)]
        spike, mate, own = ratios
        log_size = np.log(self.size)
        error: Any = 8 * EPSILON
        for ratio in ratios:
            if ratio is not None:
                error = error + 4 * EPSILON * np.abs(ratio)
        return _Excess(
            None if spike is None else _expm1_over(spike, log_size),
            None if mate is None else np.expm1(np.minimum(mate, 700.0)) * ((self.size - 1) / self.size),
            None if own is None else np.expm1(np.minimum(own, 700.0)),
            error,
        )

    def _log_ratio(self, base: Array, step: Array) -> Array | None:
        return self.mechanism.log_ratio(base, step) if np.any(step) else None

    def _spike_weight(self, row: Row, excess: _Excess) -> Array:
        """f(row, spike) = rho_spike / (t (blocks + 1 + e)), e the sum of the excesses."""
        total = self.blocks + 1.0
        for part in (excess.spike, excess.mate, excess.own):
            total = total if part is None else total + part
        spike = 1 / self.size if excess.spike is None else excess.spike + 1 / self.size
        weight: Array = np.where(np.isinf(spike), 1.0, spike / total)
        return weight

    def _least(self, label: Label, triple: tuple[int, ...]) -> tuple[Array, Any]:
        """The least P that fires on some row (blocks + 1 where none does), and where that is unsure."""
        best: Any = None
        unsure: Any = False
        for row, excess in self._rows(label):
            if row.presence is Presence.OTHER:
                plus, unsure_plus = self._row_least(label, triple, excess, 1)
                minus, unsure_minus = self._row_least(label, triple, excess, -1)
                least = np.where(minus <= 0, 0.0, np.maximum(plus, 1.0))
                doubt = unsure_plus | unsure_minus
            else:
                least, doubt = self._row_least(label, triple, excess, 0)
                if row.presence is Presence.MATES:
                    alone = self.size <= 1
                    least, doubt = np.where(alone, self.blocks + 1.0, least), doubt & ~alone
            best = least if best is None else np.minimum(best, least)
            unsure = unsure | doubt
        return best, unsure

    def _row_least(
        self, label: Label, triple: tuple[int, ...], excess: _Excess, sigma: int
    ) -> tuple[Array, Any]:
        y_1, y_k, y_d = triple
        amplitudes, b = self.amplitudes, self.amplitudes.b
        over = amplitudes.tau - amplitudes.c * y_d
        start, rest = np.divmod(over * (self.blocks + 1) + b * (self.blocks - y_k), 2 * b)
        fraction = rest / (2 * b)
        slope = amplitudes.a[label] / b
        shift = -0.5 * y_1 * slope / self.size
        size = np.abs(shift) + fraction
        for factor, gap in (
            (excess.spike, over - b * y_k - amplitudes.a[label] * y_1),
            (excess.mate, over - b * y_k),
            (excess.own, over - b * sigma),
        ):
            if factor is not None:
                half = 0.5 * gap / b
                shift = shift + factor * half
                size = size + factor * np.abs(half)
        shift = shift + fraction
        error = excess.error * size
        if not amplitudes.exact:
            factors = sum(abs(f) for f in (excess.spike, excess.mate, excess.own) if f is not None)
            scale_of = (amplitudes.tau + amplitudes.c) / b + slope + 1
            error = error + 8 * EPSILON * scale_of * (factors + self.blocks + 1)
        low = np.clip(start + np.floor(shift - error) + 1, 0, self.blocks + 1)
        high = np.clip(start + np.floor(shift + error) + 1, 0, self.blocks + 1)
        unsure = low != high
        if unsure.any():
            unsure = unsure & (self.tails(low) - self.tails(high) > NEGLIGIBLE)
        return low, unsure


@dataclass(frozen=True)
class _Excess:
    """(rho - 1) of the spike over t, of its mates times (t-1)/t, and of the own block; None is 0."""

    spike: Array | None
    mate: Array | None
    own: Array | None
    error: Array
    """A bound on their relative errors."""


def _expm1_over(log_ratio: Array, log_size: Array) -> Array:
    """(exp(log_ratio) - 1) / size, without overflow before the division."""
    large = np.exp(np.minimum(log_ratio - log_size, 700.0))
    small = np.expm1(np.minimum(log_ratio, 40.0)) * np.exp(-log_size)
    chosen: Array = np.where(log_ratio > 37.0, large, small)
    return chosen


def _pieces(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Slices along the first axis of about CHUNK points each."""
    if not shape:
        yield ()
        return
    rows = max(1, CHUNK // max(1, int(np.prod(shape[1:]))))
    for start in range(0, shape[0], rows):
        yield (slice(start, min(start + rows, shape[0])),)


def _cut(array: Any, piece: tuple[slice, ...]) -> Any:
    """The part of a broadcastable column that belongs to a piece."""
    if not piece or not isinstance(array, np.ndarray) or array.ndim == 0 or array.shape[0] == 1:
        return array
    return array[piece]


def _cut_amplitudes(amplitudes: ScaledAmplitudes, piece: tuple[slice, ...]) -> ScaledAmplitudes:
    a0, a1 = amplitudes.a
    return ScaledAmplitudes(
        (_cut(a0, piece), _cut(a1, piece)),
        _cut(amplitudes.b, piece),
        _cut(amplitudes.c, piece),
        _cut(amplitudes.tau, piece),
        amplitudes.exact,
    )


def _resolve(construction: type[Construction], mechanism: Mechanism, grid: Grid, result: ExactGrid) -> None:
    """Hand undecided points to the certified engine; what is left over becomes NaN."""
    for count, place in enumerate(np.argwhere(result.undecided)):
        index = tuple(int(i) for i in place)
        if count < MOST_RESOLVED:
            point = construction(grid.at(construction.schema, index))
            found = certified.count(point, mechanism)
            if found.decided:
                low = found.low
                result.p0[index], result.p1[index], result.only[index] = map(
                    float, (low.p0, low.p1, low.only)
                )
                result.undecided[index] = False
                continue
        result.p0[index] = result.p1[index] = result.only[index] = np.nan
