"""Attention outputs on exact tokens, for mechanisms whose formula is short enough to repeat here.

Rational formulas give rationals. Exponentials give balls, except for rows in which every weight cancels.
A row whose scores add up to 0 has no average. Feature maps return 0 there by convention; here it raises
NoAnswer, since a search would find little else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb, fmpq

from separatrix.constructions import Description
from separatrix.core.numbers.logforms import Flint, rational
from separatrix.core.parameters import SeparatrixError
from separatrix.exact.outputs.attention import attend
from separatrix.exact.outputs.kernels import to_rationals
from separatrix.mechanisms import MECHANISMS, Mechanism

PRECISION = 192
"""Precision of balls in bits. Callers set it, since they take differences at the same precision."""


MOST_LITERAL = 2000
"""The maximum number of tokens for a mechanism that does not accept counts."""


class NoAnswer(SeparatrixError):
    """A mechanism has no output on these tokens: its formula divides by zero or overflows."""


@dataclass(frozen=True)
class ExactOutput:
    """One feature of one output row. Equal `made_of` implies equal values, even for balls."""

    value: Flint
    made_of: object


Rows = list[list[ExactOutput]]
Score = Callable[[fmpq], fmpq]


def output_rows(mechanism: Mechanism, description: Description) -> Rows:
    """Return the output of every query: by the exact formula, or by the mechanism itself in float64."""
    rows = formula_rows(mechanism, description)
    return rows if rows is not None else _float_rows(mechanism, description)


def formula_rows(mechanism: Mechanism, description: Description) -> Rows | None:
    """Return the output of every query, or None if the mechanism has no formula here."""
    if MECHANISMS.get(mechanism.name) is not type(mechanism) or mechanism.name not in FORMULAS:
        return None
    formula = FORMULAS[mechanism.name](mechanism.parameters)
    if formula is None:
        return None
    keys = [to_rationals(kind.key) for kind in description.groups]
    values = [to_rationals(kind.value) for kind in description.groups]
    counts = [fmpq(kind.count) for kind in description.groups]
    return [formula(to_rationals(query), keys, values, counts) for query in description.queries]


def _float_rows(mechanism: Mechanism, description: Description) -> Rows:
    """Return the outputs of the mechanism in float64, with queries after all tokens."""
    q, k, v, counts = description.tensors()
    head_counts = counts[None] if mechanism.takes_counts else None
    if head_counts is None:
        if counts.sum() > MOST_LITERAL:
            raise NoAnswer(f"{mechanism.spelled} does not accept counts, and there are more than {MOST_LITERAL} tokens")
        k, v = (tokens.repeat_interleave(counts.long(), 0) for tokens in (k, v))
    outputs = attend(mechanism, q[None], k[None], v[None], head_counts, last=True)[0]
    if not bool(outputs.isfinite().all()):
        raise NoAnswer(f"{mechanism.spelled} returns values that are not finite")
    return [[ExactOutput(x, x) for x in row] for row in outputs.double().tolist()]


@dataclass(frozen=True)
class Rational:
    """Attention with the weights `count * score(<phi(q), phi(k)>)`, normalised or not."""

    score: Score = lambda logit: logit
    phi: Score = lambda x: x
    divisor: str = "sum"
    """The divisor of the scores: their `sum`, the number `n` of tokens, or `none`."""

    def __call__(self, query: Any, keys: Any, values: Any, counts: Any) -> list[ExactOutput]:
        features = [self.phi(x) for x in query]
        logits = [_dot(features, [self.phi(x) for x in key]) for key in keys]
        scores = [count * self.score(logit) for count, logit in zip(counts, logits, strict=True)]
        return _mix(scores, values, self._total(scores, counts))

    def _total(self, scores: list[fmpq], counts: list[fmpq]) -> fmpq:
        if self.divisor in ("none", "n"):
            return fmpq(1) if self.divisor == "none" else sum(counts, fmpq(0))
        total = sum(scores, fmpq(0))
        if total == 0:
            raise NoAnswer("the scores of a row add up to zero, so they cannot be normalised")
        return total


def hardmax(query: Any, keys: Any, values: Any, counts: Any) -> list[ExactOutput]:
    """Return the mean of the tokens with the largest logit."""
    logits = [_dot(query, key) for key in keys]
    scores = [count * (logit == max(logits)) for count, logit in zip(counts, logits, strict=True)]
    return _mix(scores, values, sum(scores, fmpq(0)))


def _mix(scores: list[fmpq], values: Any, total: fmpq) -> list[ExactOutput]:
    """`scores @ values / total`."""
    means = [_dot(scores, column) / total for column in zip(*values, strict=True)]
    return [ExactOutput(x, x) for x in means]


@dataclass(frozen=True)
class Exponential:
    """Attention with the weights `exp(rate <q,k>) / sum`; rate is multiplied by log n if `with_length`."""

    rate: fmpq
    with_length: bool = False

    def __call__(self, query: Any, keys: Any, values: Any, counts: Any) -> list[ExactOutput]:
        logits = [_dot(query, key) for key in keys]
        n = sum(counts, fmpq(0))
        rate = arb(self.rate) * arb(n).log() if self.with_length else arb(self.rate)
        above = [logit - max(logits) for logit in logits]
        columns = zip(*values, strict=True)
        return [self._mean(rate, n, _levels(above, counts, column)) for column in columns]

    def _mean(self, rate: arb, n: fmpq, levels: tuple[tuple[fmpq, fmpq, fmpq], ...]) -> ExactOutput:
        """Return the weighted mean; rational if the mean of every level is the same."""
        _, share, value_sum = levels[0]
        first = value_sum / share
        remainders = [(at, value_sum - first * share) for at, share, value_sum in levels]
        if all(factor == 0 for _, factor in remainders):
            return ExactOutput(first, first)
        weight = {at: (rate * at).exp() for at, _, _ in levels}
        total = sum((share * weight[at] for at, share, _ in levels), arb(0))
        value = first + sum((factor * weight[at] for at, factor in remainders if factor != 0), arb(0)) / total
        return ExactOutput(value, (n if self.with_length else None, levels))


def _levels(above: Any, counts: Any, column: Any) -> tuple[tuple[fmpq, fmpq, fmpq], ...]:
    """Return (logit relative to the largest, share of tokens, share of values), largest logit first."""
    levels: dict[fmpq, list[fmpq]] = {}
    for at, count, value in zip(above, counts, column, strict=True):
        level = levels.setdefault(at, [fmpq(0), fmpq(0)])
        level[0], level[1] = level[0] + count, level[1] + count * value
    unit = levels[fmpq(0)][0]
    return tuple((at, levels[at][0] / unit, levels[at][1] / unit) for at in sorted(levels, reverse=True))


def _dot(first: Sequence[fmpq], second: Sequence[fmpq]) -> fmpq:
    return sum((x * y for x, y in zip(first, second, strict=True)), fmpq(0))


def _positive(x: fmpq) -> fmpq:
    return x if x > 0 else fmpq(0)


def _positive_square(x: fmpq) -> fmpq:
    return _positive(x) ** 2


def _taylor(order: int) -> Score:
    def score(logit: fmpq) -> fmpq:
        total = fmpq(1)
        for i in range(order, 0, -1):
            total = 1 + total * logit / i
        return total

    return score


def _power(beta: Fraction) -> Rational | None:
    return Rational(score=lambda logit: logit ** int(beta)) if beta.denominator == 1 else None


def _features(phi: Score) -> Callable[[Any], Rational]:
    return lambda p: Rational(phi=phi, divisor="sum" if p.normalised else "none")


FORMULAS: dict[str, Callable[[Any], Callable[..., list[ExactOutput]] | None]] = {
    "softmax": lambda p: Exponential(1 / rational(p.temperature)),
    "logn-softmax": lambda p: Exponential(rational(p.scale), with_length=True),
    "hardmax": lambda p: hardmax,
    "linear": lambda p: Rational(),
    "power": lambda p: _power(p.beta),
    "taylor": lambda p: Rational(score=_taylor(p.order)),
    "relu": lambda p: Rational(score=_positive, divisor="n"),
    "squared-relu": lambda p: Rational(score=_positive_square, divisor="n"),
    "identity-features": _features(lambda x: x),
    "relu-features": _features(_positive),
    "squared-relu-features": _features(_positive_square),
}
"""The formulas by mechanism name; each is built from the mechanism's parameters."""
