"""The closed engine: the closed form in float64, for whole grids of parameters at once.

Points are computed in pieces that fit the caches, on all cores; columns keep their own shapes, so
that values that depend on one axis are computed once for that axis. If float64 cannot decide a
comparison, the certified engine does. The remaining rounding error is bounded, see `ProbabilityGrid`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from separatrix.constructions import Amplitudes, Construction, ExactConstruction
from separatrix.core.parameters import Grid
from separatrix.exact.engines import certified, enumerated
from separatrix.exact.engines.amplitudes import ScaledAmplitudes, float_values, scale, scale_each
from separatrix.exact.engines.outcome import EngineRefusal, Outcome, significant_bits
from separatrix.exact.engines.tails import ACCURACY, EXACT_TO, LEAST, Tails
from separatrix.exact.engines.thresholds import EPSILON, Thresholds
from separatrix.exact.outputs.kernels import no_closed_form, with_kernel
from separatrix.mechanisms import Mechanism, ScoreMechanism

Array = np.ndarray[Any, Any]

CHUNK = 1 << 16
"""Points computed at once by one thread, so that they fit the caches."""
LARGEST_N = 10**300
EVIDENCE = "closed form over all sign states, in float64"
UNDECIDED = "a tie here is too close for float64 to call"
MOST_RESOLVED = 2000
"""Points per grid passed to the certified engine; if there are more, those that matter come first."""
NEGLIGIBLE = 1e-15
"""A tie matters only if it changes a probability of the network by more than this."""
RELATIVE = ACCURACY + 16 * EPSILON
"""A bound on the relative error of p0 and p1: the error of the tails and of a sum of eight."""
FORMULA = 4 * EPSILON * 750
"""The same bound for P(tells apart): exponents down to -745, where exp underflows, with four roundings."""


@dataclass(frozen=True)
class ProbabilityGrid:
    """Probabilities on a grid, each an array of the grid's shape.

    p0 and p1 are sums of binomial tails, so their relative errors are at most RELATIVE, and that of
    `only`, a sum of differences, is at most RELATIVE (p0 + p1). P(tells apart) falls with p0 and rises
    with `only`: evaluated at their bounds it gives `bounds`, for every m.
    """

    p0: Array
    p1: Array
    only: Array
    """P(a neuron fires on D1 and not on D0)."""
    m: Array
    v0: Array
    """The largest pre-activation of D0 with all signs +, in units of sqrt(log n)."""
    v1: Array
    """The pre-activation of D1."""
    margin: Array
    undecided: Array
    """Whether a tie could not be decided; the numbers there are NaN."""
    open0: Array
    """How much smaller p0 may be, because of ties too small to matter and too many to resolve."""
    open1: Array

    @property
    def fire_d0(self) -> Array:
        """P(F(D0) > 0) = 1 - (1-p0)^m."""
        return _fires(self.m, self.p0)

    @property
    def fire_d1(self) -> Array:
        """P(F(D1) > 0) = 1 - (1-p1)^m."""
        return _fires(self.m, self.p1)

    @property
    def distinguish(self) -> Array:
        """(1-p0)^m - q^m, with q = 1 - p0 - only."""
        result = np.empty(self.p0.shape)

        def fill(piece: Piece) -> None:
            result[piece] = _distinguish(*(_cut(x, piece) for x in (self.m, self.p0, self.only)))

        _for_each(fill, list(_pieces(self.p0.shape)))
        return result

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Lower and upper bounds of P(tells apart) that include all rounding."""
        off0, off = RELATIVE * self.p0 + LEAST, RELATIVE * (self.p0 + self.p1) + LEAST
        most0, least0 = np.minimum(self.p0 + off0, 1.0), np.maximum(self.p0 - self.open0 - off0, 0.0)
        # P falls with p0 and rises with `only`: opposite bounds give the ends.
        low = _distinguish(self.m, most0, np.maximum(self.only - self.open1 - off, 0.0))
        high = _distinguish(self.m, least0, self.only + self.open0 + off)
        return np.maximum(low - FORMULA * low, 0.0), np.minimum(high + FORMULA * high, 1.0)

    @property
    def error(self) -> Array:
        """A bound on the error of `distinguish`."""
        (low, high), p = self.bounds, self.distinguish
        error: Array = np.maximum(p - low, high - p)
        return error

    @property
    def bits(self) -> Array:
        """The significant bits needed to tell the labels apart."""
        return significant_bits(self.v1, self.margin)

    def outcomes(self) -> list[Outcome | None]:
        """Return the outcome of every point in order, or None if a tie could not be decided."""
        names = ("p0", "p1", "only", "fire_d0", "fire_d1", "distinguish", "v0", "v1", "margin", "error")
        columns = zip(*(np.ravel(getattr(self, name)).tolist() for name in names), strict=True)
        undecided = np.ravel(self.undecided).tolist()
        points = (dict[str, Any](zip(names, point, strict=True)) for point in columns)
        return [
            None if unsure else Outcome("closed", EVIDENCE, interval=(point["distinguish"],) * 2, **point)
            for unsure, point in zip(undecided, points, strict=True)
        ]


def _fires(m: Array, p: Array) -> Array:
    # log1p and expm1: with p = 1e-20 and m = 1e18, 1 - (1 - p)^m would be 0.
    with np.errstate(divide="ignore"):
        fires: Array = -np.expm1(m * np.log1p(-p))
        return fires


def _distinguish(m: Array, p0: Array, only: Array) -> Array:
    """Compute (1-p0)^m - q^m without cancellation, with a relative error of at most FORMULA."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # As a product, (1-p0)^m (1 - (1-s)^m) with s = only/(1-p0): for small P the two powers nearly cancel.
        silent = m * np.log1p(-p0)
        fires_on_d1 = -np.expm1(m * np.log1p(-np.minimum(only / (1 - p0), 1.0)))
        return np.where(p0 >= 1, 0.0, np.exp(silent) * fires_on_d1)


def evaluate(construction: type[Construction], mechanism: Mechanism, grid: Grid) -> ProbabilityGrid:
    """Evaluate the closed form on every point of `grid`, or all sign vectors if these are few."""
    if issubclass(construction, ExactConstruction):
        return _enumerate(construction, mechanism, grid)
    closed_form = _closed_form(construction, mechanism, grid)
    amplitudes = scale(closed_form.amplitudes, closed_form.blocks)
    tails = Tails(closed_form.blocks)
    return closed_form.compute([_Part(piece, amplitudes, tails.cut(piece)) for piece in _pieces(grid.shape)])


def evaluate_each(construction: type[Construction], mechanism: Mechanism, grid: Grid) -> ProbabilityGrid:
    """Evaluate the closed form along one axis, with the same bits as evaluating each point alone.

    `evaluate` chooses a common denominator and the method for tails once per grid. Here they are chosen
    for each point, and points with the same choice are computed together.
    """
    closed_form = _closed_form(construction, mechanism, grid)
    amplitudes, are_integers = scale_each(closed_form.amplitudes, np.broadcast_to(closed_form.blocks, grid.shape))
    blocks = np.broadcast_to(closed_form.blocks, grid.shape)
    # Whether tails above EXACT_TO come from tables depends on all N of a call, so a point with such an N
    # shares a call only with points of the same N.
    kinds = list(zip(are_integers, np.where(blocks > EXACT_TO, blocks, 0.0).tolist(), strict=True))
    parts = []
    for kind in dict.fromkeys(kinds):
        indices = np.array([i for i, other_kind in enumerate(kinds) if other_kind == kind])
        parts.append(_Part((indices,), replace(amplitudes, exact=kind[0]), Tails(blocks[indices])))
    return closed_form.compute(parts, threads=1)


Piece = tuple[slice | Array, ...]
"""A part of a grid, as an index of its arrays."""


@dataclass(frozen=True)
class _Part:
    """A part of a grid that is computed at once."""

    piece: Piece
    amplitudes: ScaledAmplitudes
    """The amplitudes of the whole grid."""
    tails: Tails
    """The tails of this part."""


@dataclass(frozen=True)
class _ClosedForm:
    """A grid of points that have a closed form."""

    construction: type[Construction]
    mechanism: ScoreMechanism
    grid: Grid
    values: dict[str, Any]
    """Parameters in float64."""
    amplitudes: Amplitudes
    """The amplitudes as rationals."""
    blocks: Array

    def compute(self, parts: Sequence[_Part], threads: int | None = None) -> ProbabilityGrid:
        """Compute all parts, on all cores unless `threads` is given."""
        shape = self.grid.shape
        results = {name: np.empty(shape) for name in ("p0", "p1", "only", "v0", "v1", "margin")}
        open0, open1 = np.zeros(shape), np.zeros(shape)

        def work(part: _Part) -> None:
            with np.errstate(all="ignore"):  # values that are not finite are resolved by the certified engine
                cut = {name: _cut(value, part.piece) for name, value in self.values.items()}
                model = self.construction.block_model(cut, np.log)
                assert model is not None
                amplitudes = _cut_amplitudes(part.amplitudes, part.piece)
                thresholds = Thresholds(self.mechanism, model, amplitudes, part.tails)
                neuron = thresholds.probabilities()
                probe = thresholds.probe()
            for name, array in zip(results, (neuron.p0, neuron.p1, neuron.only, *probe), strict=True):
                results[name][part.piece] = array
            if np.any(neuron.open0) or np.any(neuron.open1):
                open0[part.piece], open1[part.piece] = neuron.open0, neuron.open1

        _for_each(work, parts, threads)
        m = np.broadcast_to(self.values["m"], shape)
        undecided = np.zeros(shape, dtype=bool)
        outcome = ProbabilityGrid(**results, m=m, undecided=undecided, open0=open0, open1=open1)
        _resolve(self.construction, self.mechanism, self.grid, outcome)
        return outcome


def _for_each(work: Callable[[Any], None], parts: Sequence[Any], threads: int | None = None) -> None:
    """Call `work` for every part, on all cores unless `threads` is given."""
    if len(parts) == 1 or threads == 1:
        for part in parts:
            work(part)
    else:
        with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
            list(pool.map(work, parts))


def _closed_form(construction: type[Construction], mechanism: Mechanism, grid: Grid) -> _ClosedForm:
    kernel, columns = with_kernel(mechanism), grid.columns(construction.schema)
    if max(columns["n"].flat) > LARGEST_N:
        raise EngineRefusal("the closed engine's floats end at n=1e300", ("certified",))
    values = float_values(columns)
    model = construction.block_model(values, np.log)
    if model is None:
        raise no_closed_form(construction.name)
    amplitudes = construction.amplitudes(columns)
    return _ClosedForm(construction, kernel, grid, values, amplitudes, np.asarray(model.blocks))


def solve(construction: Construction, mechanism: Mechanism, _: object = None) -> Outcome:
    """Return the outcome at one point; sampling options, the last argument of every engine, do not apply."""
    if isinstance(construction, ExactConstruction):
        return enumerated.in_floats(construction, mechanism)
    grid = Grid(construction.parameters.given_values())
    (outcome,) = evaluate(type(construction), mechanism, grid).outcomes()
    if outcome is None:
        raise EngineRefusal(UNDECIDED)
    return outcome


def _enumerate(construction: type[ExactConstruction], mechanism: Mechanism, grid: Grid) -> ProbabilityGrid:
    """Try all sign vectors at every point; NaN if float64 cannot decide a comparison."""
    names = ("p0", "p1", "only", "v0", "v1", "margin")
    results = {name: np.full(grid.shape, np.nan) for name in (*names, "m")}
    undecided = np.zeros(grid.shape, dtype=bool)
    for index in np.ndindex(*grid.shape):
        point = construction(grid.at(construction.schema, index))
        results["m"][index] = point.m
        outcome: Outcome | None
        try:
            outcome = enumerated.in_floats(point, mechanism)
        except enumerated.TooCloseToCall:
            outcome = None
        if outcome is None or not isinstance(outcome.p0, Fraction):
            undecided[index] = True
            continue
        for name in names:
            results[name][index] = float(getattr(outcome, name))
    zeros = np.zeros(grid.shape)
    return ProbabilityGrid(**results, undecided=undecided, open0=zeros, open1=zeros)


def _pieces(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Yield slices along the first axis of about CHUNK points each."""
    if not shape:
        yield ()
        return
    rows = max(1, CHUNK // max(1, int(np.prod(shape[1:]))))
    for start in range(0, shape[0], rows):
        yield (slice(start, min(start + rows, shape[0])),)


def _cut(array: Any, piece: Piece) -> Any:
    """Return the part of a broadcastable column that belongs to a piece."""
    if not piece or not isinstance(array, np.ndarray) or array.ndim == 0 or array.shape[0] == 1:
        return array
    return array[piece]


def _cut_amplitudes(amplitudes: ScaledAmplitudes, piece: Piece) -> ScaledAmplitudes:
    a0, a1, b, c, tau = (_cut(column, piece) for column in (*amplitudes.a, amplitudes.b, amplitudes.c, amplitudes.tau))
    return ScaledAmplitudes((a0, a1), b, c, tau, amplitudes.exact)


def _resolve(construction: type[Construction], mechanism: Mechanism, grid: Grid, result: ProbabilityGrid) -> None:
    """Resolve ties and overflows with the certified engine; unresolved ties that matter become NaN."""
    matters = _matters(result)
    is_open = (result.open0 > 0) | (result.open1 > 0) | ~np.isfinite(result.v0) | ~np.isfinite(result.margin)
    # The certified engine takes one point at a time: beyond this many,
    # only ties that change an answer are resolved.
    if np.count_nonzero(is_open) > MOST_RESOLVED:
        is_open = matters
    result.undecided[...] = matters
    for position in np.argwhere(is_open)[:MOST_RESOLVED]:
        index = tuple(int(i) for i in position)
        with suppress(EngineRefusal):  # too many blocks for fractions: the tie stays undecided
            count = certified.count(construction(grid.at(construction.schema, index)), mechanism)
            if count.is_decided:
                result.p0[index], result.p1[index], result.only[index] = map(float, astuple(count.low))
                result.undecided[index], result.open0[index], result.open1[index] = False, 0.0, 0.0
            if not np.isfinite(result.margin[index]):
                result.v0[index], result.v1[index] = float(count.v0), float(count.v1)
                result.margin[index] = float(count.margin)
    for numbers in (result.p0, result.p1, result.only):
        numbers[result.undecided] = np.nan


def _matters(result: ProbabilityGrid) -> Array:
    """Return where unresolved ties change a probability of the network."""
    if not (result.open0.any() or result.open1.any()):
        return np.zeros(result.undecided.shape, dtype=bool)
    p0, p1, only, m = result.p0, result.p1, result.only, result.m
    least0, least1 = p0 - result.open0, p1 - result.open1
    most = _distinguish(m, least0, only + result.open0)
    least = _distinguish(m, p0, np.maximum(only - result.open1, 0.0))
    widths = most - least, _fires(m, p0) - _fires(m, least0), _fires(m, p1) - _fires(m, least1)
    matters: Array = np.maximum.reduce(widths) > NEGLIGIBLE
    return matters
