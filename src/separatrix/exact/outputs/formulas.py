"""What attention returns on exact tokens, for mechanisms whose formula is short enough to repeat here.

Rational formulas give rationals. Exponentials give balls, but for rows in which every weight cancels.
A row whose scores add up to 0 has no average. Feature maps return 0 there by convention; here it is no
answer, since a search would find little else.
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
from separatrix.mechanisms import MECHANISMS, Mechanism

PRECISION = 192
"""Bits of the balls; callers set it, since differences of balls are to be taken at it as well."""


MOST_LITERAL = 2000
"""Tokens written out for a mechanism that does not take counts."""


class NoAnswer(SeparatrixError):
    """A mechanism has no output on these tokens: its formula divides by zero, or leaves the numbers."""


@dataclass(frozen=True)
class Received:
    """One feature of one output row. Equal `made_of` means equal values, even where those are balls."""

    value: Flint
    made_of: object


Rows = list[list[Received]]
Score = Callable[[fmpq], fmpq]


def output_rows(mechanism: Mechanism, description: Description) -> Rows:
    """The output of every query: by its formula in exact numbers, else by the mechanism itself in float64."""
    rows = formula_rows(mechanism, description)
    return rows if rows is not None else _float_rows(mechanism, description)


def formula_rows(mechanism: Mechanism, description: Description) -> Rows | None:
    """The output of every query, or None if this mechanism is not among those repeated here."""
    if MECHANISMS.get(mechanism.name) is not type(mechanism) or mechanism.name not in FORMULAS:
        return None
    formula = FORMULAS[mechanism.name](mechanism.parameters)
    if formula is None:
        return None
    keys = [_rationals(kind.key) for kind in description.kinds]
    values = [_rationals(kind.value) for kind in description.kinds]
    counts = [fmpq(kind.count) for kind in description.kinds]
    return [formula(_rationals(query), keys, values, counts) for query in description.queries]


def _float_rows(mechanism: Mechanism, description: Description) -> Rows:
    """The mechanism itself in float64, causal if it can do nothing else, asked after all tokens."""
    q, k, v, counts = description.tensors()
    counted = counts[None] if mechanism.takes_counts else None
    if counted is None:
        if counts.sum() > MOST_LITERAL:
            raise NoAnswer(
                f"{mechanism.spelled} takes no counts, and more than {MOST_LITERAL} tokens are many"
            )
        k, v = (each.repeat_interleave(counts.long(), 0) for each in (k, v))
    found = attend(mechanism, q[None], k[None], v[None], counted, last=True)[0]
    if not bool(found.isfinite().all()):
        raise NoAnswer(f"{mechanism.spelled} returns what is no finite number")
    return [[Received(x, x) for x in row] for row in found.double().tolist()]


def _rationals(vector: Sequence[Fraction | float]) -> list[fmpq]:
    return [rational(Fraction(x)) for x in vector]


@dataclass(frozen=True)
class Rational:
    """`score(<phi(q), phi(k)>)` times the counts, divided or not."""

    score: Score = lambda logit: logit
    phi: Score = lambda x: x
    divisor: str = "sum"
    """What scores are divided by: their `sum`, the number `n` of tokens, or `none`."""

    def __call__(self, query: Any, keys: Any, values: Any, counts: Any) -> list[Received]:
        asked = [self.phi(x) for x in query]
        logits = [_dot(asked, [self.phi(x) for x in key]) for key in keys]
        scores = [count * self.score(logit) for count, logit in zip(counts, logits, strict=True)]
        return _mixed(scores, values, self._total(scores, counts))

    def _total(self, scores: list[fmpq], counts: list[fmpq]) -> fmpq:
        if self.divisor in ("none", "n"):
            return fmpq(1) if self.divisor == "none" else sum(counts, fmpq(0))
        total = sum(scores, fmpq(0))
        if total == 0:
            raise NoAnswer("the scores of a row add up to zero, so there is nothing to divide by")
        return total


def hardmax(query: Any, keys: Any, values: Any, counts: Any) -> list[Received]:
    """The mean of the tokens with the largest logit."""
    logits = [_dot(query, key) for key in keys]
    scores = [count * (logit == max(logits)) for count, logit in zip(counts, logits, strict=True)]
    return _mixed(scores, values, sum(scores, fmpq(0)))


def _mixed(scores: list[fmpq], values: Any, total: fmpq) -> list[Received]:
    """`scores @ values / total`."""
    found = [_dot(scores, column) / total for column in zip(*values, strict=True)]
    return [Received(x, x) for x in found]


@dataclass(frozen=True)
class Exponential:
    """`exp(rate <q,k>) / sum`, the rate times log n if `with_length`."""

    rate: fmpq
    with_length: bool = False

    def __call__(self, query: Any, keys: Any, values: Any, counts: Any) -> list[Received]:
        logits = [_dot(query, key) for key in keys]
        n = sum(counts, fmpq(0))
        rate = arb(self.rate) * arb(n).log() if self.with_length else arb(self.rate)
        above = [logit - max(logits) for logit in logits]
        columns = zip(*values, strict=True)
        return [self._mean(rate, n, _levels(above, counts, column)) for column in columns]

    def _mean(self, rate: arb, n: fmpq, levels: tuple[tuple[fmpq, fmpq, fmpq], ...]) -> Received:
        """The weighted mean of `carried / share`: rational where that is the same at every level."""
        _, share, carried = levels[0]
        first = carried / share
        rest = [(at, carried - first * share) for at, share, carried in levels]
        if all(factor == 0 for _, factor in rest):
            return Received(first, first)
        weight = {at: (rate * at).exp() for at, _, _ in levels}
        total = sum((share * weight[at] for at, share, _ in levels), arb(0))
        value = first + sum((factor * weight[at] for at, factor in rest if factor != 0), arb(0)) / total
        return Received(value, (n if self.with_length else None, levels))


def _levels(above: Any, counts: Any, column: Any) -> tuple[tuple[fmpq, fmpq, fmpq], ...]:
    """Logits below the largest, with their share of tokens and of what these carry, largest first."""
    found: dict[fmpq, list[fmpq]] = {}
    for at, count, value in zip(above, counts, column, strict=True):
        level = found.setdefault(at, [fmpq(0), fmpq(0)])
        level[0], level[1] = level[0] + count, level[1] + count * value
    unit = found[fmpq(0)][0]
    return tuple((at, found[at][0] / unit, found[at][1] / unit) for at in sorted(found, reverse=True))


def _dot(one: Sequence[fmpq], other: Sequence[fmpq]) -> fmpq:
    return sum((x * y for x, y in zip(one, other, strict=True)), fmpq(0))


def _positive(x: fmpq) -> fmpq:
    return x if x > 0 else fmpq(0)


def _squared(x: fmpq) -> fmpq:
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


FORMULAS: dict[str, Callable[[Any], Callable[..., list[Received]] | None]] = {
    "softmax": lambda p: Exponential(1 / rational(p.temperature)),
    "logn-softmax": lambda p: Exponential(rational(p.scale), with_length=True),
    "hardmax": lambda p: hardmax,
    "linear": lambda p: Rational(),
    "power": lambda p: _power(p.beta),
    "taylor": lambda p: Rational(score=_taylor(p.order)),
    "relu": lambda p: Rational(score=_positive, divisor="n"),
    "squared-relu": lambda p: Rational(score=_squared, divisor="n"),
    "identity-features": _features(lambda x: x),
    "relu-features": _features(_positive),
    "squared-relu-features": _features(_squared),
}
"""The formulas, by the name of the mechanism; each is made from the mechanism's parameters."""
