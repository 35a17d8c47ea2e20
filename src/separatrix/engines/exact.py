"""The exact engine: the closed form in float64, for whole grids of parameters at once.

Points are computed in pieces that fit the caches, on all cores; columns keep their own shapes, so
that what depends on one axis is computed once for that axis. Where float64 cannot decide a
comparison, the point is handed to the certified engine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np

from separatrix.constructions import Amplitudes, Construction, ExactConstruction
from separatrix.engines import certified, enumerated
from separatrix.engines._base import EngineRefusal, Outcome
from separatrix.engines.amplitudes import ScaledAmplitudes, float_values, scale, scale_each
from separatrix.engines.certified import with_kernel
from separatrix.engines.tails import EXACT_TO, Tails
from separatrix.engines.thresholds import Thresholds
from separatrix.mechanisms import Mechanism, ScoreMechanism
from separatrix.parameters import Grid

Array = np.ndarray[Any, Any]

CHUNK = 1 << 16
"""Points computed at once by one thread: what fits the caches."""
LARGEST_N = 10**300
UNDECIDED = "a tie here is too close for float64 to call"
MOST_RESOLVED = 2000
"""Points handed on to the certified engine per grid; the rest stay undecided."""


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

    def outcomes(self) -> list[Outcome | None]:
        """Every point as every engine gives it, in order; None where a tie could not be decided."""
        names = ("p0", "p1", "only", "fire_d0", "fire_d1", "distinguish", "v0", "v1", "margin")
        columns = zip(*(np.ravel(getattr(self, name)).tolist() for name in names), strict=True)
        undecided = np.ravel(self.undecided).tolist()
        return [
            None if unsure else _outcome(**dict(zip(names, point, strict=True)))
            for unsure, point in zip(undecided, columns, strict=True)
        ]


def evaluate(construction: type[Construction], mechanism: Mechanism, grid: Grid) -> ExactGrid:
    """The closed form on every point of `grid`, or all sign vectors where there is none but few of these."""
    if issubclass(construction, ExactConstruction):
        return _enumerate(construction, mechanism, grid)
    closed = _closed_form(construction, mechanism, grid)
    amplitudes = scale(closed.amplitudes, closed.blocks)
    tails = Tails(closed.blocks)
    return closed.computed([_Part(piece, amplitudes, tails.cut(piece)) for piece in _pieces(grid.shape)])


def evaluate_each(construction: type[Construction], mechanism: Mechanism, grid: Grid) -> ExactGrid:
    """The closed form along one axis, each point with the very numbers it has alone, to the last bit.

    What `evaluate` chooses once for a grid, a common denominator and how tails are found, is chosen for
    each point here; those for which it is the same are computed together.
    """
    closed = _closed_form(construction, mechanism, grid)
    amplitudes, whole = scale_each(closed.amplitudes, np.broadcast_to(closed.blocks, grid.shape))
    blocks = np.broadcast_to(closed.blocks, grid.shape)
    kinds = list(zip(whole, np.where(blocks > EXACT_TO, blocks, 0.0).tolist(), strict=True))
    parts = []
    for kind in dict.fromkeys(kinds):
        places = np.array([i for i, each in enumerate(kinds) if each == kind])
        parts.append(_Part((places,), replace(amplitudes, exact=kind[0]), Tails(blocks[places])))
    return closed.computed(parts, threads=1)


Piece = tuple[slice | Array, ...]
"""A part of a grid, as an index of its arrays."""


@dataclass(frozen=True)
class _Part:
    """A part of a grid that is computed at once."""

    piece: Piece
    amplitudes: ScaledAmplitudes
    """Of the whole grid."""
    tails: Tails
    """Of this part."""


@dataclass(frozen=True)
class _ClosedForm:
    """A grid of points that have a closed form."""

    construction: type[Construction]
    mechanism: ScoreMechanism
    grid: Grid
    values: dict[str, Any]
    """Parameters in float64."""
    amplitudes: Amplitudes
    """As rationals."""
    blocks: Array

    def computed(self, parts: Sequence[_Part], threads: int | None = None) -> ExactGrid:
        """All parts, on all cores unless `threads` says otherwise."""
        shape = self.grid.shape
        results = {name: np.empty(shape) for name in ("p0", "p1", "only", "v0", "margin")}
        undecided = np.empty(shape, dtype=bool)

        def work(part: _Part) -> None:
            with np.errstate(all="ignore"):  # what is not finite is undecided, and handed on
                cut = {name: _cut(value, part.piece) for name, value in self.values.items()}
                model = self.construction.block_model(cut, np.log)
                assert model is not None
                amplitudes = _cut_amplitudes(part.amplitudes, part.piece)
                found = Thresholds(self.mechanism, model, amplitudes, part.tails)
                p0, p1, only, unsure = found.probabilities()
                v0, margin = found.probe()
            for name, array in zip(results, (p0, p1, only, v0, margin), strict=True):
                results[name][part.piece] = array
            undecided[part.piece] = unsure

        if len(parts) == 1 or threads == 1:
            for part in parts:
                work(part)
        else:
            with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
                list(pool.map(work, parts))
        m = np.broadcast_to(self.values["m"], shape)
        outcome = ExactGrid(**results, m=m, undecided=undecided)
        _resolve(self.construction, self.mechanism, self.grid, outcome)
        return outcome


def _closed_form(construction: type[Construction], mechanism: Mechanism, grid: Grid) -> _ClosedForm:
    kernel, columns = with_kernel(mechanism), grid.columns(construction.schema)
    if max(columns["n"].flat) > LARGEST_N:
        raise EngineRefusal("the exact engine's floats end at n=1e300; use --engine certified")
    values = float_values(columns)
    model = construction.block_model(values, np.log)
    if model is None:
        raise EngineRefusal(
            f"these parameters of {construction.name} have no closed form; use --engine grouped"
        )
    amplitudes = construction.amplitudes(columns)
    return _ClosedForm(construction, kernel, grid, values, amplitudes, np.asarray(model.blocks))


def solve(construction: Construction, mechanism: Mechanism) -> Outcome:
    """One point, as every engine gives it."""
    if isinstance(construction, ExactConstruction):
        return enumerated.exact(construction, mechanism)
    fields = type(construction.parameters).model_fields
    given = {name: getattr(construction.parameters, name) for name in fields}
    grid = Grid({name: value for name, value in given.items() if value is not None})
    (outcome,) = evaluate(type(construction), mechanism, grid).outcomes()
    if outcome is None:
        raise EngineRefusal(UNDECIDED)
    return outcome


def _outcome(distinguish: float, **numbers: float) -> Outcome:
    return Outcome(
        engine="exact",
        evidence="closed form over all sign states, in float64",
        distinguish=distinguish,
        interval=(distinguish, distinguish),
        **numbers,
    )


def _enumerate(construction: type[ExactConstruction], mechanism: Mechanism, grid: Grid) -> ExactGrid:
    """Point by point; NaN where float64 cannot decide a comparison."""
    results = {name: np.full(grid.shape, np.nan) for name in ("p0", "p1", "only", "m", "v0", "margin")}
    undecided = np.zeros(grid.shape, dtype=bool)
    for index in np.ndindex(*grid.shape):
        point = construction(grid.at(construction.schema, index))
        results["m"][index] = point.m
        try:
            found = enumerated.exact(point, mechanism)
        except enumerated.TooCloseToCall:
            undecided[index] = True
            continue
        for name in ("p0", "p1", "only", "v0", "margin"):
            results[name][index] = float(getattr(found, name))
    return ExactGrid(**results, undecided=undecided)


def _pieces(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Slices along the first axis of about CHUNK points each."""
    if not shape:
        yield ()
        return
    rows = max(1, CHUNK // max(1, int(np.prod(shape[1:]))))
    for start in range(0, shape[0], rows):
        yield (slice(start, min(start + rows, shape[0])),)


def _cut(array: Any, piece: Piece) -> Any:
    """The part of a broadcastable column that belongs to a piece."""
    if not piece or not isinstance(array, np.ndarray) or array.ndim == 0 or array.shape[0] == 1:
        return array
    return array[piece]


def _cut_amplitudes(amplitudes: ScaledAmplitudes, piece: Piece) -> ScaledAmplitudes:
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
        found = None
        if count < MOST_RESOLVED:
            with suppress(EngineRefusal):  # too many blocks for fractions: the tie stays undecided
                found = certified.count(construction(grid.at(construction.schema, index)), mechanism)
        result.undecided[index] = found is None or not found.decided
        neuron = (np.nan,) * 3 if found is None or not found.decided else astuple(found.low)
        result.p0[index], result.p1[index], result.only[index] = map(float, neuron)
