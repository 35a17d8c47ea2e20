"""Other readers for what the fixed reader does not tell apart: another threshold, a linear reader, none."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from separatrix.analysis.laws.margins import is_literal
from separatrix.core.judgement import Conclusion, ReaderClass
from separatrix.core.numbers import format_exact
from separatrix.exact.engines import EngineRefusal
from separatrix.exact.verdicts import DELTA, Verdict
from separatrix.exact.verdicts.readers import try_other_readers
from separatrix.exact.verdicts.verdict import chance_of
from separatrix.exact.verdicts.words import FAILURES, word_for


class RescuedBy(StrEnum):
    """The readers that tell apart what the fixed reader does not."""

    THRESHOLD = "another threshold"
    LINEAR = "a linear reader"
    NO_READER = "no reader"
    """Proved: D0 and D1 have equal rows."""


@dataclass(frozen=True)
class Rescue:
    """Readers that tell D0 from D1, and the evidence for it."""

    by: RescuedBy
    evidence: str


def find_rescue(verdict: Verdict) -> Rescue | None:
    """Look for a reader that works in a blind, saturated or partial cell.

    Returns None if nothing is known about other readers, or if every token would have to be computed.

    >>> from separatrix.exact.verdicts import verdict
    >>> [find_rescue(verdict(name, "linear")).by.value for name in ("spike", "injectivity")]
    ['a linear reader', 'no reader']
    >>> find_rescue(verdict("spike", "softmax")) is None
    True
    """
    point, mechanism = verdict.construction, verdict.mechanism
    if verdict.word not in (*FAILURES, "partial") or is_literal(point, mechanism):
        return None
    try:
        readers = try_other_readers(verdict)
    except EngineRefusal:
        return None
    conclusions, threshold = readers.conclusions, readers.threshold
    if conclusions[ReaderClass.EVERY] is Conclusion.CANNOT:
        return Rescue(RescuedBy.NO_READER, f"D0 and D1 have equal rows, in {readers.outputs.evidence}")
    if threshold is not None and word_for(threshold.outcome, point.m, DELTA) == "distinguishes":
        evidence = f"with tau = {format_exact(threshold.tau)}, {chance_of(threshold.outcome)}"
        return Rescue(RescuedBy.THRESHOLD, evidence)
    if readers.linear is not None and conclusions[ReaderClass.LINEAR] is Conclusion.CAN:
        return Rescue(RescuedBy.LINEAR, f"without noise; {readers.linear.evidence}")
    return None
