"""Verification of boundary certificates: the side of P at both ends of every crossing, and that there is no other one.

The latter is verified between any two neighbouring cuts u < v, values of a = a1. A row of D1 fires with P of the other
blocks + if and only if P > ((mu - sigma rho)/t - w)/(2b), with mu = b y_k + c y_d - tau, sigma = a y_1 + mu, w = mu +
(d-3)(c y_d - tau - b), and rho the quotient of the scores of the spike and of an ordinary token. Only sigma and rho
depend on a; sigma is affine, and rho is positive and increases. Furthermore,

    y_1 (sigma rho)' / rho = 1 + y_1 sigma g,    g = (log rho)' > 0,

where y_1 sigma = a + y_1 mu increases and g is monotone. If this is positive on [u, v], or negative, then sigma rho is
monotone and lies between its values at the ends. Otherwise, it lies between the products of their sigma and rho. These
bounds give bounds of every row's least firing count, and those give bounds of P, which falls if a count rises. A count
that exceeds that of D0 or of another row does not matter. P is monotone if all others move one way.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import floor
from typing import Any

from separatrix.checker.arithmetic import ends, intervals
from separatrix.checker.certificate import Certificate, is_certificate, read, read_model
from separatrix.checker.check import Report, same_digest, verify
from separatrix.checker.constructions import TRIPLES, SpikeModel, ThresholdKey
from separatrix.checker.document import Malformed, between, entries, fields, header, require, word
from separatrix.checker.kernels import Kernel, PowerKernel, SoftmaxKernel
from separatrix.checker.probability import Enclosure, FiringProbabilities, network, neuron
from separatrix.checker.question import CertifiedQuestion, read_question
from separatrix.checker.statement import ONLY_THIS_READER, P, meaning, with_rounding_mark, words

FORMAT = "separatrix boundary certificate"
VERSION = 3
FIELDS = ("parameters", "parameter", "at", "crossings", "cuts")
MOST_CROSSINGS = 1000
MOST_BLOCKS = 2_000_000
"""The maximum number of block signs over all ends, which takes about half a minute to verify."""


BITS = 256
Counts = dict[ThresholdKey, int]


@dataclass(frozen=True)
class End:
    """One end of a crossing: its certificate as written and as parsed."""

    document: dict[str, Any]
    certificate: Certificate
    value: Fraction
    """The value of the moving parameter."""


@dataclass(frozen=True)
class StatedCrossing:
    """A stated crossing."""

    rises: bool
    lo: End
    hi: End

    @property
    def ends(self) -> tuple[tuple[str, End, bool], ...]:
        """Both ends by name, and whether P must be above the level there."""
        return ("lo", self.lo, not self.rises), ("hi", self.hi, self.rises)


def check_boundary(document: object) -> Report:
    """Verify a boundary certificate given as a JSON value.

    Checks without arithmetic come first, and the first failing crossing ends the verification, so that a
    forged certificate costs little.
    """
    try:
        body = header(document, FORMAT, VERSION, FIELDS)
        question, level = read_question(body), between(body["at"], "at", 1)
        crossings = _crossings(body["crossings"], question)
        cuts = _cuts(body["cuts"], question, crossings)
    except Malformed as fault:
        return Report(0, [str(fault)])
    report, sides = Report(), []
    report.note(same_digest(body), "sha256")
    for number, crossing in enumerate(crossings, 1):
        for name, end, above in crossing.ends:
            probabilities = verify(end.document, end.certificate, end_report := Report())
            low, high = probabilities.distinguish
            side = f"that P is {'above' if above else 'below'} the level"
            # Strict on both sides: P equal to the level lies on neither side of a crossing.
            end_report.note((low > level if above else high < level) or None, side)
            report.verified += end_report.verified
            report.failed += [f"crossing {number}, {name}: {line}" for line in end_report.failed]
            sides.append(probabilities)
        if report.failed:
            return report
    for number, (first, last) in enumerate(pairwise(cuts), 1):
        if not report.failed:
            holds = _passes_as_stated(first, last, crossings, level)
            report.note(holds, f"that P passes the level as stated and not otherwise after cut {number}")
    report.statement = () if report.failed else _statement(question, body["at"], crossings, sides, body["cuts"])
    return report


def _crossings(value: object, question: CertifiedQuestion) -> list[StatedCrossing]:
    """Parse every crossing: in order, disjoint, with alternating directions."""
    crossings, blocks = list[StatedCrossing](), 0
    for number, entry in enumerate(entries(value, "crossings", most=MOST_CROSSINGS), 1):
        body = fields(entry, f"crossing {number}", ("direction", "lo", "hi"))
        rises = word(body["direction"], f"crossing {number}: direction", ("up", "down")) == "up"
        lo, hi = (_end(body[name], question, f"crossing {number}, {name}: ") for name in ("lo", "hi"))
        require(lo.value < hi.value, f"crossing {number}: lo is not less than hi")
        blocks += lo.certificate.model.blocks + hi.certificate.model.blocks
        require(blocks <= MOST_BLOCKS, f"all ends together have more than {MOST_BLOCKS} blocks, too many to verify")
        crossings.append(StatedCrossing(rises, lo, hi))
    for number, (previous, crossing) in enumerate(pairwise(crossings), 2):
        is_beyond = crossing.lo.value >= previous.hi.value
        require(is_beyond, f"crossing {number} does not lie beyond the one before it")
        alternates = crossing.rises is not previous.rises
        require(alternates, f"crossing {number} has the direction of the one before it")
    deltas = {end.certificate.delta for crossing in crossings for _, end, _ in crossing.ends}
    require(len(deltas) == 1, "the ends do not have the same delta")
    return crossings


def _end(value: object, question: CertifiedQuestion, place: str) -> End:
    """Parse one end, which must equal the certificate's point except for the moving parameter."""
    if not is_certificate(value):
        raise Malformed(f"{place}this is no certificate")
    try:
        certificate = read(value)
    except Malformed as fault:
        raise Malformed(f"{place}{fault}") from None
    question.require_same(value, place)
    return End(value, certificate, question.value(value))


def _cuts(value: Any, question: CertifiedQuestion, crossings: list[StatedCrossing]) -> list[SpikeModel]:
    """Parse the cuts, values of a1 in order, as the construction at each of them."""
    if value is None:
        return []
    first, model = crossings[0].lo, crossings[0].lo.certificate.model
    # `_growth` is for logits that grow with a1: those of X = 11ᵀ, and not of location.
    is_known = question.construction in ("spike", "cross") and question.parameter == "a1" and isinstance(value, list)
    is_known &= isinstance(first.certificate.kernel, SoftmaxKernel | PowerKernel)
    is_known &= isinstance(model, SpikeModel) and "mate" not in model.rows[1]
    require(is_known, "cuts are not a list of values of a1, for softmax, linear or power and form ones")
    require(len(value) * model.blocks <= MOST_BLOCKS, f"cuts have more than {MOST_BLOCKS} blocks, too many to verify")
    parameters = first.document["parameters"]
    parsed = (read_model(question.construction, {**parameters, "a1": text})[0] for text in value)
    models = [model for model in parsed if isinstance(model, SpikeModel)]  # every one, as the ends are
    values = [model.a[1] for model in models]
    ends_too = {*values, *(end.value for crossing in crossings for _, end, _ in crossing.ends)}
    require(values == sorted(ends_too), "cuts are not in order, or lack the end of a crossing")
    return models


def _passes_as_stated(
    low: SpikeModel, high: SpikeModel, crossings: list[StatedCrossing], level: Fraction
) -> bool | None:
    """Whether P is monotone between two cuts of one crossing, or else stays on one side of the level; None if open."""
    certificate, is_above = crossings[0].lo.certificate, not crossings[0].rises
    least, most, directions = _counts(certificate, low, high)
    for crossing in crossings:
        if crossing.lo.value <= low.a[1] and high.a[1] <= crossing.hi.value:
            return directions <= {1 if crossing.rises else -1} or None
        is_above = crossing.rises if crossing.hi.value <= low.a[1] else is_above
    chances = network(*neuron(high, most if is_above else least), certificate.m)[2]
    return (chances[0] >= level if is_above else chances[1] <= level) or None


def _counts(certificate: Certificate, low: SpikeModel, high: SpikeModel) -> tuple[Counts, Counts, set[int]]:
    """Return bounds of all least firing counts between two cuts, and the directions in which they may move P."""
    least, most = ({key: k for key, k in certificate.thresholds.items() if key[0] == 0} for _ in range(2))
    growth = {name: [_growth(certificate.kernel, at, name) for at in (low, high)] for name in low.rows[1]}
    directions = set()
    for signs in TRIPLES:
        y_1, y_block, y_d = signs
        common = low.c * y_d - low.tau
        mu, moves = low.b * y_block + common, {}
        for name, ((rho_u, slope_u), (rho_v, slope_v)) in growth.items():
            u, v = (at.a[1] * y_1 + mu for at in (low, high))
            slopes = *slope_u, *slope_v
            direction = y_1 if 1 + y_1 * u * max(slopes) > 0 else -y_1 if 1 + y_1 * v * min(slopes) < 0 else 0
            pairs = [(u, rho_u), (v, rho_v), *([] if direction else [(u, rho_v), (v, rho_u)])]
            shares = [(mu - sigma * end) / low.size - mu for sigma, rho in pairs for end in rho]
            limits = [(share - low.blocks * (common - low.b)) / (2 * low.b) for share in shares]
            key = 1, signs, name, 0
            least[key], most[key] = (max(floor(limit) + 1, 0) for limit in (min(limits), max(limits)))
            moves[key] = direction
        decisive = min(k for key, k in most.items() if key[1] == signs)
        directions |= {direction for key, direction in moves.items() if least[key] < decisive}
    return least, most, directions


def _growth(kernel: Kernel, model: SpikeModel, name: str) -> tuple[Enclosure, Enclosure]:
    """Return rho and the derivative of its logarithm by a1."""
    row, a, r, at = model.rows[1][name], model.a[1], model.b + model.c, intervals(BITS)
    known = kernel.ratio(row.spike, row.ordinary)
    rho = (known, known) if known else ends(kernel.score(row.spike, at) / kernel.score(row.ordinary, at))
    if isinstance(kernel, SoftmaxKernel):
        # The logits are the query's row sum, which contains a in the spike's row, times a + r and r, in units of log n.
        growth = (row.ordinary.times / r + (a if name == "spike" else 0)) / kernel.temperature
        return rho, ends(at.rational(growth) * at.log(at.rational(row.spike.of)))
    assert isinstance(kernel, PowerKernel)
    return rho, (kernel.beta / (a + r),) * 2


def _statement(
    question: CertifiedQuestion,
    at: str,
    crossings: list[StatedCrossing],
    probabilities: list[FiringProbabilities],
    cuts: Any,
) -> tuple[str, ...]:
    """Return the verified statement in sentences."""
    ends = [end.document for crossing in crossings for end in (crossing.lo, crossing.hi)]
    sentences = []
    for i, crossing in enumerate(crossings):
        lo, hi = (words(question.following(end.document)) for end in (crossing.lo, crossing.hi))
        p_lo, p_hi = (with_rounding_mark(p.distinguish, ", rounded") for p in probabilities[2 * i : 2 * i + 2])
        below, above = ("below", "above") if crossing.rises else ("above", "below")
        verb = "rises" if crossing.rises else "falls"
        sentences.append(
            f"{P} is {below} {at} at {lo} ({p_lo}) and {above} {at} at {hi} ({p_hi}): "
            f"it {verb} through {at} somewhere between the two{', exactly once' if cuts else ''}."
        )
    unclaimed = f"that it does so only once there; that it does not pass {at} elsewhere, before, after or between;"
    if cuts:
        sentences.append(f"From a1={cuts[0]} to a1={cuts[-1]}, {P} does not pass {at} anywhere else.")
        unclaimed = "anything beyond this range;"
    return (
        *question.describe(ends),
        meaning(question.construction, ends[0]["parameters"].get("form")),
        *sentences,
        f"Not claimed: where between two such values P passes {at}; {unclaimed} "
        f"anything at other parameters, and {ONLY_THIS_READER}.",
    )
