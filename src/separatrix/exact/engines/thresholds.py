"""The closed form over sign states, in float64 and vectorised.

A pre-activation depends on the signs through (y_1, y_k3, y_d) and P ~ Bin(blocks, 1/2), the number
of + among the other block signs, and increases with P. So for each of the 8 triples there is a
least P that fires. With H = (tau - c y_d)/b, A = a/b, D = 2P - blocks and a row's attention ratios
`rho = u / u_ordinary`, a row fires exactly when

    D > [H (blocks+1) - y_k3]                                                   the uniform part
        + (rho_spike - 1)/t (H - y_k3 - A y_1) + (t-1)/t (rho_mate - 1)(H - y_k3)
        + (rho_own - 1)(H - sigma) - A y_1/t                                    the correction

where sigma is the row's own block sign. The uniform part is rational and full of ties, so it is
computed exactly; the correction may be as small as 1/n and is computed to full relative accuracy.
Rounding errors are bounded on the way, so that every least P is either certain or known not to be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from separatrix.constructions import BlockModel, Label, Presence, QueryRow
from separatrix.exact.engines.amplitudes import ScaledAmplitudes
from separatrix.exact.engines.tails import Tails
from separatrix.mechanisms import ScoreMechanism

Array = np.ndarray[Any, Any]
Bounds = tuple[Array, Array]
"""Lower and upper bounds of a number, rounding included."""

TRIPLES = tuple(product((1, -1), repeat=3))
"""(y_1, y_k3, y_d)."""
EPSILON = float(np.finfo(float).eps)
LARGEST_EXPONENT = 600.0
"""Ratios beyond exp of this are scaled down together, since only their proportions matter."""


@dataclass(frozen=True)
class Excess:
    """rho - 1 of the spike over t, of its mates times (t-1)/t, and of the own block; None means 0."""

    spike: Array | None
    mate: Array | None
    own_block: Array | None
    error: Array
    """A bound on their relative errors."""
    scale: Array
    """The factor that keeps them in range: 1, or less if a ratio is huge."""
    negative: bool
    """Whether some are negative, so that absolute values have to be taken."""
    has_unknown: bool
    """Whether some have no error bound: a step may be rounding noise."""
    spike_ratio: Array | None
    """rho of the spike over t, if some are negative: rho - 1 loses the digits of a small rho."""

    def size(self, part: Array) -> Array:
        """Return the absolute value of a part."""
        return np.abs(part) if self.negative else part

    def parts(self) -> Iterator[Array]:
        """Return the parts that are not zero."""
        return (part for part in (self.spike, self.mate, self.own_block) if part is not None)


@dataclass(frozen=True)
class Probabilities:
    """Probabilities of one neuron. If an undecided tie does not fire, p0 is smaller by open0, p1 by open1."""

    p0: Array
    p1: Array
    only: Array
    """P(fires on D1 and not on D0); smaller by up to open1, larger by up to open0."""
    open0: Array | float
    open1: Array | float


class Thresholds:
    """The least firing P of every sign triple, on one piece of a grid."""

    def __init__(
        self, mechanism: ScoreMechanism, model: BlockModel, amplitudes: ScaledAmplitudes, tails: Tails
    ) -> None:
        self.mechanism, self.model, self.amplitudes, self.tails = mechanism, model, amplitudes, tails
        self.blocks, self.size = np.asarray(model.blocks), np.asarray(model.size)
        self.half_steps = [0.5 * a / amplitudes.b / self.size for a in amplitudes.a]
        self.excess = tuple(tuple(self._excess(row) for row in rows) for rows in model.rows)

    def probabilities(self) -> Probabilities:
        """Return the probabilities of one neuron if all ties fire, and by how much ties leave them open."""
        p0: Any = 0.0
        p1: Any = 0.0
        only: Any = 0.0
        open0: Any = 0.0
        open1: Any = 0.0
        for triple in TRIPLES:
            (tail0, less0), (tail1, less1) = self._tail(0, triple), self._tail(1, triple)
            p0, p1, only = p0 + tail0, p1 + tail1, only + np.maximum(tail1 - tail0, 0.0)
            open0, open1 = open0 + less0, open1 + less1
        return Probabilities(p0 / 8, p1 / 8, only / 8, open0 / 8, open1 / 8)

    def probe(self) -> tuple[Array, Array, Array]:
        """Return v0, v1 and v1 - v0, the difference without the common part."""
        peaks = []
        for label in (0, 1):
            weights = [self._spike_weight(excess) for _, excess in self._rows(label)]
            peaks.append(np.maximum.reduce(np.broadcast_arrays(*weights)))
        probe = self.model.probe
        spike0, spike1 = (a * peak for a, peak in zip(probe.a, peaks, strict=True))
        return probe.offset + spike0, probe.offset + spike1, spike1 - spike0

    def _rows(self, label: Label) -> Iterator[tuple[QueryRow, Excess]]:
        return zip(self.model.rows[label], self.excess[label], strict=True)

    def _tail(self, label: Label, triple: tuple[int, ...]) -> tuple[Array, Array | float]:
        """Return P(a row fires), and how much smaller it may be if rounding leaves a threshold open."""
        over = self.amplitudes.tau - self.amplitudes.c * triple[2]
        b = self.amplitudes.b
        # Integer amplitudes make this exact, so ties of the uniform part are decided without an error bound.
        start, remainder = np.divmod(over * (self.blocks + 1) + b * (self.blocks - triple[1]), 2 * b)
        bounds = [
            self._kind_bounds(label, triple, row, excess, start, remainder / (2 * b))
            for row, excess in self._rows(label)
        ]
        # The first row to fire decides, so the least bounds of all kinds of row are those of the label.
        low, high = (reduce(np.minimum, ends) for ends in zip(*bounds, strict=True))
        below, above = np.floor(low), np.floor(high)
        tail = self.tails(below + (start + 1))
        # Where both floors agree, no number within the error bounds changes the count.
        return tail, tail - self.tails(above + (start + 1)) if (below != above).any() else 0.0

    def _excess(self, row: QueryRow) -> Excess:
        """Compute the rho - 1 factors of the correction with their error bounds."""
        log_size, alone = np.log(self.size), (self.size - 1) / self.size
        spike, mate, own_block = (
            np.asarray(self.mechanism.log_ratio(row.base, step)) if np.any(step) else None
            for step in (row.spike, row.mate, row.own)
        )
        relative = self.mechanism.roundings * EPSILON + self.model.off
        error: Any = 8 * EPSILON + relative
        lower: Any = np.zeros(())
        for ratio, share in ((spike, log_size), (mate, 0.0), (own_block, 0.0)):
            if ratio is not None:
                # exp turns the absolute error of a logarithm, which grows with it, into a relative one.
                error = error + relative * np.abs(ratio) + 4 * EPSILON * share
                lower = np.maximum(lower, ratio - share - LARGEST_EXPONENT)
        # expm1, since ratios near 1 leave an excess as small as 1/n, which exp(x) - 1 would round away.
        parts = (
            None if spike is None else _expm1_times(spike, -log_size - lower),
            None if mate is None else _expm1_times(mate, -lower) * alone,
            None if own_block is None else _expm1_times(own_block, -lower),
        )
        negative = any(part is not None and bool((part < 0).any()) for part in parts)
        has_unknown = not bool(np.isfinite(error).all())
        spike_ratio = np.exp(spike - log_size - lower) if negative and spike is not None else None
        return Excess(*parts, error, np.exp(-lower), negative, has_unknown, spike_ratio)

    def _spike_weight(self, excess: Excess) -> Array:
        """f(row, spike) = rho_spike / (t (blocks + 1 + e)), e the sum of the excesses."""
        total = excess.scale * (self.blocks + 1.0) + sum(excess.parts())
        spike = excess.scale / self.size
        if excess.spike is not None:
            spike = excess.spike + spike
            if excess.spike_ratio is not None:
                spike = np.where(excess.spike < 0, excess.spike_ratio, spike)
        weight: Array = spike / total
        return weight

    def _kind_bounds(
        self, label: Label, triple: tuple[int, ...], row: QueryRow, excess: Excess, start: Array, fraction: Array
    ) -> Bounds:
        """Return bounds of x for one kind of row, where `start + floor(x) + 1` is the least P that fires.

        A row whose own sign is + exists only if P > 0, one whose own sign is - only if P < blocks.
        """
        if row.presence is Presence.OTHER:
            plus, minus = (self._bounds(label, triple, excess, sigma, fraction) for sigma in (1, -1))
            # A + row, helped by its own sign, fires at no larger P than a - row; but it exists from P = 1 on,
            # and at P = 0 the - row decides.
            low, high = (np.where(m < -start, m, np.maximum(p, -start)) for p, m in zip(plus, minus, strict=True))
            return low, high
        low, high = self._bounds(label, triple, excess, 0, fraction)
        if row.presence is Presence.MATES:
            low, high = (np.where(self.size <= 1, np.inf, end) for end in (low, high))
        return low, high

    def _bounds(self, label: Label, triple: tuple[int, ...], excess: Excess, sigma: int, fraction: Array) -> Bounds:
        """Evaluate the formula above in P instead of D; `fraction` is the uniform part beyond `start`."""
        y_1, y_k, y_d = triple
        amplitudes, b, half_step = self.amplitudes, self.amplitudes.b, self.half_steps[label]
        over = amplitudes.tau - amplitudes.c * y_d
        # `error` sums the absolute values of all terms: times the relative error it bounds that of the sum,
        # also where terms cancel.
        x, error = fraction - y_1 * half_step, fraction + half_step
        for factor, gap in (
            (excess.spike, over - b * y_k - amplitudes.a[label] * y_1),
            (excess.mate, over - b * y_k),
            (excess.own_block, over - b * sigma),
        ):
            if factor is not None:
                term = factor * (0.5 * gap / b)
                x = _in_place(np.add, x, term)
                error = _in_place(np.add, error, _in_place(np.abs, term))
        error = _in_place(np.multiply, error, excess.error)
        if excess.has_unknown:
            error = np.where(np.isfinite(excess.error), error, np.inf)
        # Amplitudes that are no integers are rounded themselves: an error relative to the whole sum.
        if not amplitudes.exact:
            magnitude = (amplitudes.tau + amplitudes.c + amplitudes.a[label]) / b + 1
            sizes = sum(excess.size(part) for part in excess.parts())
            error = error + 8 * EPSILON * magnitude * (sizes + excess.scale * (self.blocks + 1))
        if np.any(excess.scale < 1):  # scaled down: decided where it is out of range, unknown elsewhere
            beyond = 4 * (np.abs(over) / b + 2) * (self.blocks + 2)
            far = np.abs(x) - error > beyond * excess.scale + 2 * (fraction + half_step)
            is_scaled = excess.scale < 1
            x = np.where(is_scaled & far, np.copysign(beyond, x), x)
            error = np.where(is_scaled, np.where(far, 0.0, np.inf), error)
        # The sum is a cheap test for the usual case. Infinite bounds leave such points to `certified`.
        if not np.isfinite(x.sum()) and not np.isfinite(x).all():
            error = np.where(np.isfinite(x), error, np.inf)
            x = np.where(np.isfinite(x), x, 0.0)
        low = x - error
        error += x
        return low, error


def _in_place(operation: np.ufunc, first: Array, *arguments: Array) -> Array:
    """Apply an operation, writing the result to `first` if it is an array of the right shape.

    A grid needs hundreds of these operations, and allocating arrays would cost as much as the arithmetic.
    """
    fits = isinstance(first, np.ndarray) and all(np.shape(argument) in ((), first.shape) for argument in arguments)
    result: Array = operation(first, *arguments, out=first if fits else None)
    return result


def _expm1_times(exponent: Array, share: Array) -> Array:
    """Compute (exp(exponent) - 1) * exp(share) without overflow, accurately for small exponents."""
    exponent, share = np.broadcast_arrays(exponent, share)
    product: Array = np.exp(np.minimum(exponent + share, LARGEST_EXPONENT)) - np.exp(share)
    small = exponent < 1
    if small.any():
        product = np.where(small, np.expm1(np.minimum(exponent, 1.0)) * np.exp(share), product)
    return product
