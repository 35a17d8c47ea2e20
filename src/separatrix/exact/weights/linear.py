"""The reader on linear attention with block-symmetric weights: attention, margin and P as exact fractions.

Scores are rational, so every comparison is decided in fractions. A row's pre-activation times its normaliser
is affine in P, the number of + among the d-3 block signs that are neither the spike's nor the row's own, so
each row fires on an interval of P. Their union is counted with exact binomials.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from separatrix.constructions import Label
from separatrix.core.errors import EngineRefusal
from separatrix.exact.engines import Outcome
from separatrix.exact.engines.outcome import Neuron, combine_neurons
from separatrix.exact.weights.scores import BlockScores, RowScores, SpikePoint

Span = tuple[int, int]
"""Integers from the first up to, and without, the second."""
LABELS: tuple[Label, Label] = (0, 1)
MAX_BLOCKS = 200_000
"""Fractions have as many binary digits as there are blocks; longer ones are of no practical use."""


class UnnormalisedRow(EngineRefusal):
    """The scores of a row add up to zero."""


@dataclass(frozen=True)
class LinearReading:
    """Exact numbers of linear attention with one weight matrix at one point."""

    own: tuple[Fraction, Fraction]
    """The attention weight of the spike in its own row, f(j3, j3), in D0 and D1."""
    largest: tuple[Fraction, Fraction]
    """The largest attention weight of the spike in any row."""
    margin: Fraction
    """a1 f1 - a0 f0 for the largest weights: v(D1) - v(D0) with all signs +."""
    least_score: Fraction
    """The least score of any query and key of D0 or D1."""
    balance: Fraction
    """The least |sum of scores| / sum of |scores| of a row: 1 if no score is negative."""
    outcome: Outcome


def read_linear(scores: BlockScores, point: SpikePoint) -> LinearReading:
    """Return the reading, or raise an UnnormalisedRow if the scores of a row add up to 0."""
    if point.d - 3 > MAX_BLOCKS:
        raise EngineRefusal(f"fractions would have {point.d - 3:,} binary digits, more than {MAX_BLOCKS:,}")
    rows = [list(scores.rows(point, label)) for label in LABELS]
    totals = [[row.total(point) for row in label_rows] for label_rows in rows]
    if any(total == 0 for label_totals in totals for total in label_totals):
        raise UnnormalisedRow("the scores of a row add up to zero, so they cannot be normalised")
    weights = [[row.spike / total for row, total in zip(*pair, strict=True)] for pair in zip(rows, totals, strict=True)]
    largest = max(weights[0]), max(weights[1])
    peaks = [a * f for a, f in zip(point.a, largest, strict=True)]
    margin = peaks[1] - peaks[0]
    every_row = [row for label_rows in rows for row in label_rows]
    neuron = count_neuron(rows, point)
    v0, v1 = (float(point.r + peak) for peak in peaks)
    outcome = combine_neurons(point.m, neuron, neuron, 0, v0, v1, float(margin))
    return LinearReading(
        (weights[0][0], weights[1][0]),
        largest,
        margin,
        min(row.least(point) for row in every_row),
        min(abs(row.total(point)) / row.absolute_total(point) for row in every_row),
        outcome,
    )


def count_neuron(rows: Sequence[Sequence[RowScores]], point: SpikePoint) -> Neuron:
    """Count the sign states in which a neuron fires on D0, on D1, and on D1 alone."""
    blocks = point.d - 3
    fired = [
        [_union(_firing_spans(rows[label], point, label, signs)) for label in LABELS]
        for signs in product((1, -1), repeat=3)
    ]
    alone = [_subtract(d1, d0) for d0, d1 in fired]
    columns = [[d0 for d0, _ in fired], [d1 for _, d1 in fired], alone]
    sums = _binomial_sums(blocks, {end for column in columns for spans in column for span in spans for end in span})
    states = 1 << (blocks + 3)
    counts = [sum(sums[stop] - sums[start] for spans in column for start, stop in spans) for column in columns]
    p0, p1, only = (Fraction(count, states) for count in counts)
    return Neuron(p0, p1, only)


def _firing_spans(rows: Iterable[RowScores], point: SpikePoint, label: Label, signs: tuple[int, ...]) -> Iterator[Span]:
    """Yield the P at which each row fires, for one sign triple (y_1, y_k3, y_d)."""
    y_1, y_k, y_d = signs
    blocks, t, b = point.d - 3, point.block_size, point.b
    level = point.c * y_d - point.tau
    for row in rows:
        side = 1 if row.total(point) > 0 else -1
        fixed = row.spike * (point.a[label] * y_1 + b * y_k + level) + (t - 1) * row.mate * (b * y_k + level)
        # The other blocks add t score (b (2P - blocks) + blocks level), which counts the own block, too.
        fixed += t * row.other * blocks * (level - b)
        slope = 2 * t * row.other * b
        for own_sign in (1, -1) if row.has_own_block else (0,):
            own = t * (row.own - row.other) * (b * own_sign + level) if row.has_own_block else Fraction(0)
            start, stop = _positive_span(side * (fixed + own), side * slope, blocks)
            # A row whose own sign is + needs a + among the blocks, one whose own sign is - needs a -.
            yield max(start, int(own_sign == 1)), min(stop, blocks + int(own_sign != -1))


def _positive_span(constant: Fraction, slope: Fraction, blocks: int) -> Span:
    """Return the P of 0 to `blocks` for which constant + slope P > 0; a tie does not count."""
    if slope == 0:
        return (0, blocks + 1) if constant > 0 else (0, 0)
    root = -constant / slope
    if slope > 0:
        return min(max(root.__floor__() + 1, 0), blocks + 1), blocks + 1
    return 0, min(max(root.__ceil__(), 0), blocks + 1)


def _union(spans: Iterable[Span]) -> list[Span]:
    """Return disjoint spans with the same integers, in increasing order."""
    union: list[Span] = []
    for start, stop in sorted(span for span in spans if span[0] < span[1]):
        if union and start <= union[-1][1]:
            union[-1] = union[-1][0], max(stop, union[-1][1])
        else:
            union.append((start, stop))
    return union


def _subtract(spans: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """Return the integers of `spans` that are in none of the others, both disjoint and increasing."""
    remaining: list[Span] = []
    for first, stop in spans:
        start = first
        for other_start, other_stop in others:
            if other_stop <= start or other_start >= stop:
                continue
            if other_start > start:
                remaining.append((start, other_start))
            start = max(start, other_stop)
        if start < stop:
            remaining.append((start, stop))
    return remaining


def _binomial_sums(trials: int, ends: Iterable[int]) -> dict[int, int]:
    """Return the sum of C(trials, k) over k < end, for each end."""
    sums, total, binomial, k = dict[int, int](), 0, 1, 0
    for end in sorted(ends):
        while k < end:
            total += binomial
            binomial = binomial * (trials - k) // (k + 1)
            k += 1
        sums[end] = total
    return sums
