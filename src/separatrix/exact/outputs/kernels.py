"""Attention rows as sums of exact scores: the share of tokens at each logit, and a scalar kernel."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

from flint import ctx, fmpq

from separatrix.constructions import BlockModel, Construction, Description, ExactConstruction, Label, QueryRow
from separatrix.core.errors import EngineRefusal
from separatrix.core.numbers.logforms import Flint, LogForm, rational
from separatrix.mechanisms import Mechanism, ScoreMechanism

PRECISIONS = (128, 512, 2048, 8192, 32768)
"""Precisions of balls in bits, tried in turn until a comparison is decided."""


@dataclass(frozen=True)
class LogitLevel:
    """The tokens of one logit, relative to the number of tokens with the largest logit."""

    logit: fmpq
    share: fmpq
    value_sums: tuple[fmpq, ...]
    """The sum of their values, in the same unit."""


LogitRow = tuple[LogitLevel, ...]
"""The levels of one query, largest logit first. They determine its attention weights."""


def rows_of(description: Description) -> Counter[LogitRow]:
    """Count the distinct rows, in a deterministic order."""
    keys = [to_rationals(kind.key) for kind in description.groups]
    values = [[kind.count * x for x in to_rationals(kind.value)] for kind in description.groups]
    rows = Counter[LogitRow]()
    for query in description.queries:
        query_vector = to_rationals(query)
        # Tokens of one logit have one weight, whatever the kernel, so sums per logit determine the output.
        counts: dict[fmpq, Any] = defaultdict(fmpq)
        value_sums: dict[fmpq, Any] = defaultdict(lambda: [fmpq(0)] * len(values[0]))
        for kind, key, value in zip(description.groups, keys, values, strict=True):
            logit = sum((q * k for q, k in zip(query_vector, key, strict=True) if q != 0 and k != 0), fmpq(0))
            counts[logit] += kind.count
            value_sums[logit] = [x + y for x, y in zip(value_sums[logit], value, strict=True)]
        order = sorted(counts, reverse=True)
        first = counts[order[0]]
        row = tuple(LogitLevel(at, counts[at] / first, tuple(x / first for x in value_sums[at])) for at in order)
        rows[row] += 1
    return rows


def to_rationals(vector: Sequence[Fraction | float]) -> list[fmpq]:
    """Convert a vector to flint rationals; floats are converted exactly."""
    return [rational(Fraction(x)) for x in vector]


def _normal_form(rows: Mapping[LogitRow, int], divided: bool = False) -> Counter[LogitRow]:
    """Count rows with their logits divided by the largest, or by themselves in rows of a single logit."""
    forms = Counter[LogitRow]()
    for row, count in rows.items():
        top = row[0].logit
        unit = top if top > 0 and (divided or len(row) == 1) else fmpq(1)
        forms[tuple(replace(level, logit=level.logit / unit) for level in row)] += count
    return forms


class KernelRows:
    """The rows of both labels of a construction under one scalar kernel."""

    def __init__(self, construction: ExactConstruction, mechanism: ScoreMechanism) -> None:
        self.mechanism, self.tau = mechanism, rational(construction.tau)
        base = construction.logit_base
        self.unit = LogForm.constant(fmpq(1)) if base is None else LogForm.log(rational(base))
        self.rows = tuple(rows_of(description) for description in construction.descriptions)
        self._scores = cache(self._ratios)

    def fires(self, label: Label, signs: Sequence[int]) -> bool | None:
        """Return whether a neuron with these signs fires on a row; None if no precision decides it."""
        rows_fire = [self._fires(row, signs) for row in self.rows[label]]
        return True if True in rows_fire else None if None in rows_fire else False

    def margin(self) -> tuple[Flint, Flint, Flint]:
        """Return the largest pre-activations of D0 and D1 with all signs +, and their difference."""
        for precision in PRECISIONS:
            with ctx.workprec(precision):
                v0, v1 = (max((self._peak(row) for row in rows), key=float) for rows in self.rows)
                # Equal rows have equal outputs, which a difference of balls would not show.
                margin: Flint = v1 - v0 if self.equal_rows_lemma is None else fmpq(0)
                if isinstance(margin, fmpq) or margin.rel_accuracy_bits() >= 60:
                    break
        return v0, v1, margin

    @cached_property
    def equal_rows_lemma(self) -> str | None:
        """The lemma by which both labels have equal rows, equally often; None if none applies.

        docs/certificates.md states and proves the lemmas.
        """
        d0, d1 = self.rows
        if _normal_form(d0) == _normal_form(d1):
            return "proportions"
        if self.mechanism.homogeneous and _normal_form(d0, divided=True) == _normal_form(d1, divided=True):
            return "homogeneity"
        pairs = zip(d0.items(), d1.items(), strict=False)
        cancel = all(count0 == count1 and self._cancels(row0, row1) for (row0, count0), (row1, count1) in pairs)
        return "cancellation" if cancel and len(d0) == len(d1) else None

    def _cancels(self, d0: LogitRow, d1: LogitRow) -> bool:
        """Return whether logits and shares are equal, and scores times differences of values add up to exactly 0."""
        if [(level.logit, level.share) for level in d0] != [(level.logit, level.share) for level in d1]:
            return False
        pairs = ((x.value_sums, y.value_sums) for x, y in zip(d0, d1, strict=True))
        differences = [[y - x for x, y in zip(*pair, strict=True)] for pair in pairs]
        return all(self._vanishes(d0, factors) for factors in zip(*differences, strict=True))

    def _vanishes(self, row: LogitRow, factors: Sequence[fmpq]) -> bool:
        """Return whether the sum of factor * score is known to be exactly 0."""
        degree = self.mechanism.polynomial_degree
        if degree is None:
            return _sign(_sum(factors, self._scores(row, PRECISIONS[0]))) == 0
        # A polynomial cancels in any unit of logits if its powers do; as many as there are logits decide (Vandermonde).
        powers = range(min(degree + 1, len(row)))
        return all(sum(x * level.logit**i for x, level in zip(factors, row, strict=True)) == 0 for i in powers)

    def outputs(self, row: LogitRow) -> tuple[Flint, ...]:
        """Return the attention output of a row, feature by feature."""
        return tuple(
            self._mean(row, lambda level, place=place: level.value_sums[place])  # type: ignore[misc]
            for place in range(len(row[0].value_sums))
        )

    def _fires(self, row: LogitRow, signs: Sequence[int]) -> bool | None:
        """Return whether the sum of `score (value sums - tau share)` has the sign of the sum of all scores.

        A factor of zero removes its ball, so that rational cases are decided exactly.
        """
        factors = [
            sum((y * x for y, x in zip(signs, level.value_sums, strict=True)), -self.tau * level.share) for level in row
        ]
        for precision in PRECISIONS:
            with ctx.workprec(precision):
                excess = _sign(_sum(factors, self._scores(row, precision)))
            if excess is None and self._vanishes(row, factors):
                return False
            if excess is not None:
                # Multiplying by a negative normaliser turns `>` around. Strict: a tie does not fire.
                return excess * self._side(row) > 0
        return None

    def _side(self, row: LogitRow) -> int:
        """Return the sign of the normaliser, the sum of all scores."""
        for precision in PRECISIONS:
            with ctx.workprec(precision):
                side = _sign(_sum([level.share for level in row], self._scores(row, precision)))
            if side:
                return side
        reason = "cannot handle these tokens: the scores of a row add up to zero"
        raise EngineRefusal(f"{self.mechanism.spelled} {reason}")

    def _peak(self, row: LogitRow) -> Flint:
        return self._mean(row, lambda level: sum(level.value_sums, fmpq(0)))

    def _mean(self, row: LogitRow, value_of: Callable[[LogitLevel], fmpq]) -> Flint:
        """Return the attention-weighted mean of a value; rational if it is the same at every level."""
        self._side(row)
        scores = self._scores(row, int(ctx.prec))
        # Relative to the first level: if all levels agree the remainder is exactly 0, and no ball is needed.
        first = value_of(row[0])
        remainder = _sum([value_of(level) - first * level.share for level in row], scores)
        return first if _sign(remainder) == 0 else first + remainder / _sum([level.share for level in row], scores)

    def _ratios(self, row: LogitRow, precision: int) -> tuple[Flint, ...]:
        """Return the score of every level relative to that of the largest logit."""
        # Relative to the largest logit, so that exponentials do not overflow.
        top = row[0].logit
        with ctx.workprec(precision):
            ratios = [self.mechanism.ratio(top * self.unit, (at.logit - top) * self.unit) for at in row]
        if not all(isinstance(ratio, fmpq) or ratio.is_finite() for ratio in ratios):
            raise EngineRefusal(f"{self.mechanism.spelled} cannot handle these tokens: its scores are not finite")
        return tuple(ratios)


def _sum(factors: Sequence[fmpq], scores: Sequence[Flint]) -> Flint:
    """Return the sum of factor * score, omitting scores with factor 0."""
    total: Flint = fmpq(0)
    for factor, score in zip(factors, scores, strict=True):
        if factor != 0:
            total = total + factor * score
    return total


def _sign(x: Flint) -> int | None:
    """Return -1, 0 or 1; None for a ball that contains 0."""
    if isinstance(x, fmpq):
        return (x > 0) - (x < 0)
    return 1 if x > 0 else -1 if x < 0 else None


def same_rows(construction: ExactConstruction, mechanism: Mechanism) -> bool:
    """Return whether both labels provably have equal rows, so that no reader tells them apart."""
    return kernel_rows(construction, mechanism).equal_rows_lemma is not None


def kernel_rows(construction: ExactConstruction, mechanism: Mechanism) -> KernelRows:
    """Return the rows of both labels as sums of exact scores, or raise an EngineRefusal."""
    if not isinstance(mechanism, ScoreMechanism):
        raise EngineRefusal(f"{mechanism.spelled} has no scalar kernel, so nothing to certify", ("closed",))
    if not construction.rational:
        raise EngineRefusal(f"the tokens of {construction.name} are not rational", ("closed",))
    return KernelRows(construction, mechanism)


def with_kernel(mechanism: Mechanism) -> ScoreMechanism:
    """Return the mechanism if its score is a scalar function of the logit, or raise an EngineRefusal."""
    if not isinstance(mechanism, ScoreMechanism):
        raise EngineRefusal(f"{mechanism.spelled} has no scalar kernel, so no closed form", ("grouped",))
    return mechanism


def rational_model(construction: Construction, n: int | None = None) -> BlockModel:
    """Return the closed form in rationals and logarithms, at the construction's n or another one."""
    model = None
    if not isinstance(construction, ExactConstruction):
        parameters = construction.parameters.complete_values()
        values = {name: x if isinstance(x, str) else rational(x) for name, x in parameters.items()}
        if n is not None:
            values["n"] = rational(n)
        model = construction.block_model(values, LogForm.log)
    if model is None:
        raise no_closed_form(construction.name)
    return model


def no_closed_form(construction: str) -> EngineRefusal:
    """Return the refusal for a construction without a closed form."""
    return EngineRefusal(f"these parameters of {construction} have no closed form", ("grouped",))


def spike_weights(mechanism: ScoreMechanism, model: BlockModel, label: Label) -> dict[str, Flint]:
    """Return the attention weight of the spike for every kind of row."""
    scores = {row.name: block_scores(mechanism, model, row) for row in model.rows[label]}
    return {name: spike / total for name, (spike, _, _, total) in scores.items()}


def block_scores(mechanism: ScoreMechanism, model: BlockModel, row: QueryRow) -> tuple[Flint, ...]:
    """Return the scores of spike, mate and own block relative to an ordinary token, and the total."""
    spike, mate, own_block = (mechanism.ratio(row.base, step) for step in (row.spike, row.mate, row.own))
    return (spike, mate, own_block, spike + (model.size - 1) * mate + (own_block + (model.blocks - 1)) * model.size)


def probe_margin(mechanism: ScoreMechanism, model: BlockModel) -> tuple[Flint, Flint, Flint]:
    """Return v0, v1 and v1 - v0, raising the precision until the difference is accurate."""
    for precision in PRECISIONS:
        with ctx.workprec(precision):
            weights = (spike_weights(mechanism, model, label) for label in (0, 1))
            peaks = [
                a * max(label_weights.values(), key=float)
                for a, label_weights in zip(model.probe.a, weights, strict=True)
            ]
            v0, v1 = (model.probe.offset + peak for peak in peaks)
            margin = peaks[1] - peaks[0]
            if isinstance(margin, fmpq) or margin.rel_accuracy_bits() >= 60:
                break
    return v0, v1, margin
