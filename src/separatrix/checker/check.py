"""Verification of every statement of a certificate."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from separatrix.checker.certificate import NO_LEMMA, Certificate, describe_threshold, read
from separatrix.checker.constructions import SpikeModel
from separatrix.checker.document import Malformed
from separatrix.checker.kernels import sign
from separatrix.checker.probability import Enclosure, FiringProbabilities, neuron, probabilities
from separatrix.checker.statement import verdict_statement
from separatrix.checker.tokens import TokenModel

WIDEST = Fraction(1, 10**20)
"""The widest enclosure that is accepted."""


@dataclass
class Report:
    """The number of verified statements, the failures, and the resulting statement."""

    verified: int = 0
    failed: list[str] = field(default_factory=list)
    statement: tuple[str, ...] = ()
    """Sentences that state what was verified; empty if anything failed."""

    @property
    def holds(self) -> bool:
        """Whether every statement was verified."""
        return self.verified > 0 and not self.failed

    def note(self, holds: bool | None, statement: str) -> None:
        """Count a statement; None means that it could not be decided."""
        if holds:
            self.verified += 1
        else:
            self.failed.append(f"{statement} {'cannot be verified' if holds is None else 'is wrong'}")


def check(document: Any) -> Report:
    """Verify a certificate given as a JSON value.

    For a malformed certificate this is the only finding, since its statements are not clear.
    """
    try:
        certificate = read(document)
    except Malformed as fault:
        return Report(0, [str(fault)])
    report = Report()
    computed = verify(document, certificate, report)
    report.statement = () if report.failed else verdict_statement(document, computed)
    return report


def verify(document: dict[str, Any], certificate: Certificate, report: Report) -> FiringProbabilities:
    """Verify every statement of a parsed certificate; return the probabilities that follow."""
    report.note(same_digest(document), "sha256")
    model = certificate.model
    if isinstance(model, TokenModel):
        triple = model.neuron(certificate.kernel)
        report.note(None if triple is None else True, "which sign vectors fire")
    else:
        report.note(model.increasing(), "that a pre-activation grows with the number of + blocks")
        _check_weights(certificate, model, report)
        _check_thresholds(certificate, model, report)
        triple = neuron(model, certificate.thresholds)
    computed = probabilities(triple or (Fraction(0), Fraction(0), Fraction(0)), certificate.m)
    if certificate.lemma != NO_LEMMA:
        has_equal_rows = model.has_equal_rows(certificate.lemma, certificate.kernel)
        report.note(has_equal_rows, f"that D0 and D1 have equal rows by {certificate.lemma}")
    _check_probabilities(certificate, computed, report)
    return computed


def same_digest(document: dict[str, Any]) -> bool:
    """Whether a document contains the hash of its other fields."""
    body = {name: value for name, value in document.items() if name != "sha256"}
    # One text for equal values, whatever the order and spacing of the file.
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return bool(hashlib.sha256(text.encode("ascii")).hexdigest() == document["sha256"])


def _check_weights(certificate: Certificate, model: SpikeModel, report: Report) -> None:
    """Check that every weight lies in its enclosure, and that the enclosure is narrow."""
    for (label, row), (low, high) in certificate.spike_weights.items():
        subject = f"the enclosure of the spike's weight in D{label}, row {row},"
        above = sign(certificate.kernel, model.weight_excess(label, row, low))
        below = above if low == high else sign(certificate.kernel, model.weight_excess(label, row, high))
        if high - low > WIDEST:
            report.note(False, f"{subject} being wider than 1e-20,")
        # f - low >= 0 >= f - high; ends are allowed, since a rational weight is given as both ends.
        elif above is None or below is None:
            report.note(None, subject)
        else:
            report.note(above >= 0 >= below, subject)


def _check_thresholds(certificate: Certificate, model: SpikeModel, report: Report) -> None:
    """Check that rows fire at the least count and not below it; monotonicity covers all other counts."""
    for key, least in certificate.thresholds.items():
        here = sign(certificate.kernel, model.excess(key, least)) if least <= model.blocks else 1
        below = sign(certificate.kernel, model.excess(key, least - 1)) if least > 0 else 0
        report.note(is_least(here, below), f"the least count {least} of {describe_threshold(key)}")


def is_least(here: int | None, below: int | None) -> bool | None:
    """Whether rows fire at a count and not below it, from the signs of (pre-activation - tau) there and at one less."""
    # One wrong side refutes a statement, even if the other is undecided.
    if here in (0, -1) or below == 1:
        return False
    return None if here is None or below is None else True


def _check_probabilities(certificate: Certificate, computed: FiringProbabilities, report: Report) -> None:
    """Check the stated fractions, floats and verdict against the computed probabilities."""
    for name, value in certificate.neuron.items():
        report.note(value == getattr(computed, name), f"neuron {name}")
    for name, number in certificate.network.items():
        report.note(_is_rounded(number, getattr(computed, name)), f"network {name}")
    verdict = derive_verdict(computed.distinguish, computed.fire_d1, certificate.delta)
    report.note(None if verdict is None else verdict == certificate.verdict, f"the verdict {certificate.verdict}")


def _is_rounded(value: float, enclosure: Enclosure) -> bool | None:
    """Whether the value is the float nearest to the enclosed number; None if that is ambiguous."""
    # float() rounds fractions correctly, so it is monotone: if both ends give one float, so does the number.
    low, high = map(float, enclosure)
    return value == low if low == high else None


def derive_verdict(distinguish: Enclosure, fire_d1: Enclosure, delta: Fraction) -> str | None:
    """Return the verdict that follows from enclosures, or None if they do not decide it."""
    # Each word has to hold at the end of the enclosure that is worst for it.
    low, high = distinguish
    if low >= 1 - delta:
        return "distinguishes"
    if high <= delta:
        # P(fires on both) = P(fires on D1) - P(fires on D1 and not on D0)
        if fire_d1[0] - high >= Fraction(1, 2):
            return "saturated"
        return "blind" if fire_d1[1] - low < Fraction(1, 2) else None
    return "partial" if low > delta and high < 1 - delta else None
