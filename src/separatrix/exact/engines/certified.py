"""The closed form with rationals and balls: exact fractions, every comparison decided or reported.

A row's least firing P is a floor of a number that is rational (linear and power kernels; softmax at
perfect powers) or lies in a ball whose radius shrinks as the precision is raised. If a ball still
contains a whole number at the highest precision, the comparison is undecided: both answers are then
carried through, and the probabilities come out as a pair of bounds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from flint import ctx, fmpq, fmpz

from separatrix.constructions import BlockModel, Construction, ExactConstruction, Label, Presence, QueryRow
from separatrix.core.numbers.logforms import Flint, LogForm
from separatrix.exact.engines import enumerated
from separatrix.exact.engines.outcome import EngineRefusal, Neuron, Outcome, combine_neurons
from separatrix.exact.outputs.kernels import PRECISIONS, probe_margin, rational_model, spike_weights, with_kernel
from separatrix.mechanisms import Mechanism, ScoreMechanism

Triple = tuple[int, int, int]
TRIPLES: tuple[Triple, ...] = tuple(product((1, -1), (1, -1), (1, -1)))
"""(y_1, y_k3, y_d)."""
MOST_BLOCKS = 200_000
"""Fractions have as many binary digits as there are blocks; longer ones are of no practical use."""


@dataclass(frozen=True)
class Threshold:
    """The least P that fires for one label, sign triple and row; two candidates if undecided."""

    label: Label
    triple: Triple
    row: str
    sigma: int
    """The sign of the row's own block, or 0 if it does not matter."""
    least: int
    highest: int

    @property
    def is_decided(self) -> bool:
        """Whether there is a single candidate."""
        return self.least == self.highest


@dataclass(frozen=True)
class Count:
    """The certified result for one point."""

    model: BlockModel
    weights: tuple[dict[str, Flint], dict[str, Flint]]
    """The attention weight f(row, spike) for every kind of row of D0 and D1, for certificates."""
    thresholds: tuple[Threshold, ...]
    v0: Flint
    v1: Flint
    margin: Flint
    low: Neuron
    high: Neuron
    """Equal to `low` if every comparison was decided; otherwise each number is bounded separately."""

    @property
    def is_decided(self) -> bool:
        """Whether the probabilities are exact: undecided comparisons, if any, do not change them."""
        return self.low == self.high


def count(construction: Construction, mechanism: Mechanism) -> Count:
    """Compute the exact fractions for one point."""
    mechanism = with_kernel(mechanism)
    model = rational_model(construction)
    blocks = int(model.blocks)
    if blocks > MOST_BLOCKS:
        reason = f"certified fractions would have {blocks:,} binary digits, more than {MOST_BLOCKS:,}"
        raise EngineRefusal(reason, ("closed",))
    thresholds = tuple(
        _threshold(mechanism, model, label, triple, row, sigma)
        for label in (0, 1)
        for triple in TRIPLES
        for row in model.rows[label]
        if not (row.presence is Presence.MATES and model.size <= 1)
        for sigma in ((1, -1) if row.presence is Presence.OTHER else (0,))
    )
    # For certificates only, which round them outwards to 30 digits: the first precision is enough.
    with ctx.workprec(PRECISIONS[0]):
        weights = (spike_weights(mechanism, model, 0), spike_weights(mechanism, model, 1))
    tails = TailCounts(blocks)
    low, high = (_neuron(thresholds, blocks, tails, (generous, generous)) for generous in (False, True))
    if low != high:  # `only` is largest when D1 is generous and D0 is not
        low = replace(low, only=_neuron(thresholds, blocks, tails, (True, False)).only)
        high = replace(high, only=_neuron(thresholds, blocks, tails, (False, True)).only)
    return Count(model, weights, thresholds, *probe_margin(mechanism, model), low, high)


def solve(construction: Construction, mechanism: Mechanism, _: object = None) -> Outcome:
    """Return the outcome at one point; sampling options, the last argument of every engine, do not apply."""
    if isinstance(construction, ExactConstruction):
        return enumerated.in_balls(construction, mechanism)
    return outcome(construction, count(construction, mechanism))


def outcome(construction: Construction, count: Count) -> Outcome:
    """Combine the probabilities of one neuron to those of the network."""
    undecided_count = sum(not threshold.is_decided for threshold in count.thresholds)
    readings = count.v0, count.v1, count.margin
    return combine_neurons(construction.m, count.low, count.high, undecided_count, *readings)


def _threshold(
    mechanism: ScoreMechanism, model: BlockModel, label: Label, triple: Triple, row: QueryRow, sigma: int
) -> Threshold:
    """Find the least firing P, raising the precision until it is decided."""
    blocks = int(model.blocks)
    for precision in PRECISIONS:
        with ctx.workprec(precision):
            limit = _firing_limit(mechanism, model, label, triple, row, sigma)
            # D = 2P - blocks > limit. The comparison is strict, since a tie does not fire: hence floor + 1.
            low, high = clipped_floors((limit + model.blocks) / 2, blocks)
        if low == high:
            break
    return Threshold(label, triple, row.name, sigma, low + 1, high + 1)


def _firing_limit(
    mechanism: ScoreMechanism, model: BlockModel, label: Label, triple: Triple, row: QueryRow, sigma: int
) -> Flint:
    """Return the limit such that the row fires exactly if D = 2P - blocks exceeds it.

    The formula of `thresholds`, with the coefficient of every distinct attention ratio summed exactly:
    a coefficient of zero removes its ball, so that rational cases are decided exactly.
    """
    y_1, y_k, y_d = triple
    height = (model.amplitudes.tau - model.amplitudes.c * y_d) / model.amplitudes.b
    slope = model.amplitudes.a[label] / model.amplitudes.b
    coefficients: dict[LogForm, fmpq] = defaultdict(fmpq)
    coefficients[row.spike] += (height - y_k - slope * y_1) / model.size
    coefficients[row.mate] += (height - y_k) * (model.size - 1) / model.size
    coefficients[row.own] += height - sigma
    limit: Flint = height * (model.blocks + 1) - y_k - slope * y_1 / model.size
    for step, coefficient in coefficients.items():
        if coefficient != 0 and not step.is_zero():
            limit = limit + coefficient * (mechanism.ratio(row.base, step) - 1)
    return limit


def clipped_floors(x: Flint, most: int) -> tuple[int, int]:
    """Return the floor of x, or of both ends of a ball, clipped to -1..most.

    A row with floor -1 fires at every P, one with floor `most` at none.
    """
    if isinstance(x, fmpq):
        floor = min(max(int(x.floor()), -1), most)
        return floor, floor
    # Compared before converting: far ends, or infinite ones, have no integer of reasonable size.
    low, high = x.lower(), x.upper()
    return (
        most if low >= most else int(low.floor().fmpz()) if low >= -1 else -1,
        -1 if high < -1 else int(high.floor().fmpz()) if high < most else most,
    )


def _neuron(thresholds: tuple[Threshold, ...], blocks: int, tails: TailCounts, generous: tuple[bool, bool]) -> Neuron:
    """Count the sign states that fire; a generous label uses the lower candidates of undecided thresholds."""
    least0, least1 = (
        [least_firing(thresholds, blocks, label, triple, generous[label]) for triple in TRIPLES] for label in (0, 1)
    )
    return count_states(least0, least1, tails)


def least_firing(thresholds: tuple[Threshold, ...], blocks: int, label: int, triple: Triple, generous: bool) -> int:
    """Return the least P at which a row fires. A row of sign + needs P > 0, one of sign - P < blocks."""
    least = blocks + 1  # no row fires
    for threshold in thresholds:
        if threshold.label == label and threshold.triple == triple:
            candidate = threshold.least if generous else threshold.highest
            if threshold.sigma == 1:
                candidate = max(candidate, 1)
            if threshold.sigma == -1 and candidate >= blocks:
                continue
            least = min(least, candidate)
    return least


def count_states(least0: Sequence[int], least1: Sequence[int], tails: TailCounts) -> Neuron:
    """Return the probabilities of one neuron that fires on a label from a least P on, in the order of TRIPLES.

    A least P of 0 always fires, and one beyond the number of block signs never does.

    >>> count_states([2] * 8, [1] * 8, TailCounts(1))
    Neuron(p0=Fraction(0, 1), p1=Fraction(1, 2), only=Fraction(1, 2))
    """
    p0 = p1 = only = 0
    for k0, k1 in zip(least0, least1, strict=True):
        tail0, tail1 = tails(k0), tails(k1)
        p0, p1 = p0 + tail0, p1 + tail1
        # Both labels fire from some P on, so D1 fires alone on the counts from k1 to k0.
        only += max(tail1 - tail0, 0)
    states = 1 << (tails.trials + 3)  # the block signs that P counts, and the triple
    return Neuron(Fraction(p0, states), Fraction(p1, states), Fraction(only, states))


class TailCounts:
    """Numbers of sign vectors of length N with at least k plus signs: sums of C(N, i) over i >= k, cached by k.

    >>> [TailCounts(3)(k) for k in (0, 1, 2, 3, 4)]
    [8, 7, 4, 1, 0]
    """

    def __init__(self, trials: int) -> None:
        self.trials = trials
        self._known: dict[int, int] = {}

    def __call__(self, k: int) -> int:
        if k <= 0:
            return 1 << self.trials
        if k > self.trials:
            return 0
        if k not in self._known:
            # The shorter of the two tails is summed; by symmetry, P(X >= k) = 1 - P(X >= trials + 1 - k).
            if 2 * k >= self.trials + 1:
                self._known[k] = self._sum(k)
            else:
                self._known[k] = (1 << self.trials) - self(self.trials + 1 - k)
        return self._known[k]

    def _sum(self, k: int) -> int:
        """C(N,k) (1 + r_k (1 + r_{k+1} (...))) with r_i = (N-i)/(i+1), by binary splitting."""
        _, bottom, total = _split(k, self.trials, self.trials)
        # The sum is an integer, so the division is exact.
        return int(fmpz.bin_uiui(self.trials, k) * (bottom + total) // bottom)


def _split(low: int, high: int, trials: int) -> tuple[fmpz, fmpz, fmpz]:
    """Products of numerators and of denominators of r_i, low <= i < high, and the sum of partial products."""
    if high - low == 0:
        return fmpz(1), fmpz(1), fmpz(0)
    if high - low == 1:
        return fmpz(trials - low), fmpz(low + 1), fmpz(trials - low)
    middle = (low + high) // 2
    top1, bottom1, sum1 = _split(low, middle, trials)
    top2, bottom2, sum2 = _split(middle, high, trials)
    return top1 * top2, bottom1 * bottom2, sum1 * bottom2 + top1 * sum2
