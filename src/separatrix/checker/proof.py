"""Verification of proofs for every n: the least firing counts as step functions of n = (d-2) t.

Multiplied by the sum of its scores over an ordinary score, a row's pre-activation minus tau is

    N(P, n) = rho sigma + w n - mu,    mu = b y_k + c y_d - tau,    sigma = a y_1 + mu,
    w = b (y_k + 2 P - (d-3))/(d-2) + c y_d - tau,

where P of the d-3 other blocks have the sign + and rho is the quotient of the spike's score and an ordinary one: the
spike adds rho sigma, the t-1 others of its block mu each, and the t tokens of another block b y + c y_d - tau each.
The factor is positive, so the row fires if and only if N > 0. Since b > 0, N grows with P: "fires from the count T on"
is N(T, n) > 0 and N(T-1, n) <= 0.

Why the ends of a range suffice. For softmax rho = n^s with s >= 0, for linear and power rho does not depend on n. As
a function of a real n >= 1, N(P, n)/n has a derivative of the sign of

    h(n) = sigma (s-1) n^s + mu    (softmax),    h = mu - rho sigma    (linear, power),

which does not contain P and is itself monotone in n. If h has no two opposite signs at the ends of an interval, it has
none within it, and N(P, n)/n is monotone there for every P. A monotone function lies between its values at the ends:
if the least is positive, so is every value between them, and if the greatest is not, none is; the sign of h tells
which end is which. This covers all real n of the interval, in particular all multiples of d-2. For an interval without
an upper end, the signs of h and N for all sufficiently large n replace those at the end: any n of the interval lies
below some n with that sign.

A line's steps are cut at its turn, so that each piece lies in one interval where h has been compared at the ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product
from typing import Any

from separatrix.checker.certificate import MECHANISMS, PARAMETERS, VERDICTS, read_kernel, read_model
from separatrix.checker.check import Findings, Report, derive_verdict, same_digest
from separatrix.checker.constructions import TRIPLES, Signs, SpikeModel, ThresholdKey
from separatrix.checker.document import MOST_DIGITS, Malformed, entries, exact, fields, integer, require, word
from separatrix.checker.kernels import Kernel, Logit, SoftmaxKernel, sign
from separatrix.checker.probability import FiringProbabilities, network, neuron
from separatrix.checker.statement import (
    ONLY_THIS_READER,
    P,
    meaning,
    mechanism_words,
    scoring,
    with_rounding_mark,
    words,
)

FORMAT = "separatrix proof"
VERSION = 1
FIELDS = (
    *("format", "version", "construction", "mechanism", "parameters", "from", "delta", "lines", "table"),
    *("verdict", "eventually", "counterexample", "requested", "sha256"),
)
MOST_STEPS = 50_000
"""The maximum number of steps of all lines, which take about half a minute to verify."""

MOST_BLOCKS = 2_000_000
"""The maximum number of block signs over all entries of the table."""

ROWS = {"spike": ("spike",), "other": ("rest",), "every": ("spike", "rest")}
"""The rows of the construction that a line is about."""

Triple = tuple[Fraction, Fraction, Fraction]
"""P(fires on D0), P(fires on D1) and P(fires on D1 only) of one neuron."""

Piece = tuple[int, int | None, int]
"""The first and last t of a range, or None if it has no end, and the least firing count in it."""


@dataclass(frozen=True)
class Line:
    """The least firing count of one kind of row under one sign triple, as a step function of t."""

    label: int
    signs: Signs
    row: str
    turn: int | None
    steps: list[tuple[int, int]]

    def intervals(self) -> list[tuple[int, int | None]]:
        """Return the ranges of t in which N/n has to be monotone."""
        first = self.steps[0][0]
        return [(first, None)] if self.turn is None else [(first, self.turn), (self.turn + 1, None)]

    def pieces(self) -> Iterator[Piece]:
        """Yield the ranges of t with one least count, cut after the turn."""
        for (first, least), following in zip(self.steps, [*self.steps[1:], None], strict=True):
            last = None if following is None else following[0] - 1
            if self.turn is not None and first <= self.turn and (last is None or self.turn < last):
                yield first, self.turn, least
                first = self.turn + 1
            yield first, last, least

    def describe(self) -> str:
        """Describe the rows and signs of the line."""
        rows = "every row" if self.row == "every" else f"row {self.row}"
        return f"D{self.label}, {rows}, signs ({', '.join(f'{value:+d}' for value in self.signs)})"


@dataclass(frozen=True)
class Proof:
    """The statements of a proof; only their form has been verified."""

    kernel: Kernel
    model: SpikeModel
    m: int
    first_n: int
    delta: Fraction
    lines: list[Line]
    table: dict[int, Triple]
    requested: str | None
    conclusions: dict[str, str | int | tuple[str, int] | None]
    """The fields verdict, eventually and counterexample."""

    @property
    def unit(self) -> int:
        """The number of blocks: n is `unit` times t."""
        return self.model.blocks + 1


@dataclass(frozen=True)
class Excess:
    """N(P, n) of one row under one sign triple, by its sign."""

    kernel: Kernel
    model: SpikeModel
    label: int
    signs: Signs
    row: str

    @cached_property
    def mu(self) -> Fraction:
        """The share of another token of the spike's block."""
        _, y_block, y_d = self.signs
        return self.model.b * y_block + self.model.c * y_d - self.model.tau

    @cached_property
    def sigma(self) -> Fraction:
        """The share of the spike."""
        return self.model.a[self.label] * self.signs[0] + self.mu

    def weight(self, plus: int) -> Fraction:
        """Return w, the coefficient of n."""
        _, y_block, y_d = self.signs
        model = self.model
        return model.b * (y_block + 2 * plus - model.blocks) / (model.blocks + 1) + model.c * y_d - model.tau

    @cached_property
    def exponent(self) -> Fraction:
        """The exponent s of rho = n^s; 0 if rho does not depend on n."""
        if not isinstance(self.kernel, SoftmaxKernel):
            return Fraction(0)
        logits = self.model.rows[self.label][self.row]
        return (logits.spike.times - logits.ordinary.times) / self.kernel.temperature

    def sign_at(self, n: int, of_rho: Fraction, of_one: Fraction) -> int | None:
        """Return the sign of `of_rho rho + of_one` at n, or None if it is undecided."""
        logits = self.model.rows[self.label][self.row]
        spike, ordinary = (Logit(logit.times, Fraction(n)) for logit in (logits.spike, logits.ordinary))
        return sign(self.kernel, [(of_rho, spike), (of_one, ordinary)])

    def excess_sign(self, plus: int, n: int | None) -> int | None:
        """Return the sign of N at n, or for all sufficiently large n."""
        weight = self.weight(plus)
        if n is not None:
            return self.sign_at(n, self.sigma, weight * n - self.mu)
        if self.exponent == 0:  # rho is constant, and N too if its weight is 0
            return side(weight) or self.sign_at(3, self.sigma, -self.mu)
        # The greatest power of n whose coefficient is not 0 decides; n^s may be n itself.
        coefficients = {Fraction(1): weight, Fraction(0): -self.mu}
        coefficients[self.exponent] = coefficients.get(self.exponent, Fraction(0)) + self.sigma
        return next(
            (side(coefficients[power]) for power in sorted(coefficients, reverse=True) if coefficients[power]), 0
        )

    def slope_sign(self, n: int | None) -> int | None:
        """Return the sign of h at n, or for all sufficiently large n."""
        s = self.exponent
        of_rho = self.sigma * (s - 1)  # -sigma where rho is constant
        if n is None:
            if s > 0 and of_rho != 0:
                return side(of_rho)
            n = 3  # h is constant
        return self.sign_at(n, of_rho, self.mu)


def side(value: Fraction) -> int:
    """Return the sign of a rational."""
    return (value > 0) - (value < 0)


def is_proof(document: object) -> bool:
    """Whether a document claims to be a proof for every n."""
    return isinstance(document, dict) and document.get("format") == FORMAT


def check_proof(document: object) -> Report:
    """Verify a proof given as a JSON value.

    The first line with a failure ends the verification, so that a forged proof costs little.
    """
    findings = Findings()
    try:
        proof = read_proof(document)
    except Malformed as fault:
        return Report(0, [str(fault)])
    assert isinstance(document, dict)
    findings.note(same_digest(document), "sha256")
    findings.note(proof.model.increasing(), "that a pre-activation grows with the number of + blocks")
    for line in proof.lines:
        _check_line(proof, line, findings)
        if findings.failed:
            return Report(findings.verified, findings.failed)
    values = _check_table(proof, findings)
    verdicts = [derive_verdict(value.distinguish, value.fire_d1, proof.delta) for _, value in values]
    if not findings.failed:
        _check_conclusions(proof, values, verdicts, findings)
    statement = () if findings.failed else _statement(document, proof, values, verdicts)
    return Report(findings.verified, findings.failed, statement)


def read_proof(document: object) -> Proof:
    """Parse a proof; raise Malformed if its form is wrong."""
    body = fields(document, "the proof", FIELDS)
    require(type(body["format"]) is str and body["format"] == FORMAT, f"format is not {FORMAT}")
    is_known = type(body["version"]) is int and body["version"] == VERSION
    require(is_known, f"version is not {VERSION}, the one this checker knows")
    word(body["construction"], "construction", ("spike",))
    kernel = _kernel(body["mechanism"])
    names = [name for name in PARAMETERS["spike"] if name != "n"]
    parameters = fields(body["parameters"], "parameters", names)
    first_n = integer(body["from"], "from", 3)
    model, m = read_model("spike", {**parameters, "n": first_n})
    assert isinstance(model, SpikeModel)
    require(parameters["form"] == "ones", "form is not ones, the only one whose proofs this checker knows")
    delta = exact(body["delta"], "delta", MOST_DIGITS)
    require(0 < delta < Fraction(1, 2), "delta does not lie between 0 and 1/2")
    first_t = first_n // (model.blocks + 1)
    requested = _verdict(body["requested"], "requested")
    counterexample, eventually = body["counterexample"], body["eventually"]
    if eventually is not None:
        ending = fields(eventually, "eventually", ("verdict", "from"))
        verdict = word(ending["verdict"], "the verdict of eventually", VERDICTS)
        eventually = (verdict, integer(ending["from"], "the from of eventually", 3))
    conclusions = {
        "verdict": _verdict(body["verdict"], "verdict"),
        "eventually": eventually,
        "counterexample": None if counterexample is None else integer(counterexample, "counterexample", 3),
    }
    require(type(body["sha256"]) is str, "sha256 is not text")
    rows = ("spike", "other") if isinstance(kernel, SoftmaxKernel) else ("every",)
    lines, table = _lines(body["lines"], model, first_t, rows), _table(body["table"], model, first_t)
    return Proof(kernel, model, m, first_n, delta, lines, table, requested, conclusions)


def _verdict(value: object, place: str) -> str | None:
    return None if value is None else word(value, place, VERDICTS)


def _kernel(value: object) -> Kernel:
    """Return the kernel of a mechanism for which the shape of N/n is known."""
    if isinstance(value, dict) and value.get("name") == "taylor":
        names = ", ".join(name for name in MECHANISMS if name != "taylor")
        raise Malformed(f"mechanism name is not one of: {names}")
    return read_kernel(value)


def _lines(value: object, model: SpikeModel, first_t: int, rows: tuple[str, ...]) -> list[Line]:
    """Parse one line for every label, sign triple and kind of row."""
    expected_keys = set(product((0, 1), TRIPLES, rows))
    lines, steps = {}, 0
    for entry in entries(value, "lines", len(expected_keys)):
        body = fields(entry, "a line", ("label", "signs", "row", "turn", "steps"))
        label = integer(body["label"], "the label of a line", 0, 1)
        y_1, y_block, y_d = (
            integer(value, "a sign", -1, 1) for value in entries(body["signs"], "the signs of a line", 3)
        )
        key = (label, (y_1, y_block, y_d), word(body["row"], "the row of a line", rows))
        require(key in expected_keys, "a sign is 0")
        require(key not in lines, "lines has two entries for one row")
        turn = body["turn"] if body["turn"] is None else integer(body["turn"], "a turn", first_t)
        line = Line(*key, turn, _steps(body["steps"], model, first_t, MOST_STEPS - steps))
        lines[key], steps = line, steps + len(line.steps)
    return list(lines.values())


def _steps(value: object, model: SpikeModel, first_t: int, most: int) -> list[tuple[int, int]]:
    """Parse the steps of a line, which begin at `first_t` and are in order."""
    if not isinstance(value, list) or not 1 <= len(value) <= most:
        raise Malformed(f"steps is not a list of 1 to {MOST_STEPS} entries over all lines")
    steps = []
    for entry in value:
        t, least = entries(entry, "a step", 2)
        steps.append((integer(t, "the t of a step", 1), integer(least, "a least count", 0, model.blocks + 1)))
    _require_order([t for t, _ in steps], "steps", first_t)
    return steps


def _table(value: object, model: SpikeModel, first_t: int) -> dict[int, Triple]:
    """Parse the table."""
    most = MOST_BLOCKS // model.blocks
    if not isinstance(value, list) or not 1 <= len(value) <= most:
        raise Malformed(f"table is not a list of 1 to {most} entries, the most that are verified at this d")
    positions, triples = [], []
    for entry in value:
        t, *texts = entries(entry, "an entry of the table", 4)
        p0, p1, only = (exact(text, "a probability of the table") for text in texts)
        positions.append(integer(t, "the t of an entry of the table", 1))
        triples.append((p0, p1, only))
    _require_order(positions, "table", first_t)
    return dict(zip(positions, triples, strict=True))


def _require_order(positions: list[int], place: str, first_t: int) -> None:
    require(positions[0] == first_t, f"{place} does not begin at the t of from")
    require(all(t < following for t, following in pairwise(positions)), f"{place} is not in order")


def _check_line(proof: Proof, line: Line, findings: Findings) -> None:
    """Check that N/n is monotone on both sides of the turn, and the least counts at the ends of every piece."""

    def at(t: int | None) -> int | None:
        return None if t is None else t * proof.unit

    name = line.describe()
    for row in ROWS[line.row]:
        excess = Excess(proof.kernel, proof.model, line.label, line.signs, row)
        falls: list[bool] = []
        for first, last in line.intervals():
            slopes = excess.slope_sign(at(first)), excess.slope_sign(at(last))
            is_monotone = None if None in slopes else {*slopes} != {1, -1}
            findings.note(is_monotone, f"that there is no turn in {name}, after t = {short(first)}")
            falls.append(-1 in slopes)
        for first, last, least in line.pieces():
            # N/n is least at one end and greatest at the other, which its monotony before and after the turn tells.
            ends = (
                (at(last), at(first)) if falls[line.turn is not None and first > line.turn] else (at(first), at(last))
            )
            holds = _is_least(excess, least, *ends)
            findings.note(holds, f"the least count {least} of {name}, from t = {short(first)} on,")


def _is_least(excess: Excess, least: int, lowest: int | None, highest: int | None) -> bool | None:
    """Whether rows fire with `least` + blocks where N/n is lowest, and not with one less where it is highest."""
    above = excess.excess_sign(least, lowest) if least <= excess.model.blocks else 1
    below = excess.excess_sign(least - 1, highest) if least > 0 else 0
    # One wrong side refutes a statement, even if another is undecided.
    if above in (0, -1) or below == 1:
        return False
    return None if above is None or below is None else True


def short(value: int) -> str:
    """Return a positive integer in at most 30 characters."""
    return str(value) if value.bit_length() < 96 else f"a number of {value.bit_length()} bits"


def _check_table(proof: Proof, findings: Findings) -> list[tuple[int, FiringProbabilities]]:
    """Recompute the probabilities wherever a least count changes; return their values, each with its first n."""
    steps = [dict(line.steps) for line in proof.lines]
    least: dict[ThresholdKey, int] = {}
    values: dict[int, FiringProbabilities] = {}
    before: Triple | None = None
    for t in sorted({t for line in proof.lines for t, _ in line.steps}):
        for line, changes in zip(proof.lines, steps, strict=True):
            if t in changes:
                least.update({(line.label, line.signs, row, 0): changes[t] for row in ROWS[line.row]})
        triple = neuron(proof.model, least)
        if triple != before:
            findings.note(proof.table.get(t) == triple, f"the table at t = {short(t)}")
            values[t] = FiringProbabilities(*triple, *network(*triple, proof.m))
            before = triple
        if findings.failed:
            break
    for t in proof.table:
        if not findings.failed and t not in values:
            findings.note(False, f"that the table changes at t = {short(t)}")
    return [(t * proof.unit, value) for t, value in values.items()]


def _check_conclusions(
    proof: Proof, values: list[tuple[int, FiringProbabilities]], verdicts: list[str | None], findings: Findings
) -> None:
    """Derive the conclusions from the verdict at every entry of the table."""
    first, final = verdicts[0], verdicts[-1]
    last_exception = max((i for i, verdict in enumerate(verdicts) if verdict != final), default=-1)
    expected = proof.requested or first
    derived = {
        "verdict": first if len({*verdicts}) == 1 else None,
        "eventually": (final, values[last_exception + 1][0]),
        "counterexample": next(
            (n for (n, _), verdict in zip(values, verdicts, strict=True) if verdict != expected), None
        ),
    }
    for name, value in derived.items():
        findings.note(None if None in verdicts else proof.conclusions[name] == value, name)


def _statement(
    document: dict[str, Any], proof: Proof, values: list[tuple[int, FiringProbabilities]], verdicts: list[str | None]
) -> tuple[str, ...]:
    """Return the verified statement in sentences."""
    chances = [value.distinguish for _, value in values]
    # Enclosures that overlap may hide values that differ, so that p0 and p(only D1) are counted.
    count = len({(value.p0, value.only_d1) for _, value in values})
    value_count = f"at most {count} values" if len({*chances}) < count else f"{count} value{'s' if count > 1 else ''}"
    least, most = with_rounding_mark(min(chances)), with_rounding_mark(max(chances))
    last_n, last = short(values[-1][0]), with_rounding_mark(chances[-1])
    firsts = [i for i, verdict in enumerate(verdicts) if i == 0 or verdict != verdicts[i - 1]]
    runs = [f"{verdicts[i]} from n = {short(values[i][0])} on" for i in firsts]
    every = f"for every n = {proof.unit} t from {short(proof.first_n)} on"
    return (
        f"{mechanism_words(document['mechanism'])} on spike with {words(document['parameters'])}, {every}.",
        scoring(document["mechanism"]),
        meaning("spike", "ones"),
        f"{P} has {value_count}, from {least} to {most}; it is {last} for every such n from {last_n} on.",
        f"At delta {document['delta']}: {', then '.join(runs)}, for ever.",
        "Verified for every such n, in exact arithmetic: the least number of + blocks that makes a row fire, for every "
        "row and sign triple; the exact fractions of one neuron; and the verdict.",
        "Not claimed: anything at other parameters, d and m included, or in floating-point arithmetic, and "
        f"{ONLY_THIS_READER}.",
    )
