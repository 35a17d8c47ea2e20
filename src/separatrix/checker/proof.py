"""Verification of proofs for every n: the least firing counts as step functions of n = (d-2) t.

With L = log n, the score u of every key is n^e or a polynomial in L, up to a unit of its row. A row's pre-activation
minus tau, times the sum of its scores (positive) and divided by t, is the sum over the kinds of key

    E_P = share + w_P u_ordinary,    share = (d-2)/n (sigma u_spike - mu u_mate) + mu u_mate + nu u_own,
    mu = b y_k + c y_d - tau,    sigma = a y_1 + mu,    nu = b y_own + c y_d - tau,
    w_P = b (sum of the signs of the blocks with ordinary scores) + (their number) (c y_d - tau),

where the term with nu exists only if the row's own block has a score of its own. The row fires if and only if
E_P > 0. Since b > 0, E_P grows with P, the number of + among the d-3 blocks without the spike: "fires from the count T
on" is E_T > 0 and E_(T-1) <= 0.

Why the ends of a range suffice. All these are sums of terms c n^e L^j with rational c and e. P enters E_P / u_ordinary
as a constant, so that the derivative of this quotient has, for every P, the sign of h_1 = share' u_ordinary -
share u_ordinary', where ' is the derivative with respect to L. Let h_(i+1) be the derivative of h_i / n^e, where e is
the least exponent in h_i. This divides by a positive function, and lowers the number of terms or a degree, so that
some h_k has one term only, which is positive or negative at all n > 1. If h_(i+1) does not change its sign on an
interval, h_i / n^e is monotone there; if h_i then has no two opposite signs at the ends, it does not change its sign
either. So if no h_i has opposite signs at the ends of an interval, E_P / u_ordinary is monotone on it. A monotone
function lies between its values at the ends, and the sign of h_1 tells which of them is the lower one: if the lower one
is positive, so is every value, and if the higher one is not, none is. This covers all real n of the interval, in
particular all multiples of d-2. For an interval without an upper end, the signs for all sufficiently large n replace
those at the end: any n of it lies below some n with that sign.

A line's turns cut it into such intervals. Its steps are cut there, too, so that each piece lies in one of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import factorial
from typing import Any

from separatrix.checker.arithmetic import Interval, exact_power, intervals
from separatrix.checker.certificate import PARAMETERS, VERDICTS, describe_threshold, read_kernel, read_model, read_rows
from separatrix.checker.check import Report, derive_verdict, is_least, same_digest
from separatrix.checker.constructions import SpikeModel, ThresholdKey
from separatrix.checker.document import Malformed, between, entries, exact, fields, header, integer, require, word
from separatrix.checker.kernels import Kernel, Logit, SoftmaxKernel, TaylorKernel, side, sign_of_sum
from separatrix.checker.probability import FiringProbabilities, Triple, neuron, probabilities
from separatrix.checker.statement import ONLY_THIS_READER, P, subject, with_rounding_mark, words

FORMAT = "separatrix proof"
VERSION = 1
FIELDS = (*("parameters", "from", "delta", "lines", "table"), *("verdict", "eventually", "counterexample", "requested"))
MOST_STEPS = 50_000
"""The maximum number of steps of all lines, which take about half a minute to verify."""

MOST_BLOCKS = 2_000_000
"""The maximum number of block signs over all entries of the table."""

MOST_TURNS = 200
"""The maximum number of turns of a line."""

MOST_ORDER = 12
"""The maximum order of Taylor attention."""

MOST_BITS = 1 << 13
"""The maximum number of bits of the highest power of a logit in Taylor attention."""

Piece = tuple[int, int | None, int]
"""The first and last t of a range, or None if it has no end, and the least firing count in it."""


Power = tuple[Fraction, int]
"""e and j of n^e (log n)^j."""

Terms = dict[Power, Fraction]
"""A sum of such powers, each with its coefficient, which is not 0."""

ONE: Power = (Fraction(0), 0)


@dataclass(frozen=True)
class Excess:
    """E_P of one row under one sign triple."""

    model: SpikeModel
    key: ThresholdKey
    share: Terms
    ordinary: Terms
    """The score of an ordinary key."""

    def terms(self, plus: int) -> Terms:
        """Return E_P for `plus` other blocks with the sign +."""
        (_, (_, _, y_d), _, own_sign), model, blocks = self.key, self.model, self.model.blocks
        if own_sign:  # the row's own block is one of those that `plus` counts
            blocks, plus = blocks - 1, plus - (own_sign > 0)
        weight = model.b * (2 * plus - blocks) + blocks * (model.c * y_d - model.tau)
        return add(self.share, product({ONE: weight}, self.ordinary))

    def levels(self) -> Iterator[Terms]:
        """Yield h_1, h_2 and so on."""
        level = add(
            product(derivative(self.share), self.ordinary),
            product({ONE: Fraction(-1)}, product(self.share, derivative(self.ordinary))),
        )
        while level:
            yield level
            level = derivative(product({(-min(level)[0], 0): Fraction(1)}, level))


def read_excess(kernel: Kernel, model: SpikeModel, key: ThresholdKey) -> Excess:
    """Return E_P; raise Malformed if it is no sum of terms of moderate length."""
    label, (y_1, y_block, y_d), name, own_sign = key
    row, columns, common_part = model.rows[label][name], model.blocks + 1, model.c * y_d - model.tau
    mu = model.b * y_block + common_part
    sigma, per_n = model.a[label] * y_1 + mu, (Fraction(-1), 0)
    parts = [
        product({per_n: columns * sigma}, _score(kernel, row.spike, row.ordinary)),
        product({ONE: mu, per_n: -columns * mu}, _score(kernel, row.mate, row.ordinary)),
    ]
    if row.own_block is not None:
        nu = model.b * own_sign + common_part
        parts.append(product({ONE: nu}, _score(kernel, row.own_block, row.ordinary)))
    return Excess(model, key, add(*parts), _score(kernel, row.ordinary, row.ordinary))


def _score(kernel: Kernel, logit: Logit, ordinary: Logit) -> Terms:
    """Return a score, in the unit of its row."""
    if isinstance(kernel, SoftmaxKernel):
        return {((logit.times - ordinary.times) / kernel.temperature, 0): Fraction(1)}
    if isinstance(kernel, TaylorKernel):
        order, bits = kernel.order, max(map(int.bit_length, logit.times.as_integer_ratio()))
        is_short = order <= MOST_ORDER and order * bits <= MOST_BITS
        require(is_short, "the order is too large, or an amplitude has too many digits")
        return {(Fraction(0), i): logit.times**i / factorial(i) for i in range(order + 1)}
    quotient = kernel.ratio(logit, ordinary)
    if quotient is None:
        raise Malformed("the quotient of two scores is no fraction, or a very long one")
    return {ONE: quotient}


@dataclass(frozen=True)
class Line:
    """The least firing count of one kind of row under one sign triple, as a step function of t."""

    excess: Excess
    turns: list[int]
    steps: list[tuple[int, int]]

    def intervals(self) -> Iterator[tuple[int, int | None]]:
        """Yield the ranges of t in which E_P / u_ordinary has to be monotone."""
        yield from zip([self.steps[0][0], *(turn + 1 for turn in self.turns)], [*self.turns, None], strict=True)

    def pieces(self) -> Iterator[Piece]:
        """Yield the ranges of t with one least count, cut after every turn."""
        least_at, least = dict(self.steps), 0
        starts = sorted({*least_at, *(turn + 1 for turn in self.turns)})
        for first, following in zip(starts, [*starts[1:], None], strict=True):
            least = least_at.get(first, least)
            yield first, None if following is None else following - 1, least


@dataclass(frozen=True)
class Proof:
    """The statements of a proof; only their form has been verified."""

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


def add(*sums: Terms) -> Terms:
    """Return the sum of sums."""
    total: defaultdict[Power, Fraction] = defaultdict(Fraction)
    for terms in sums:
        for power, coefficient in terms.items():
            total[power] += coefficient
    return {power: coefficient for power, coefficient in total.items() if coefficient}


def product(first: Terms, second: Terms) -> Terms:
    """Return the product of two sums."""
    return add(*({(e + f, i + j): x * y for (f, j), y in second.items()} for (e, i), x in first.items()))


def derivative(terms: Terms) -> Terms:
    """Return the derivative with respect to log n."""
    return add(*({(e, j): e * factor, (e, j - 1): j * factor} for (e, j), factor in terms.items()))


def sign(terms: Terms, n: int | None) -> int | None:
    """Return the sign of a sum at n > 2, or at all sufficiently large n; None if it is undecided."""
    if n is None:
        return side(terms[max(terms)]) if terms else 0

    def ratio(first: Power, second: Power) -> Fraction | None:
        return exact_power(Fraction(n), first[0] - second[0]) if first[1] == second[1] else None

    products = ((coefficient, power) for power, coefficient in terms.items())
    return sign_of_sum(products, ratio, lambda power, bits: _enclose(power, n, bits))


@lru_cache(maxsize=512)
def _enclose(power: Power, n: int, bits: int) -> Interval:
    """Return an interval around n^e (log n)^j."""
    (e, j), at = power, intervals(bits)
    log = at.log(at.rational(n))
    return (at.exp(at.rational(e) * log) if e else at.rational(1)) * log**j


def check_proof(document: Any) -> Report:
    """Verify a proof given as a JSON value.

    The first line with a failure ends the verification, so that a forged proof costs little.
    """
    report = Report()
    try:
        proof = read_proof(document)
    except Malformed as fault:
        return Report(0, [str(fault)])
    report.note(same_digest(document), "sha256")
    report.note(proof.model.increasing(), "that a pre-activation grows with the number of + blocks")
    for line in proof.lines:
        _check_line(proof, line, report)
        if report.failed:
            return report
    values = _check_table(proof, report)
    verdicts = [derive_verdict(value.distinguish, value.fire_d1, proof.delta) for _, value in values]
    if not report.failed:
        _check_conclusions(proof, values, verdicts, report)
    report.statement = () if report.failed else _statement(document, proof, values, verdicts)
    return report


def read_proof(document: object) -> Proof:
    """Parse a proof; raise Malformed if its form is wrong."""
    body = header(document, FORMAT, VERSION, FIELDS)
    construction = word(body["construction"], "construction", ("spike", "cross"))
    kernel = read_kernel(body["mechanism"])
    names = [name for name in PARAMETERS[construction] if name != "n"]
    parameters = fields(body["parameters"], "parameters", names)
    first_n = integer(body["from"], "from", 3)
    model, m = read_model(construction, {**parameters, "n": first_n})
    assert isinstance(model, SpikeModel)
    delta = between(body["delta"], "delta", Fraction(1, 2))
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
    lines, table = _lines(body["lines"], kernel, model, first_t), _table(body["table"], model, first_t)
    return Proof(model, m, first_n, delta, lines, table, requested, conclusions)


def _verdict(value: object, place: str) -> str | None:
    return None if value is None else word(value, place, VERDICTS)


def _lines(value: object, kernel: Kernel, model: SpikeModel, first_t: int) -> list[Line]:
    """Parse one line for every label, sign triple and kind of row."""
    # In blocks of more than one token, all kinds of row exist; there are such blocks from t = 2 on.
    expected_keys = set(replace(model, size=2).threshold_keys())
    lines, step_count = list[Line](), 0
    for key, body in read_rows(value, "line", model, expected_keys, ("turns", "steps")):
        start, turns = max(first_t, 2) if key[2] == "mate" else first_t, body["turns"]
        is_short = isinstance(turns, list) and len(turns) <= MOST_TURNS
        require(is_short, f"turns is not a list of at most {MOST_TURNS} entries")
        _require_order([start - 1, *(integer(turn, "a turn", start) for turn in turns)], "turns", start - 1)
        steps = _steps(body["steps"], model, start, MOST_STEPS - step_count)
        lines.append(Line(read_excess(kernel, model, key), turns, steps))
        step_count += len(steps)
    return lines


def _steps(value: object, model: SpikeModel, first_t: int, most: int) -> list[tuple[int, int]]:
    """Parse the steps of a line, which begin at `first_t` and are in order."""
    steps = []
    for entry in entries(value, f"steps, which may have {MOST_STEPS} over all lines,", most=most):
        t, least = entries(entry, "a step", 2)
        steps.append((integer(t, "the t of a step", 1), integer(least, "a least count", 0, model.blocks + 1)))
    _require_order([t for t, _ in steps], "steps", first_t)
    return steps


def _table(value: object, model: SpikeModel, first_t: int) -> dict[int, Triple]:
    """Parse the table."""
    positions, triples = [], []
    for entry in entries(value, "table", most=MOST_BLOCKS // model.blocks):
        t, *texts = entries(entry, "an entry of the table", 4)
        p0, p1, only = (exact(text, "a probability of the table") for text in texts)
        positions.append(integer(t, "the t of an entry of the table", 1))
        triples.append((p0, p1, only))
    _require_order(positions, "table", first_t)
    return dict(zip(positions, triples, strict=True))


def _require_order(positions: list[int], place: str, first_t: int) -> None:
    require(positions[0] == first_t, f"{place} does not begin at the t of from")
    require(all(t < following for t, following in pairwise(positions)), f"{place} is not in order")


def _check_line(proof: Proof, line: Line, report: Report) -> None:
    """Check that E_P / u_ordinary is monotone between turns, and the least counts at the ends of every piece."""

    def at(t: int | None) -> int | None:
        return None if t is None else t * proof.unit

    excess, name = line.excess, describe_threshold(line.excess.key)
    levels, intervals_at, falls = list(excess.levels()), dict(line.intervals()), False
    for first, last, least in line.pieces():
        if first in intervals_at:
            signs = [{sign(level, at(n)) for n in (first, intervals_at[first])} for level in levels]
            is_monotone = False if {1, -1} in signs else None if any(None in pair for pair in signs) else True
            report.note(is_monotone, f"that there is no turn in {name}, after t = {short(first)}")
            falls = bool(signs) and -1 in signs[0]
        # E_P / u_ordinary is lowest at one end and highest at the other: h_1 tells at which.
        lowest, highest = (last, first) if falls else (first, last)
        holds = _is_least(excess, least, at(lowest), at(highest))
        report.note(holds, f"the least count {least} of {name}, from t = {short(first)} on,")


def _is_least(excess: Excess, least: int, lowest: int | None, highest: int | None) -> bool | None:
    """Whether rows fire with `least` + blocks where E_P / u_ordinary is lowest, and not with one less where highest."""
    here = sign(excess.terms(least), lowest) if least <= excess.model.blocks else 1
    below = sign(excess.terms(least - 1), highest) if least > 0 else 0
    return is_least(here, below)


def short(value: int) -> str:
    """Return a positive integer in at most 30 characters."""
    return str(value) if value.bit_length() < 96 else f"a number of {value.bit_length()} bits"


def _check_table(proof: Proof, report: Report) -> list[tuple[int, FiringProbabilities]]:
    """Recompute the probabilities wherever a least count changes; return their values, each with its first n."""
    steps = [dict(line.steps) for line in proof.lines]
    least: dict[ThresholdKey, int] = {}
    values: dict[int, FiringProbabilities] = {}
    before: Triple | None = None
    for t in sorted({t for line in proof.lines for t, _ in line.steps}):
        for line, changes in zip(proof.lines, steps, strict=True):
            if t in changes:
                least[line.excess.key] = changes[t]
        triple = neuron(proof.model, least)
        if triple != before:
            report.note(proof.table.get(t) == triple, f"the table at t = {short(t)}")
            values[t] = probabilities(triple, proof.m)
            before = triple
        if report.failed:
            break
    for t in proof.table:
        if not report.failed and t not in values:
            report.note(False, f"that the table changes at t = {short(t)}")
    return [(t * proof.unit, value) for t, value in values.items()]


def _check_conclusions(
    proof: Proof, values: list[tuple[int, FiringProbabilities]], verdicts: list[str | None], report: Report
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
        report.note(None if None in verdicts else proof.conclusions[name] == value, name)


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
    parameters = document["parameters"]
    place = f"{words(parameters)}, for every n = {proof.unit} t from {short(proof.first_n)} on"
    return (
        *subject(document, place, parameters.get("form")),
        f"{P} has {value_count}, from {least} to {most}; it is {last} for every such n from {last_n} on.",
        f"At delta {document['delta']}: {', then '.join(runs)}, for ever.",
        "Verified for every such n, in exact arithmetic: the least number of + blocks that makes a row fire, for every "
        "row and sign triple; the exact fractions of one neuron; and the verdict.",
        "Not claimed: anything at other parameters, d and m included, or in floating-point arithmetic, and "
        f"{ONLY_THIS_READER}.",
    )
