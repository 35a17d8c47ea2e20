"""A certificate of a boundary, verified: both ends of every crossing, and on which side P lies there."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from separatrix.checker.certificate import Certificate, is_certificate, read
from separatrix.checker.check import Findings, Report, same_digest, verify
from separatrix.checker.document import MOST_DIGITS, Malformed, exact, fields, word
from separatrix.checker.probability import Probabilities
from separatrix.checker.question import Question, read_question
from separatrix.checker.statement import ONLY_THIS_READER, P, marked, meaning, words

FORMAT = "separatrix boundary certificate"
VERSION = 2
FIELDS = (
    *("format", "version", "construction", "mechanism", "parameters"),
    *("parameter", "at", "crossings", "sha256"),
)
MOST_CROSSINGS = 1000
MOST_BLOCKS = 2_000_000
"""The most block signs of all ends together: what is verified in half a minute or so."""


@dataclass(frozen=True)
class End:
    """One end of a crossing: its certificate, as it is written and as it was read."""

    document: dict[str, Any]
    stated: Certificate
    value: Fraction
    """The value of the moving parameter."""


@dataclass(frozen=True)
class Crossing:
    """What is said of one crossing."""

    rises: bool
    lo: End
    hi: End

    @property
    def ends(self) -> tuple[tuple[str, End, bool], ...]:
        """Both ends by name, and whether P has to be above the level there."""
        return ("lo", self.lo, not self.rises), ("hi", self.hi, self.rises)


def is_boundary(document: object) -> bool:
    """Whether a document says that it is a certificate of a boundary."""
    return isinstance(document, dict) and document.get("format") == FORMAT


def check_boundary(document: object) -> Report:
    """Verify a certificate of a boundary given as the value of its JSON.

    What does not need arithmetic comes first, and the first crossing that fails ends it: a forged
    certificate costs little.
    """
    try:
        body = fields(_known(document), "the certificate", FIELDS)
        asked, level = read_question(body), exact(body["at"], "at", MOST_DIGITS)
        if not 0 < level < 1:
            raise Malformed("at does not lie between 0 and 1")
        crossings = _crossings(body["crossings"], asked)
    except Malformed as fault:
        return Report(0, [str(fault)])
    findings = Findings()
    findings.note(same_digest(body), "sha256")
    sides = []
    for number, crossing in enumerate(crossings, 1):
        for name, end, above in crossing.ends:
            found = verify(end.document, end.stated, own := Findings())
            side = f"that P is {'above' if above else 'below'} the level"
            own.note(_above(found, level) is above or None, side)
            findings.verified += own.verified
            findings.failed += [f"crossing {number}, {name}: {line}" for line in own.failed]
            sides.append(found)
        if findings.failed:
            return Report(findings.verified, findings.failed)
    return Report(findings.verified, [], _statement(asked, body["at"], crossings, sides))


def _known(document: object) -> object:
    """The document, unless it is of another format or version."""
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


def _crossings(value: object, asked: Question) -> list[Crossing]:
    """Every crossing with its ends read: in order, apart from each other, up and down in turn."""
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_CROSSINGS:
        raise Malformed(f"crossings is not a list of 1 to {MOST_CROSSINGS} entries")
    found, blocks = [], 0
    for number, each in enumerate(value, 1):
        stated = fields(each, f"crossing {number}", ("direction", "lo", "hi"))
        rises = word(stated["direction"], f"crossing {number}: direction", ("up", "down")) == "up"
        lo, hi = (_end(stated[name], asked, f"crossing {number}, {name}: ") for name in ("lo", "hi"))
        if not lo.value < hi.value:
            raise Malformed(f"crossing {number}: lo is not less than hi")
        blocks += lo.stated.model.blocks + hi.stated.model.blocks
        if blocks > MOST_BLOCKS:
            raise Malformed(f"all ends together have more than {MOST_BLOCKS} blocks, too many to verify")
        found.append(Crossing(rises, lo, hi))
    for number, (one, other) in enumerate(pairwise(found), 2):
        if other.lo.value < one.hi.value:
            raise Malformed(f"crossing {number} does not lie beyond the one before it")
        if other.rises is one.rises:
            raise Malformed(f"crossing {number} has the direction of the one before it")
    if len({end.stated.delta for each in found for end in (each.lo, each.hi)}) > 1:
        raise Malformed("the ends do not have the same delta")
    return found


def _end(value: object, asked: Question, where: str) -> End:
    """One end, which is the point that the certificate speaks of but for the moving parameter."""
    if not is_certificate(value):
        raise Malformed(f"{where}this is no certificate")
    assert isinstance(value, dict)
    try:
        stated = read(value)
    except Malformed as fault:
        raise Malformed(f"{where}{fault}") from None
    for name in asked.differences(value):
        raise Malformed(f"{where}{name} is not what the certificate states for all ends")
    return End(value, stated, asked.value(value))


def _above(found: Probabilities, level: Fraction) -> bool | None:
    """Whether P is above the level or below it; None where it is neither or the enclosure leaves it open."""
    low, high = found.distinguish
    return True if low > level else False if high < level else None


def _statement(
    asked: Question, at: str, crossings: list[Crossing], found: list[Probabilities]
) -> tuple[str, ...]:
    """What is verified, in sentences."""
    ends = [end.document for crossing in crossings for end in (crossing.lo, crossing.hi)]
    said = []
    for i, each in enumerate(crossings):
        lo, hi = (words(asked.following(end.document)) for end in (each.lo, each.hi))
        p_lo, p_hi = (marked(p.distinguish, ", rounded") for p in found[2 * i : 2 * i + 2])
        below, above = ("below", "above") if each.rises else ("above", "below")
        verb = "rises" if each.rises else "falls"
        said.append(
            f"{P} is {below} {at} at {lo} ({p_lo}) and {above} {at} at {hi} ({p_hi}): "
            f"it {verb} through {at} somewhere between the two."
        )
    return (
        *asked.described(ends),
        meaning(asked.construction, ends[0]["parameters"].get("form")),
        *said,
        f"Not claimed: where between two such values P passes {at}, or that it does so only once there; "
        f"that it does not pass {at} elsewhere, before, after or between; anything at other parameters, and "
        f"{ONLY_THIS_READER}.",
    )
