"""Rows of attention in rationals and balls, for scalar kernels on tokens with a closed form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb, ctx, fmpq

from separatrix.constructions import (
    BlockModel,
    Construction,
    Description,
    ExactConstruction,
    Label,
    Presence,
    QueryRow,
)
from separatrix.core.errors import EngineRefusal
from separatrix.core.numbers.logforms import Flint, rational
from separatrix.core.tensors import torch
from separatrix.exact.outputs._base import Array, Ends, Feature, Outputs
from separatrix.exact.outputs.kernels import block_scores, kernel_rows, rational_model, rows_of
from separatrix.mechanisms import Mechanism, ScoreMechanism, mechanism_named

TWINS = {"identity-features": "linear", "relu-features": "linear", "based": "taylor:order=2"}
"""Feature maps whose products are a scalar kernel, on tokens that are not negative (`list mechanisms
--lattice`)."""
SMALLEST_BITS = 1 << 14
SMALLEST = Fraction(1, 1 << SMALLEST_BITS)
"""Numbers nearer to 0 (n to the power of a million is soon that) are only known to be so."""
LARGEST_GROUPS = 4096
"""More distinct tokens than this are not looked at for a sign."""


class ProvedOutputs(Outputs):
    """Rows as rationals and balls, with the precision that n calls for."""

    proves = True
    evidence = "rationals and balls"

    def __init__(
        self,
        construction: Construction,
        features: tuple[Feature, ...],
        probe_weights: tuple[Fraction, ...],
        rows: tuple[list[tuple[Flint, ...]], list[tuple[Flint, ...]]],
        raw: tuple[list[tuple[Flint, ...]], list[tuple[Flint, ...]]],
        same: bool,
        counts: tuple[int, int],
    ) -> None:
        self.precision = precision(construction)
        self.features, self.probe_weights = features, probe_weights
        self.rows, self.raw, self.counts = rows, raw, counts
        self._same = same
        with ctx.workprec(self.precision):
            self._unit = fmpq(1) if construction.unit == 1 else arb(construction.n).log().sqrt()
            self.unit = ends(self._unit)

    @property
    def same(self) -> bool:
        return self._same

    @property
    def differ(self) -> bool:
        if len(self.raw[0]) != len(self.raw[1]):
            return True
        pairs = ((x, y) for rows in zip(*self.raw, strict=True) for x, y in zip(*rows, strict=True))
        with ctx.workprec(self.precision):
            return any(low > 0 or high < 0 for low, high in (ends(x - y) for x, y in pairs))

    @cached_property
    def offsets(self) -> tuple[Array, Array]:
        d0, d1 = (self._apart(rows, [self.rows[0][0]] * len(rows)) for rows in self.rows)
        return d0, d1

    @cached_property
    def differences(self) -> Array:
        few, many = sorted(map(len, self.rows))
        return self._apart(self.rows[1], self.rows[0]) if few == many else np.empty((0, len(self.features)))

    def _apart(self, rows: list[tuple[Flint, ...]], others: list[tuple[Flint, ...]]) -> Array:
        """Rows less others, in float64 once they are subtracted."""
        roots = np.sqrt([float(feature.copies) for feature in self.features])
        with ctx.workprec(self.precision):
            pairs = [zip(row, other, strict=True) for row, other in zip(rows, others, strict=True)]
            found: Array = np.array([[float(x - y) for x, y in pair] for pair in pairs])
        return found * roots

    def reading(self, label: Label, weights: Sequence[Fraction]) -> Ends:
        factors = [
            rational(each.copies * Fraction(w)) for each, w in zip(self.features, weights, strict=True)
        ]
        with ctx.workprec(self.precision):
            sums = [
                sum((w * x for w, x in zip(factors, row, strict=True)), fmpq(0)) for row in self.rows[label]
            ]
        found = [ends(each) for each in sums]
        return max(low for low, _ in found), max(high for _, high in found)

    def entries(self, label: Label, nearest: bool) -> tuple[Array, Array]:
        with ctx.workprec(self.precision):
            found = [[ends(x * self._unit) for x in row] for row in self.raw[label]]
        low, high = (np.array([[float(each[end]) for each in row] for row in found]) for end in (0, 1))
        return (low, high) if nearest else (np.nextafter(low, -np.inf), np.nextafter(high, np.inf))


def precision(construction: Construction) -> int:
    """Bits enough for differences of some 1/n, and for their sums."""
    return 256 + 4 * construction.n.bit_length()


def ends(x: Flint) -> Ends:
    """The rational, twice, or the ends of the ball.

    >>> ends(fmpq(1, 3))
    (Fraction(1, 3), Fraction(1, 3))
    """
    if isinstance(x, fmpq):
        exact = Fraction(int(x.p), int(x.q))
        return exact, exact
    if not x.is_finite():
        raise EngineRefusal("the scores of these tokens are not finite, even as balls")
    middle, radius = (_dyadic(part) for part in (x.mid(), x.rad()))
    if middle is None:
        middle, radius = Fraction(0), SMALLEST + (radius or SMALLEST)
    radius = SMALLEST if radius is None else radius
    return middle - radius, middle + radius


def _dyadic(x: arb) -> Fraction | None:
    """The number, or None where it is not 0 and below SMALLEST."""
    mantissa, exponent = (int(part) for part in x.man_exp())
    if mantissa and exponent + mantissa.bit_length() < -SMALLEST_BITS:
        return None
    return Fraction(mantissa) * Fraction(2) ** exponent


def proved_outputs(construction: Construction, mechanism: Mechanism) -> ProvedOutputs:
    """The rows of both labels, or an EngineRefusal where there is no exact form."""
    kernel = kernel_of(construction, mechanism)
    with ctx.workprec(precision(construction)):
        if isinstance(construction, ExactConstruction):
            return _of_description(construction, kernel)
        return _of_blocks(construction, kernel, rational_model(construction))


def kernel_of(construction: Construction, mechanism: Mechanism) -> ScoreMechanism:
    """The mechanism as a scalar kernel: itself, or the one it is equal to on these tokens."""
    if mechanism.spelled in TWINS and not _has_negative(construction):
        mechanism = mechanism_named(TWINS[mechanism.spelled])
    if not isinstance(mechanism, ScoreMechanism):
        raise EngineRefusal(f"{mechanism.spelled} has no scalar kernel, so no exact rows")
    return mechanism


def _has_negative(construction: Construction) -> bool:
    """Whether some query or key has a negative entry, or nobody looked."""
    if not construction.has_groups or construction.group_count() > LARGEST_GROUPS:
        return True
    groups = [construction.groups(label, torch.float64) for label in (0, 1)]
    return any(bool((side < 0).any()) for group in groups for side in (group.queries, group.keys))


def _of_description(construction: ExactConstruction, kernel: ScoreMechanism) -> ProvedOutputs:
    """A row for each distinct query; equal if the levels are, or if all numbers are rational and equal."""
    found = kernel_rows(construction, kernel)
    counted = [
        Counter(rows_of(Description((query,), description.kinds))[0] for query in description.queries)
        for description in construction.descriptions
    ]
    rows = [{row: found.received(row) for row in each} for each in counted]
    same = counted[0] == counted[1]
    if all(isinstance(x, fmpq) for each in rows for row in each.values() for x in row):
        d0, d1 = (Counter(rows[label][row] for row in counted[label].elements()) for label in (0, 1))
        same = same or d0 == d1
    listed = list(rows[0].values()), list(rows[1].values())
    features = tuple(Feature(place) for place in range(1, construction.signs + 1))
    ones, counts = (Fraction(1),) * len(features), (counted[0].total(), counted[1].total())
    return ProvedOutputs(construction, features, ones, listed, listed, same, counts)


def _of_blocks(construction: Construction, kernel: ScoreMechanism, model: BlockModel) -> ProvedOutputs:
    """The kinds of row of a closed form.

    Blocks without the spike are all alike, so the best weights are the same for all of them (the nearest
    point of a symmetric hull is symmetric): a row is given by the mean over these blocks.
    """
    blocks, n = int(model.blocks), construction.n
    last = construction.signs == blocks + 3
    kinds = [
        [_block_row(kernel, model, label, row) for row in model.rows[label] if _exists(row, model)]
        for label in (0, 1)
    ]
    raw = tuple([row if last else row[1:4] for row in kind] for kind in kinds)
    rows = tuple([_mean_blocks(row, blocks, last) for row in kind] for kind in kinds)
    numbers = (1, 1, blocks, 1) if last else (1, blocks)
    features, first = [], 1
    for copies in numbers:
        features.append(Feature(first, copies))
        first += copies
    same = model.rows[0] == model.rows[1] and model.amplitudes.a[0] == model.amplitudes.a[1]
    probe = (Fraction(1),) * 4 if last else (Fraction(1), Fraction(0))
    return ProvedOutputs(
        construction, tuple(features), probe, (rows[0], rows[1]), (raw[0], raw[1]), same, (n, n)
    )


def _exists(row: QueryRow, model: BlockModel) -> bool:
    return not (row.presence is Presence.MATES and model.size <= 1)


def _block_row(kernel: ScoreMechanism, model: BlockModel, label: Label, row: QueryRow) -> tuple[Flint, ...]:
    """What a row receives: of the spike, in the spike's block, in the row's own, in any other, of c."""
    amplitudes, size = model.amplitudes, model.size
    spike, mate, own, total = block_scores(kernel, model, row)
    shares = amplitudes.a[label] * spike, amplitudes.b * (spike + (size - 1) * mate)
    return (*(x / total for x in (*shares, amplitudes.b * size * own, amplitudes.b * size)), amplitudes.c)


def _mean_blocks(row: tuple[Flint, ...], blocks: int, last: bool) -> tuple[Flint, ...]:
    spike, block, own, other, c = row
    mean = (own + (blocks - 1) * other) / blocks
    return (spike, block, mean, c) if last else (block, mean)
