"""Verification of boundary certificates: both ends of every crossing, and the side of P there."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from separatrix.checker.certificate import Certificate, is_certificate, read
from separatrix.checker.check import Findings, Report, same_digest, verify
from separatrix.checker.cuts import check_cuts, read_cuts
from separatrix.checker.document import MOST_DIGITS, Malformed, exact, fields, word
from separatrix.checker.probability import FiringProbabilities
from separatrix.checker.question import CertifiedQuestion, read_question
from separatrix.checker.statement import ONLY_THIS_READER, P, meaning, with_rounding_mark, words

FORMAT = "separatrix boundary certificate"
VERSION = 3
FIELDS = (
    *("format", "version", "construction", "mechanism", "parameters"),
    *("parameter", "at", "crossings", "cuts", "sha256"),
)
MOST_CROSSINGS = 1000
MOST_BLOCKS = 2_000_000
"""The maximum number of block signs over all ends, which takes about half a minute to verify."""


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


def is_boundary(document: object) -> bool:
    """Whether a document claims to be a boundary certificate."""
    return isinstance(document, dict) and document.get("format") == FORMAT


def check_boundary(document: object) -> Report:
    """Verify a boundary certificate given as a JSON value.

    Checks without arithmetic come first, and the first failing crossing ends the verification, so that a
    forged certificate costs little.
    """
    try:
        body = fields(_require_version(document), "the certificate", FIELDS)
        question, level = read_question(body), exact(body["at"], "at", MOST_DIGITS)
        if not 0 < level < 1:
            raise Malformed("at does not lie between 0 and 1")
        crossings = _crossings(body["crossings"], question)
        cuts = None if body["cuts"] is None else read_cuts(body["cuts"], question.parameter, crossings[0].lo.document)
        if cuts is not None and not {end.value for crossing in crossings for _, end, _ in crossing.ends} <= {*cuts}:
            raise Malformed("the end of a crossing is not among the cuts")
    except Malformed as fault:
        return Report(0, [str(fault)])
    findings = Findings()
    findings.note(same_digest(body), "sha256")
    sides = []
    for number, crossing in enumerate(crossings, 1):
        for name, end, above in crossing.ends:
            probabilities = verify(end.document, end.certificate, end_findings := Findings())
            side = f"that P is {'above' if above else 'below'} the level"
            # Strict on both sides: P equal to the level lies on neither side of a crossing.
            end_findings.note(_above(probabilities, level) is above or None, side)
            findings.verified += end_findings.verified
            findings.failed += [f"crossing {number}, {name}: {line}" for line in end_findings.failed]
            sides.append(probabilities)
        if findings.failed:
            return Report(findings.verified, findings.failed)
    if cuts is not None:
        passages = [(crossing.lo.value, crossing.hi.value, crossing.rises) for crossing in crossings]
        for holds, subject in check_cuts(crossings[0].lo.certificate, cuts, passages, level):
            findings.note(holds, subject)
            if findings.failed:
                return Report(findings.verified, findings.failed)
    return Report(findings.verified, [], _statement(question, body["at"], crossings, sides, body["cuts"]))


def _require_version(document: object) -> object:
    """Return the document, or raise Malformed for another format or version."""
    if not is_boundary(document):
        raise Malformed(f"format is not {FORMAT}")
    if not isinstance(document, dict) or type(document.get("version")) is not int:
        raise Malformed(f"version is not {VERSION}, the one this checker knows")
    if document["version"] < VERSION:
        raise Malformed(
            "this was made by an older separatrix, whose certificates do not say what is fixed; "
            "make it again with separatrix boundary"
        )
    if document["version"] > VERSION:
        raise Malformed(f"version is not {VERSION}, the one this checker knows; it takes a newer separatrix")
    return document


def _crossings(value: object, question: CertifiedQuestion) -> list[StatedCrossing]:
    """Parse every crossing: in order, disjoint, with alternating directions."""
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_CROSSINGS:
        raise Malformed(f"crossings is not a list of 1 to {MOST_CROSSINGS} entries")
    crossings, blocks = [], 0
    for number, entry in enumerate(value, 1):
        body = fields(entry, f"crossing {number}", ("direction", "lo", "hi"))
        rises = word(body["direction"], f"crossing {number}: direction", ("up", "down")) == "up"
        lo, hi = (_end(body[name], question, f"crossing {number}, {name}: ") for name in ("lo", "hi"))
        if not lo.value < hi.value:
            raise Malformed(f"crossing {number}: lo is not less than hi")
        blocks += lo.certificate.model.blocks + hi.certificate.model.blocks
        if blocks > MOST_BLOCKS:
            raise Malformed(f"all ends together have more than {MOST_BLOCKS} blocks, too many to verify")
        crossings.append(StatedCrossing(rises, lo, hi))
    for number, (previous, crossing) in enumerate(pairwise(crossings), 2):
        if crossing.lo.value < previous.hi.value:
            raise Malformed(f"crossing {number} does not lie beyond the one before it")
        if crossing.rises is previous.rises:
            raise Malformed(f"crossing {number} has the direction of the one before it")
    if len({end.certificate.delta for entry in crossings for end in (entry.lo, entry.hi)}) > 1:
        raise Malformed("the ends do not have the same delta")
    return crossings


def _end(value: object, question: CertifiedQuestion, place: str) -> End:
    """Parse one end, which must equal the certificate's point except for the moving parameter."""
    if not is_certificate(value):
        raise Malformed(f"{place}this is no certificate")
    assert isinstance(value, dict)
    try:
        certificate = read(value)
    except Malformed as fault:
        raise Malformed(f"{place}{fault}") from None
    for name in question.differences(value):
        raise Malformed(f"{place}{name} is not what the certificate states for all ends")
    return End(value, certificate, question.value(value))


def _above(probabilities: FiringProbabilities, level: Fraction) -> bool | None:
    """Whether P is above (True) or below (False) the level; None if it is neither or undecided."""
    low, high = probabilities.distinguish
    return True if low > level else False if high < level else None


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
