"""Whether another threshold or reader tells apart what the fixed reader does not, or none can."""

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


class By(StrEnum):
    """Who tells apart what the fixed reader does not."""

    THRESHOLD = "another threshold"
    LINEAR = "a linear reader"
    NOBODY = "no reader"
    """Proved: D0 and D1 have equal rows."""


@dataclass(frozen=True)
class Rescue:
    """Who does, and how that is known."""

    by: By
    evidence: str


def rescue(verdict: Verdict) -> Rescue | None:
    """What `readers` knows of a blind, saturated or partial cell; None if nothing, or every token is needed.

    >>> from separatrix.exact.verdicts import verdict
    >>> [rescue(verdict(name, "linear")).by.value for name in ("spike", "injectivity")]
    ['a linear reader', 'no reader']
    >>> rescue(verdict("spike", "softmax")) is None
    True
    """
    point, mechanism = verdict.construction, verdict.mechanism
    if verdict.word not in (*FAILURES, "partial") or is_literal(point, mechanism):
        return None
    try:
        found = try_other_readers(verdict)
    except EngineRefusal:
        return None
    concluded = found.conclusions
    if concluded[ReaderClass.EVERY] is Conclusion.CANNOT:
        return Rescue(By.NOBODY, f"D0 and D1 have equal rows, in {found.outputs.evidence}")
    tuned = found.threshold
    if tuned is not None and word_for(tuned.outcome, point.m, DELTA) == "distinguishes":
        return Rescue(By.THRESHOLD, f"with tau = {format_exact(tuned.tau)}, {chance_of(tuned.outcome)}")
    if found.linear is not None and concluded[ReaderClass.LINEAR] is Conclusion.CAN:
        return Rescue(By.LINEAR, f"without noise; {found.linear.evidence}")
    return None
