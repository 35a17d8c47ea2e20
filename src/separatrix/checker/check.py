"""Every statement of a certificate, verified one by one."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from separatrix.checker.certificate import Certificate, described, read
from separatrix.checker.constructions import ThresholdKey
from separatrix.checker.document import Malformed
from separatrix.checker.kernels import sign
from separatrix.checker.probability import Enclosure, Probabilities, probabilities
from separatrix.checker.statement import verdict_statement

WIDEST = Fraction(1, 10**20)
"""The widest enclosure that still says something."""


@dataclass(frozen=True)
class Report:
    """How many statements were verified, a line for each that was not, and what they come to."""

    verified: int
    failed: list[str]
    statement: tuple[str, ...] = ()
    """What was verified, in sentences; nothing where something failed."""

    @property
    def holds(self) -> bool:
        """Whether every statement was verified."""
        return self.verified > 0 and not self.failed


@dataclass
class Findings:
    """The statements looked at so far."""

    verified: int = 0
    failed: list[str] = field(default_factory=list)

    def note(self, holds: bool | None, statement: str) -> None:
        """Count a statement; None is what could not be decided."""
        if holds:
            self.verified += 1
        else:
            self.failed.append(f"{statement} {'cannot be verified' if holds is None else 'is wrong'}")


def check(document: object) -> Report:
    """Verify a certificate given as the value of its JSON.

    A certificate of the wrong form has that as its only finding: what it states is not clear then.
    """
    try:
        stated = read(document)
    except Malformed as fault:
        return Report(0, [str(fault)])
    assert isinstance(document, dict)
    findings = Findings()
    found = verify(document, stated, findings)
    said = () if findings.failed else verdict_statement(document, found)
    return Report(findings.verified, findings.failed, said)


def verify(document: dict[str, Any], stated: Certificate, findings: Findings) -> Probabilities:
    """Every statement of a certificate that has been read; returns the probabilities it comes to."""
    findings.note(same_digest(document), "sha256")
    findings.note(stated.model.increasing(), "that a pre-activation grows with the number of + blocks")
    _check_weights(stated, findings)
    _check_thresholds(stated, findings)
    return _check_probabilities(stated, findings)


def same_digest(document: dict[str, Any]) -> bool:
    """Whether a document carries the hash of all the rest of it."""
    body = {name: value for name, value in document.items() if name != "sha256"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return bool(hashlib.sha256(text.encode("ascii")).hexdigest() == document["sha256"])


def _check_weights(stated: Certificate, findings: Findings) -> None:
    """The weight lies in its enclosure, and the enclosure is narrow."""
    for (label, row), (low, high) in stated.spike_weights.items():
        what = f"the enclosure of the spike's weight in D{label}, row {row},"
        above = sign(stated.kernel, stated.model.weight_excess(label, row, low))
        below = above if low == high else sign(stated.kernel, stated.model.weight_excess(label, row, high))
        if high - low > WIDEST:
            findings.note(False, f"{what} being wider than 1e-20,")
        elif above is None or below is None:
            findings.note(None, what)
        else:
            findings.note(above >= 0 >= below, what)


def _check_thresholds(stated: Certificate, findings: Findings) -> None:
    """The row fires at the least count and not at the one below it; v grows, so that settles all."""

    def fires(key: ThresholdKey, plus: int) -> bool | None:
        found = sign(stated.kernel, stated.model.excess(key, plus))
        return None if found is None else found > 0

    for key, least in stated.thresholds.items():
        here = True if least > stated.model.blocks else fires(key, least)
        below = False if least == 0 else fires(key, least - 1)
        wrong = here is False or below is True
        decided = here is not None and below is not None
        holds = False if wrong else True if decided else None
        findings.note(holds, f"the least count {least} of {described(key)}")


def _check_probabilities(stated: Certificate, findings: Findings) -> Probabilities:
    """The fractions follow from the thresholds, the floats from the fractions, the word from those."""
    found = probabilities(stated.model, stated.thresholds, stated.m)
    for name, value in stated.neuron.items():
        findings.note(value == getattr(found, name), f"neuron {name}")
    for name, rounded in stated.network.items():
        findings.note(_is_rounded(rounded, getattr(found, name)), f"network {name}")
    verdict = _verdict(found.distinguish, found.fire_d1, stated.delta)
    findings.note(None if verdict is None else verdict == stated.verdict, f"the verdict {stated.verdict}")
    return found


def _is_rounded(value: float, enclosure: Enclosure) -> bool | None:
    """Whether it is the float nearest to what is enclosed; None where that may be one of several."""
    low, high = map(float, enclosure)
    return value == low if low == high else None


def _verdict(distinguish: Enclosure, fire_d1: Enclosure, delta: Fraction) -> str | None:
    low, high = distinguish
    if low >= 1 - delta:
        return "distinguishes"
    if high <= delta:
        # P(fires on both) = P(fires on D1) - P(fires on D1 and not on D0)
        if fire_d1[0] - high >= Fraction(1, 2):
            return "saturated"
        return "blind" if fire_d1[1] - low < Fraction(1, 2) else None
    return "partial" if low > delta and high < 1 - delta else None
