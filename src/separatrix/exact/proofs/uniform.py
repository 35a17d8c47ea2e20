"""Uniform theorems: one bound of P for every n >= N0, every d >= d0 and boxes of amplitudes.

The bounds U1 (softmax) and U2 (linear attention) of docs/proofs.md, in balls; d may grow with n in any way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

from flint import arb, ctx

from separatrix.constructions.spike import Spike
from separatrix.core.documents import Hidden, shown, shown_as
from separatrix.core.errors import EngineRefusal, UsageError
from separatrix.core.numbers import format_exact, parse_exact, parse_integer
from separatrix.core.numbers.logforms import rational
from separatrix.core.numbers.spelling import for_people
from separatrix.core.parameters import read_words
from separatrix.core.result import Result, Row
from separatrix.exact.proofs.proof import round_outwards
from separatrix.exact.verdicts.verdict import DELTA, parse_delta
from separatrix.exact.verdicts.words import Word
from separatrix.mechanisms import Linear, Mechanism, Softmax
from separatrix.mechanisms.load import mechanism_from

NAMES = ("d", "a0", "a1", "b", "c")
GAP = Fraction(1, 10)
"""tau - c."""
PRECISION = 128
INSTEAD = "known instead: separatrix prove without --for decides every n at fixed d and amplitudes"


@dataclass(frozen=True)
class Box:
    """A range of one parameter; None for an open end."""

    name: str
    low: Fraction | None
    high: Fraction | None

    @property
    def spelled(self) -> str:
        """The range as an inequality."""
        low, high = (None if end is None else format_exact(end) for end in (self.low, self.high))
        if low == high:
            return f"{self.name} = {low}"
        if high is None:
            return f"{self.name} >= {low}"
        return f"{self.name} <= {high}" if low is None else f"{low} <= {self.name} <= {high}"

    def least(self) -> Fraction:
        """Return the lower end; amplitudes are positive, so an open one is 0."""
        return self.low or Fraction(0)

    def most(self, reason: str) -> Fraction:
        """Return the upper end, or raise an EngineRefusal with the reason for which it has to be finite."""
        if self.high is None:
            raise _open(f"it needs an upper bound of {self.name}, since {reason}")
        return self.high


@dataclass(frozen=True, repr=False)
class UniformProof(Result):
    """A bound of P(tells apart) that holds at every n >= `from` and everywhere in the boxes."""

    kind: ClassVar[str] = "uniform_proof"
    mechanism: Mechanism
    boxes: Hidden[Mapping[str, Box]]
    start: Hidden[int]
    m: int
    delta: Fraction
    at_least: float | None
    """A lower bound of P, rounded down; null for linear attention."""
    at_most: float | None
    """An upper bound of P, rounded up; null for softmax."""
    verdict: Word | None
    """`distinguishes` or `blind` if the bound implies it; otherwise null."""
    hypotheses: Sequence[str]
    """The conditions of the theorem, with their values."""

    @shown
    def construction(self) -> str:
        """The name of the construction."""
        return Spike.name

    @shown_as("from")
    def start_key(self) -> int:
        """The n from which on the bound holds."""
        return self.start

    @shown
    def parameters(self) -> Mapping[str, str]:
        """The range of each parameter; an open end is empty."""
        ends = {name: (box.low, box.high) for name, box in self.boxes.items()}
        return {name: ":".join("" if end is None else format_exact(end) for end in pair) for name, pair in ends.items()}

    @shown
    def evidence(self) -> str:
        """How the bound is known."""
        return "proved by Hoeffding's bound and monotone weights (docs/proofs.md), computed in balls"

    @property
    def statement(self) -> str:
        """The theorem in one sentence."""
        phrase = {"distinguishes": " distinguishes D0 from D1", "blind": " is blind"}.get(self.verdict or "", ",")
        place = f"for every n >= {self.start} and {', '.join(box.spelled for box in self.boxes.values())} (m={self.m})"
        return f"{self.mechanism.spelled}{phrase} {place}: {self._bound}"

    @property
    def _bound(self) -> str:
        if self.at_least is not None:
            return f"P >= {round_outwards(self.at_least, ROUND_FLOOR)}"
        assert self.at_most is not None
        return f"P <= {round_outwards(self.at_most, ROUND_CEILING)}"

    @property
    def summary(self) -> str:
        """The mechanism and its bound."""
        return f"{self.mechanism.spelled} for every n >= {self.start} in these ranges: {self._bound}"

    def rows(self) -> list[Row]:
        """Return one row with the ranges and the bound."""
        bounds = {"at_least": self.at_least, "at_most": self.at_most, "verdict": self.verdict}
        return [{"mechanism": self.mechanism.spelled, "from": self.start, **self.parameters, "m": self.m, **bounds}]


def prove_uniformly(
    mechanism: Any,
    ranges: str,
    parameters: Mapping[str, object] | None = None,
    *,
    start: object = None,
    delta: object = DELTA,
) -> UniformProof:
    """Prove a bound of P for every n >= `start` and for ranges of d, a0, a1, b and c, on `spike` with form=ones.

    - `ranges`: words such as `"d=102: a1=1.2: a0=:0.01 b=0.1:0.2"`; an open end is left empty.
    - `parameters`: m, and values of the parameters that have no range (default: the reference point).

    >>> proof = prove_uniformly("softmax", "d=102: a1=1.2: a0=:0.01")
    >>> proof.verdict, round(proof.at_least, 6)
    ('distinguishes', 0.999709)
    """
    words = {**Spike.example, **(parameters or {})}
    given = read_words(ranges.split(), NAMES)
    for name in given:
        if name not in NAMES:
            raise UsageError(f"{name} cannot have a range here; ranges are for {', '.join(NAMES)}")
    if "tau" in words or words.get("form", "ones") != "ones":
        raise UsageError("the uniform theorems are for tau = c + 0.1 and form=ones; leave out tau and form")
    unknown = next((name for name in words if name not in Spike.schema.model_fields), None)
    if unknown is not None:
        raise UsageError(Spike.schema.describe_unknown(unknown))
    boxes = {name: _parse_box(name, given.get(name, str(words[name]))) for name in NAMES}
    if boxes["a1"].high is not None and boxes["a1"].high <= boxes["a0"].least():
        a0, a1 = boxes["a0"].spelled, boxes["a1"].spelled
        raise UsageError(f"a0 must be smaller than a1, which {a0} and {a1} exclude")
    m, n = parse_integer(words["m"], "m"), words["n"] if start is None else start
    first = parse_integer(n.strip().removeprefix("n=") if isinstance(n, str) else n, "n")
    if m < 1 or first < 3:
        raise UsageError(f"{'m' if m < 1 else 'n'}={m if m < 1 else first} is too small")
    kernel, tolerance = mechanism_from(mechanism), parse_delta(delta)
    with ctx.workprec(PRECISION):
        if type(kernel) is Softmax:
            low, hypotheses = _bound_softmax(boxes, m, first, kernel.temperature)
            _require(bool(low > 0), "a larger d or a smaller m: its bound (1-p)^m - (1-k/8)^m is not positive here")
            at_least = math.nextafter(float(low), -math.inf)
            word: Word | None = "distinguishes" if low >= arb(rational(1 - tolerance)) else None
            return UniformProof(kernel, boxes, first, m, tolerance, at_least, None, word, hypotheses)
        if type(kernel) is Linear:
            high, hypotheses = _bound_linear(boxes, m, first)
            _require(bool(high < 1), "a larger d or a smaller m: its bound 1 - (1-p)^m is 1 here")
            at_most = math.nextafter(float(high), math.inf)
            word = "blind" if high <= arb(rational(tolerance)) else None
            return UniformProof(kernel, boxes, first, m, tolerance, None, at_most, word, hypotheses)
    raise _open(f"it needs softmax or linear, not {kernel.spelled}")


def theorem_ranges(mechanism: Any, parameters: Mapping[str, object]) -> str:
    """Return the ranges of the theorem at a point: larger d, smaller a0, and larger a1, smaller for linear attention.

    >>> theorem_ranges("linear", {"d": 42})
    'd=42: a0=:0.01 a1=:1.2'
    """
    values = {**Spike.example, **parameters}
    a1 = f":{values['a1']}" if type(mechanism_from(mechanism)) is Linear else f"{values['a1']}:"
    return f"d={values['d']}: a0=:{values['a0']} a1={a1}"


def _parse_box(name: str, text: str) -> Box:
    """Parse `low:high`, `low:`, `:high` or a value."""
    parts = text.split(":")
    if len(parts) > 2 or not any(parts):
        raise UsageError(f"{name}={text} is no range; write low:high, low:, :high or a value")
    ends = [parse_exact(part, name) if part.strip() else None for part in (parts[0], parts[-1])]
    low, high = ends
    if low is not None and high is not None and low > high:
        raise UsageError(f"{name}={text} is empty: {format_exact(low)} exceeds {format_exact(high)}")
    if any(end is not None and (end < 0 or (end == 0 and name != "a0")) for end in ends):
        raise UsageError(f"{name}={text} is out of range; {name} must be positive")
    if name == "d" and (low is None or low < 4 or any(end is not None and end.denominator != 1 for end in ends)):
        raise UsageError(f"d={text} is out of range; it needs a whole lower end of 4 or more")
    return Box(name, low, high)


def _bound_softmax(boxes: Mapping[str, Box], m: int, n: int, temperature: Fraction) -> tuple[arb, list[str]]:
    """Return a lower bound of P (U1), and the hypotheses with their values."""
    b, c, a1 = boxes["b"], boxes["c"], boxes["a1"].least()
    a0 = boxes["a0"].most("s0 = a0 (a0+b+c) has to stay below 1")
    b_most = b.most("the signs of the blocks weigh b")
    s1 = a1 * (a1 + b.least() + c.least()) / temperature
    divisor = "" if temperature == 1 else " / temperature"
    _require(s1 > 1, f"s1 > 1, and s1 = a1 (a1+b+c){divisor} may be {_round(s1, ROUND_FLOOR)}")
    s0 = Fraction(0)
    if a0 > 0:
        s0 = a0 * (a0 + b_most + c.most("s0 = a0 (a0+b+c) has to stay below 1")) / temperature
    _require(s0 < 1, f"s0 < 1, and s0 = a0 (a0+b+c){divisor} may be {_round(s0, ROUND_CEILING)}")
    _require(n * (s1 - 1) >= s1, f"n (s1-1) >= s1, which holds from n = {math.ceil(s1 / (s1 - 1))} on")
    f0, f1 = (1 / (1 + (n - 1) * arb(n) ** -arb(rational(s))) for s in (s0, s1))
    p, eta = _firing_bound(f0, a0, b_most, boxes["d"])
    triples = sum(_fires_surely(f1, a1, y_k, y_d, b, c) for y_k, y_d in product((1, -1), repeat=2))
    _require(triples > 0, "a sign triple fires on D1 everywhere in the ranges, a1 - b > 0.1, and none does")
    low = ((1 - p) ** m - (1 - arb(triples) / 8) ** m).lower()
    hypotheses = [
        f"s1 = a1 (a1+b+c){divisor} > 1, since s1 - 1 >= {_round(s1 - 1, ROUND_FLOOR)}",
        f"s0 = a0 (a0+b+c){divisor} < 1, since 1 - s0 >= {_round(1 - s0, ROUND_FLOOR)}",
        f"n (s1-1) >= s1 from n = {n} on",
        f"eta = 0.1 - f0 (a0+b) >= {_round(_lower(eta), ROUND_FLOOR)} > 0",
        f"{triples} of 8 sign triples fire on D1",
    ]
    return low, hypotheses


def _bound_linear(boxes: Mapping[str, Box], m: int, n: int) -> tuple[arb, list[str]]:
    """Return an upper bound of P (U2), and the hypotheses with their values."""
    a, b_most = boxes["a1"].most("the weight of the spike grows with it"), boxes["b"].most("block signs weigh b")
    r = boxes["b"].least() + boxes["c"].least()
    _require(r > 0, "b + c has a positive lower bound")
    weight = arb(rational((a + r) / (a + r + (n - 1) * r)))
    p, eta = _firing_bound(weight, a, b_most, boxes["d"])
    hypotheses = [f"eta = 0.1 - f (a1+b) >= {_round(_lower(eta), ROUND_FLOOR)} > 0"]
    return (1 - (1 - p) ** m).upper(), hypotheses


def _firing_bound(weight: arb, a: Fraction, b: Fraction, d: Box) -> tuple[arb, arb]:
    """Return a bound of the probability that a neuron fires if no row weighs the spike more than this, and eta."""
    eta = arb(rational(GAP)) - weight * arb(rational(a + b))
    if not eta > 0:
        _require(False, f"eta = 0.1 - f (a+b) > 0, and it may be {for_people(float(eta), 4)}: a larger n is needed")
    assert d.low is not None
    return (-((eta / arb(rational(b))) ** 2) * (d.low.numerator - 2) / 2).exp(), eta


def _fires_surely(f1: arb, a1: Fraction, y_k: int, y_d: int, b: Box, c: Box) -> bool:
    """Whether a neuron with y_1 = + and these signs fires on D1 everywhere in the boxes, with weights from f1 to 1."""
    # The pre-activation is at least this, and affine in each of f, b and c: its minimum is at a corner.
    if y_d < 0 and c.high is None:
        return False
    cs = [arb(0)] if y_d > 0 else [arb(rational(-2 * end)) for end in (c.least(), c.high or 0)]
    bs = [arb(rational(end)) for end in (b.least(), b.most("the signs of the blocks weigh b"))]
    return all(
        f * (arb(rational(a1)) + y_k * end) - (1 - f) * end + below - arb(rational(GAP)) > 0
        for f, end, below in product((f1, arb(1)), bs, cs)
    )


def _require(holds: bool, hypothesis: str) -> None:
    if not holds:
        raise _open(f"it needs {hypothesis}")


def _open(reason: str) -> EngineRefusal:
    return EngineRefusal(f"open: the uniform theorem does not apply: {reason}; {INSTEAD}")


def _lower(value: arb) -> Fraction:
    """Return a rational lower end of a ball."""
    return Fraction(math.nextafter(float(value.lower()), -math.inf))


def _round(value: Fraction, rounding: str) -> str:
    """Spell a number with four digits, rounded in one direction; exactly if it is short."""
    if len(exact := format_exact(value)) <= 12:
        return exact
    context = Context(prec=4, rounding=rounding)
    return for_people(float(context.divide(Decimal(value.numerator), Decimal(value.denominator))), 4)
