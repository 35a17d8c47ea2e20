"""Attention outputs in rationals and balls, for scalar kernels on tokens with a closed form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import repeat

import numpy as np
from flint import arb, ctx, fmpq

from separatrix.constructions import BlockModel, Construction, Description, ExactConstruction, Label, Presence, QueryRow
from separatrix.core.errors import EngineRefusal
from separatrix.core.numbers.logforms import Flint, rational
from separatrix.core.tensors import torch
from separatrix.exact.outputs._base import Array, Ends, Feature, Outputs, RowDifference
from separatrix.exact.outputs.kernels import LogitRow, block_scores, kernel_rows, rational_model, rows_of
from separatrix.mechanisms import Mechanism, ScoreMechanism, mechanism_named

TWINS = {"identity-features": "linear", "relu-features": "linear", "based": "taylor:order=2"}
"""Feature maps that equal a scalar kernel on non-negative tokens (see `list mechanisms --lattice`)."""
SMALLEST_BITS = 1 << 14
SMALLEST = Fraction(1, 1 << SMALLEST_BITS)
"""Smaller numbers, such as n to the power of minus a million, are only bounded by this."""
LARGEST_GROUPS = 4096
"""The maximum number of distinct tokens examined for negative entries."""


class ProvedOutputs(Outputs):
    """Rows in rationals and balls, with a precision that grows with n."""

    proves = True
    evidence = "rationals and balls"
    has_equal_rows = False
    row_differences: tuple[RowDifference, ...] = ()

    def __init__(
        self,
        construction: Construction,
        features: tuple[Feature, ...],
        probe_weights: tuple[Fraction, ...],
        rows: tuple[list[tuple[Flint, ...]], list[tuple[Flint, ...]]],
        raw: tuple[list[tuple[Flint, ...]], list[tuple[Flint, ...]]],
        has_equal_rows: bool,
        counts: tuple[int, int],
        differences: tuple[RowDifference, ...],
    ) -> None:
        self.precision = precision(construction)
        self.features, self.probe_weights = features, probe_weights
        self.rows, self.raw, self.counts = rows, raw, counts
        self.has_equal_rows, self.row_differences = has_equal_rows, differences
        with ctx.workprec(self.precision):
            self._unit = fmpq(1) if construction.unit == 1 else arb(construction.n).log().sqrt()
            self.unit = ends(self._unit)

    @property
    def differ(self) -> bool:
        if len(self.raw[0]) != len(self.raw[1]):
            return True
        pairs = ((x, y) for rows in zip(*self.raw, strict=True) for x, y in zip(*rows, strict=True))
        with ctx.workprec(self.precision):
            return any(low > 0 or high < 0 for low, high in (ends(x - y) for x, y in pairs))

    @cached_property
    def offsets(self) -> tuple[Array, Array]:
        d0, d1 = (self._subtract(rows, [self.rows[0][0]] * len(rows)) for rows in self.rows)
        return d0, d1

    @cached_property
    def differences(self) -> Array:
        if len(self.rows[0]) != len(self.rows[1]):
            return np.empty((0, len(self.features)))
        return self._subtract(self.rows[1], self.rows[0])

    def _subtract(self, rows: list[tuple[Flint, ...]], references: list[tuple[Flint, ...]]) -> Array:
        """Subtract rows in full precision and convert the differences to float64."""
        roots = np.sqrt([float(feature.copies) for feature in self.features])
        # In balls, since the rows of D0 and D1 differ by as little as 1/n, which float64 loses.
        with ctx.workprec(self.precision):
            pairs = [zip(row, reference, strict=True) for row, reference in zip(rows, references, strict=True)]
            differences: Array = np.array([[float(x - y) for x, y in pair] for pair in pairs])
        return differences * roots

    def reading(self, label: Label, weights: Sequence[Fraction]) -> Ends:
        factors = [rational(total.copies * Fraction(w)) for total, w in zip(self.features, weights, strict=True)]
        with ctx.workprec(self.precision):
            sums = [sum((w * x for w, x in zip(factors, row, strict=True)), fmpq(0)) for row in self.rows[label]]
        intervals = [ends(total) for total in sums]
        return max(low for low, _ in intervals), max(high for _, high in intervals)

    def entries(self, label: Label, nearest: bool) -> tuple[Array, Array]:
        with ctx.workprec(self.precision):
            intervals = [[ends(x * self._unit) for x in row] for row in self.raw[label]]
        low, high = (np.array([[float(interval[end]) for interval in row] for row in intervals]) for end in (0, 1))
        # float() rounds to nearest; one step outwards makes these bounds again.
        return (low, high) if nearest else (np.nextafter(low, -np.inf), np.nextafter(high, np.inf))


def precision(construction: Construction) -> int:
    """Return the bits needed for differences of order 1/n and their sums."""
    return 256 + 4 * construction.n.bit_length()


def ends(x: Flint) -> Ends:
    """Return the ends of a ball, or a rational twice.

    >>> ends(fmpq(1, 3))
    (Fraction(1, 3), Fraction(1, 3))
    """
    if isinstance(x, fmpq):
        exact = Fraction(int(x.p), int(x.q))
        return exact, exact
    if not x.is_finite():
        raise EngineRefusal("the scores of these tokens are not finite, even as balls")
    middle, radius = (_dyadic(part) for part in (x.mid(), x.rad()))
    # 2^-1000000 as a fraction would have a million binary digits: the ball is widened to include it and 0.
    if middle is None:
        middle, radius = Fraction(0), SMALLEST + (radius or SMALLEST)
    radius = SMALLEST if radius is None else radius
    return middle - radius, middle + radius


def _dyadic(x: arb) -> Fraction | None:
    """Return the number, or None if it is nonzero and smaller than SMALLEST."""
    mantissa, exponent = (int(part) for part in x.man_exp())
    if mantissa and exponent + mantissa.bit_length() < -SMALLEST_BITS:
        return None
    return Fraction(mantissa) * Fraction(2) ** exponent


def proved_outputs(construction: Construction, mechanism: Mechanism) -> ProvedOutputs:
    """Return the rows of both labels, or raise an EngineRefusal if there is no exact form."""
    kernel = kernel_of(construction, mechanism)
    with ctx.workprec(precision(construction)):
        if isinstance(construction, ExactConstruction):
            return _of_description(construction, kernel)
        return _of_blocks(construction, kernel, rational_model(construction))


def equal_rows_lemma(construction: Construction, mechanism: Mechanism) -> str | None:
    """Return the lemma by which D0 and D1 have equal rows under a scalar kernel; None if none applies."""
    if isinstance(construction, ExactConstruction):
        return kernel_rows(construction, mechanism).equal_rows_lemma
    return "proportions" if _has_same_tokens(rational_model(construction)) else None


def _has_same_tokens(model: BlockModel) -> bool:
    return model.rows[0] == model.rows[1] and bool(model.amplitudes.a[0] == model.amplitudes.a[1])


def kernel_of(construction: Construction, mechanism: Mechanism) -> ScoreMechanism:
    """Return the mechanism as a scalar kernel: itself, or one that is equal on these tokens."""
    if mechanism.spelled in TWINS and not _has_negative(construction):
        mechanism = mechanism_named(TWINS[mechanism.spelled])
    if not isinstance(mechanism, ScoreMechanism):
        raise EngineRefusal(f"{mechanism.spelled} has no scalar kernel, so no exact rows")
    return mechanism


def _has_negative(construction: Construction) -> bool:
    """Whether a query or key has a negative entry; True if there are too many tokens to examine."""
    if not construction.has_groups or construction.group_count() > LARGEST_GROUPS:
        return True
    groups = [construction.token_groups(label, torch.float64) for label in (0, 1)]
    return any(bool((side < 0).any()) for group in groups for side in (group.queries, group.keys))


def _of_description(construction: ExactConstruction, kernel: ScoreMechanism) -> ProvedOutputs:
    """Return a row for each distinct query."""
    kernel_outputs = kernel_rows(construction, kernel)
    row_counts, are_equal = kernel_outputs.rows, kernel_outputs.equal_rows_lemma is not None
    rows = [{row: kernel_outputs.outputs(row) for row in label_rows} for label_rows in row_counts]
    label_rows_lists = list(rows[0].values()), list(rows[1].values())
    features = tuple(Feature(place) for place in range(1, construction.signs + 1))
    all_plus, counts = (Fraction(1),) * len(features), (row_counts[0].total(), row_counts[1].total())
    differences = _description_differences(construction, rows)
    return ProvedOutputs(
        construction, features, all_plus, label_rows_lists, label_rows_lists, are_equal, counts, differences
    )


def _description_differences(
    construction: ExactConstruction, outputs: Sequence[Mapping[LogitRow, tuple[Flint, ...]]]
) -> tuple[RowDifference, ...]:
    """Return the squared distance for every query; nothing if the numbers of queries differ."""
    queries = [description.queries for description in construction.descriptions]
    if len(queries[0]) != len(queries[1]):
        return ()
    pairs = Counter(
        tuple(
            next(iter(rows_of(Description((query,), description.groups))))
            for query, description in zip(pair, construction.descriptions, strict=True)
        )
        for pair in zip(*queries, strict=True)
    )
    return tuple(
        RowDifference(rows, Fraction(0) if d0 == d1 else _square(outputs[0][d0], outputs[1][d1], repeat(1)))
        for (d0, d1), rows in pairs.items()
    )


def _square(d0: tuple[Flint, ...], d1: tuple[Flint, ...], copies: Iterable[int | fmpq]) -> Fraction:
    """Return the squared distance of two rows whose features occur so many times."""
    total: Flint = fmpq(0)
    for x, y, number in zip(d0, d1, copies, strict=False):
        # A power of a ball that contains 0 would not be finite.
        total = total + number * ((y - x) * (y - x))
    low, high = ends(total)
    return max((low + high) / 2, Fraction(0))


def _of_blocks(construction: Construction, kernel: ScoreMechanism, model: BlockModel) -> ProvedOutputs:
    """Return the kinds of row of a closed form.

    Blocks without the spike are exchangeable, so the best weights are equal for all of them (the nearest
    point of a symmetric hull is symmetric), and the mean over these blocks represents a row.
    """
    blocks, n = int(model.blocks), construction.n
    last = construction.signs == blocks + 3
    kinds = [
        [_block_row(kernel, model, label, row) for row in model.rows[label] if _exists(row, model)] for label in (0, 1)
    ]
    raw = tuple([row if last else row[1:4] for row in kind] for kind in kinds)
    rows = tuple([_mean_blocks(row, blocks, last) for row in kind] for kind in kinds)
    numbers = (1, 1, blocks, 1) if last else (1, blocks)
    features, first = [], 1
    for copies in numbers:
        features.append(Feature(first, copies))
        first += copies
    are_equal = _has_same_tokens(model)
    probe = (Fraction(1),) * 4 if last else (Fraction(1), Fraction(0))
    # A row differs alike in all blocks that are neither its own nor the spike's.
    multiplicities = (*((1,) if last else ()), 1, 1, model.blocks - 1, *((1,) if last else ()))
    kind_names = [row.name for row in model.rows[0] if _exists(row, model)]
    differences = tuple(
        RowDifference(_row_count(construction, model, name), _square(d0, d1, multiplicities))
        for name, d0, d1 in zip(kind_names, *raw, strict=True)
    )
    all_rows = (rows[0], rows[1]), (raw[0], raw[1])
    return ProvedOutputs(construction, tuple(features), probe, *all_rows, are_equal, (n, n), differences)


def _row_count(construction: Construction, model: BlockModel, name: str) -> int:
    """Return the number of output rows of a kind."""
    n, size = construction.n, int(model.size)
    counts = {"spike": 1, "rest": n - 1, "mate": size - 1, "other": n - size}
    return counts[name] if name in counts else sum(construction.query_counts(0))


def _exists(row: QueryRow, model: BlockModel) -> bool:
    return not (row.presence is Presence.MATES and model.size <= 1)


def _block_row(kernel: ScoreMechanism, model: BlockModel, label: Label, row: QueryRow) -> tuple[Flint, ...]:
    """Return the output of a row: spike, the spike's block, the row's own block, any other block, c."""
    amplitudes, size = model.amplitudes, model.size
    spike, mate, own_block, total = block_scores(kernel, model, row)
    shares = amplitudes.a[label] * spike, amplitudes.b * (spike + (size - 1) * mate)
    return (*(x / total for x in (*shares, amplitudes.b * size * own_block, amplitudes.b * size)), amplitudes.c)


def _mean_blocks(row: tuple[Flint, ...], blocks: int, last: bool) -> tuple[Flint, ...]:
    spike, block, own_block, other_block, c = row
    mean = (own_block + (blocks - 1) * other_block) / blocks
    return (spike, block, mean, c) if last else (block, mean)
