"""Uniform theorems: one bound of P for every n >= N0, every d >= d0 and boxes of amplitudes.

The bounds U1 and U2 of docs/proofs.md, in balls; d may grow with n in any way. U1 is for softmax with s1 > 1 > s0, U2
where the weight of the spike vanishes: softmax with s1 < 1, linear and power attention, Taylor polynomials.
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
from separatrix.mechanisms import Linear, Mechanism, Power, Softmax, Taylor
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
    p_at_most: float
    """An upper bound of the probability that one neuron fires on D0 and, without triples, on D1."""
    triples: int | None
    """The number of sign triples, of 8, with which a neuron fires on D1; null if the weight of the spike vanishes."""
    at_least: float | None
    """A lower bound of P, rounded down; null if the weight of the spike vanishes."""
    at_most: float | None
    """An upper bound of P, rounded up; null otherwise."""
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
        p, triples, hypotheses = _bound_neuron(boxes, first, kernel)
        # log(1-p) and exp(x) - 1 keep the digits of a tiny p.
        log_silent = m * (-p).log1p()
        if triples is None:
            high = (-log_silent.expm1()).upper()
            _require(bool(high < 1), "a larger d or a smaller m: its bound 1 - (1-p)^m is 1 here")
            at_least, at_most = None, math.nextafter(float(high), math.inf)
            word: Word | None = "blind" if high <= arb(rational(tolerance)) else None
        else:
            miss = (log_silent.exp() - (m * (-arb(triples) / 8).log1p()).exp() - 1).lower()
            _require(bool(miss > -1), "a larger d or a smaller m: its bound (1-p)^m - (1-k/8)^m is not positive here")
            at_least, at_most = math.nextafter(float(1 + miss), -math.inf), None
            word = "distinguishes" if -miss <= arb(rational(tolerance)) else None
        p_at_most = min(math.nextafter(float(p.upper()), math.inf), 1.0)
    return UniformProof(kernel, boxes, first, m, tolerance, p_at_most, triples, at_least, at_most, word, hypotheses)


def theorem_ranges(mechanism: Any, parameters: Mapping[str, object]) -> str:
    """Return the ranges of the theorem at a point: larger d, smaller a0, and larger a1 (softmax) or smaller a1.

    >>> theorem_ranges("linear", {"d": 42})
    'd=42: a0=:0.01 a1=:1.2'
    """
    values = {**Spike.example, **parameters}
    a1 = f"{values['a1']}:" if type(mechanism_from(mechanism)) is Softmax else f":{values['a1']}"
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


def _bound_neuron(boxes: Mapping[str, Box], n: int, kernel: Mechanism) -> tuple[arb, int | None, list[str]]:
    """Return a bound of the probability that a neuron fires, the triples that fire on D1, and the hypotheses."""
    if type(kernel) is Softmax:
        a, b, c = (boxes[name].high for name in ("a1", "b", "c"))
        if a is None or b is None or c is None or a * (a + b + c) >= kernel.temperature:
            return _bound_softmax(boxes, n, kernel.temperature)
        s1 = a * (a + b + c) / kernel.temperature
        hypotheses = [f"s1 = a1 (a1+b+c)/temperature < 1, since 1 - s1 >= {_round(1 - s1, ROUND_FLOOR)}"]
        weight = _softmax_weight(n, s1)
    elif type(kernel) in (Linear, Power, Taylor):
        a, b = boxes["a1"].most("the weight of the spike grows with it"), boxes["b"].most("block signs weigh b")
        r, hypotheses = boxes["b"].least() + boxes["c"].least(), []
        _require(r > 0, "b + c has a positive lower bound")
        # A Taylor polynomial has T(x y)/T(y) <= x^order for x >= 1.
        degree = kernel.beta if isinstance(kernel, Power) else getattr(kernel, "order", 1)
        ratio = arb(rational(1 + a / r)) ** arb(rational(Fraction(degree)))
        weight = ratio / (ratio + (n - 1))
    else:
        raise _open(f"it needs softmax, linear, power or taylor, not {kernel.spelled}")
    _require(boxes["a0"].most("a0 < a1") <= a, f"a0 < a1: give a0 an upper end of at most {format_exact(a)}")
    p, eta = _firing_bound(weight, a, b, boxes["d"])
    return p, None, [*hypotheses, f"eta = 0.1 - f (a1+b) >= {_round(_lower(eta), ROUND_FLOOR)} > 0"]


def _softmax_weight(n: int, s: Fraction) -> arb:
    """Return 1/(1 + (n-1) n^-s)."""
    return 1 / (1 + (n - 1) * arb(n) ** -arb(rational(s)))


def _bound_softmax(boxes: Mapping[str, Box], n: int, temperature: Fraction) -> tuple[arb, int, list[str]]:
    """Return a bound of the probability that a neuron fires on D0, the triples that fire on D1, and the hypotheses."""
    b, c, a1 = boxes["b"], boxes["c"], boxes["a1"].least()
    a0 = boxes["a0"].most("s0 = a0 (a0+b+c) has to stay below 1")
    b_most = b.most("the signs of the blocks weigh b")
    s1 = a1 * (a1 + b.least() + c.least()) / temperature
    divisor = "" if temperature == 1 else " / temperature"
    _require(s1 > 1, f"s1 > 1, and s1 = a1 (a1+b+c){divisor} may be {_round(s1, ROUND_FLOOR)}")
    c_most = c.most("s0 = a0 (a0+b+c) has to stay below 1")
    s0 = a0 * (a0 + b_most + c_most) / temperature
    _require(s0 < 1, f"s0 < 1, and s0 = a0 (a0+b+c){divisor} may be {_round(s0, ROUND_CEILING)}")
    _require(n * (s1 - 1) >= s1, f"n (s1-1) >= s1, which holds from n = {math.ceil(s1 / (s1 - 1))} on")
    p, eta = _firing_bound(_softmax_weight(n, s0), a0, b_most, boxes["d"])
    f1 = _softmax_weight(n, s1)
    triples = sum(_fires_surely(f1, a1, y_k, y_d, b, c_most) for y_k, y_d in product((1, -1), repeat=2))
    _require(triples > 0, "a sign triple fires on D1 everywhere in the ranges, a1 - b > 0.1, and none does")
    return (
        p,
        triples,
        [
            f"s1 = a1 (a1+b+c){divisor} > 1, since s1 - 1 >= {_round(s1 - 1, ROUND_FLOOR)}",
            f"s0 = a0 (a0+b+c){divisor} < 1, since 1 - s0 >= {_round(1 - s0, ROUND_FLOOR)}",
            f"n (s1-1) >= s1 from n = {n} on",
            f"eta = 0.1 - f0 (a0+b) >= {_round(_lower(eta), ROUND_FLOOR)} > 0",
            f"{triples} of 8 sign triples fire on D1",
        ],
    )


def _firing_bound(weight: arb, a: Fraction, b: Fraction, d: Box) -> tuple[arb, arb]:
    """Return a bound of the probability that a neuron fires if no row weighs the spike more than this, and eta."""
    eta = arb(rational(GAP)) - weight * arb(rational(a + b))
    if not eta > 0:
        _require(False, f"eta = 0.1 - f (a+b) > 0, and it may be {for_people(float(eta), 4)}: a larger n is needed")
    assert d.low is not None
    return (-((eta / arb(rational(b))) ** 2) * (d.low.numerator - 2) / 2).exp(), eta


def _fires_surely(f1: arb, a1: Fraction, y_k: int, y_d: int, b: Box, c_most: Fraction) -> bool:
    """Whether a neuron with y_1 = + and these signs fires on D1 everywhere in the boxes, with weights from f1 to 1."""
    # The pre-activation is at least this, and affine in each of f, b and c: its minimum is at a corner.
    below = arb(rational((y_d - 1) * c_most - GAP))
    return all(
        f * (arb(rational(a1)) + y_k * end) - (1 - f) * end + below > 0
        for f, end in product((f1, arb(1)), (arb(rational(x)) for x in (b.least(), b.most(""))))
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
