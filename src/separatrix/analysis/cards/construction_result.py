"""The result of a mechanism on a construction: the verdict, the growth of the margin, where it is blind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Literal, Self

from separatrix.analysis.cards.blindness import Blindness, find_blindness
from separatrix.analysis.cards.outcomes import ShortVerdict, describe_missing_result, solve_until_decided
from separatrix.analysis.laws import Law, scaling
from separatrix.analysis.laws.margins import is_literal
from separatrix.constructions import CONSTRUCTIONS, Construction
from separatrix.core.documents import Document, Hidden, Inlined, shown
from separatrix.core.errors import EngineRefusal, SeparatrixError
from separatrix.core.judgement import Conclusion, ReaderClass
from separatrix.core.numbers import format_exact
from separatrix.exact.engines import Outcome
from separatrix.exact.verdicts import DELTA, Verdict
from separatrix.exact.verdicts.readers import try_other_readers
from separatrix.exact.verdicts.verdict import chance_of
from separatrix.exact.verdicts.words import FAILURES, Word, word_for
from separatrix.mechanisms import Mechanism

EvidenceWord = Literal["certified", "closed", "sampled"]
EVIDENCE_KINDS: dict[str, EvidenceWord] = {"certified": "certified", "closed": "closed"}
"""The kind of evidence by engine; every other engine samples."""
GROUPED_LENGTHS, LITERAL_LENGTHS = "1e3:1e12:10:log", "200:1600:4:log"
"""The lengths at which the growth of the margin is measured: with token groups, and with literal tokens."""


def evidence_kind(outcome: Outcome) -> EvidenceWord:
    """Return the kind of evidence behind an outcome."""
    return EVIDENCE_KINDS.get(outcome.engine, "sampled")


@dataclass(frozen=True)
class MarginGrowth(Document):
    """The growth of the margin as n grows and everything else stays the same.

    `separatrix scaling CONSTRUCTION MECHANISM n=1e3:1e12:10:log … --of margin` finds the same.
    """

    law: Hidden[Law | None]
    margin_lengths: tuple[int, ...] = ()
    """The lengths that were used."""
    refusal: Hidden[str] = ""
    """The reason why there is no law."""

    @shown
    def margin_exponent(self) -> float | None:
        """The power of n with which the margin grows."""
        return None if self.law is None else self.law.exponent

    @shown
    def margin_exponent_interval(self) -> tuple[float, float] | None:
        """The interval of the exponent."""
        return None if self.law is None else self.law.interval

    @shown
    def margin_is_power(self) -> bool | None:
        """Whether it is a power law; None where that cannot be told."""
        return None if self.law is None else self.law.power_law

    @shown
    def margin_law(self) -> str:
        """The name of the law, or the reason why there is none."""
        return self.refusal if self.law is None else self.law.name


@dataclass(frozen=True)
class PointVerdict(ShortVerdict):
    """A verdict at the reference point of a construction, in short."""

    construction: str
    parameters: Mapping[str, int | str]
    margin: float
    bits: float
    kind: EvidenceWord
    """The kind of evidence."""


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


@dataclass(frozen=True)
class ConstructionResult(Document):
    """The result of a mechanism at the reference point of a construction."""

    name: Hidden[str]
    """The construction with its variant, as tables show it: `spike, identity`."""
    verdict: Hidden[Verdict]
    point: Inlined[PointVerdict]
    growth: Inlined[MarginGrowth]
    blindness: Inlined[Blindness]
    rescue: Hidden[Rescue | None] = None
    """The reader that tells apart what the fixed reader does not; None if that was not asked for."""

    @property
    def word(self) -> Word:
        """The verdict in one word."""
        return self.verdict.word


@dataclass(frozen=True)
class NoConstructionResult(Document):
    """A construction for which there is no answer about the mechanism."""

    name: Hidden[str]
    evidence: str
    """The reason."""
    is_broken: Hidden[bool]
    """Whether the mechanism itself failed; otherwise an engine refused."""
    verdict: Literal["none"] = "none"
    word: ClassVar[Literal["none"]] = "none"


AnyResult = ConstructionResult | NoConstructionResult


def reference_points() -> dict[str, Construction]:
    """Return the reference point of every variant of every construction, by the name that tables show."""
    return {
        ", ".join([kind.name, *map(str, changes.values())]): kind.read({**kind.example, **changes})
        for kind in CONSTRUCTIONS.values()
        for changes in kind.variants
    }


def compute_result(name: str, point: Construction, mechanism: Mechanism) -> AnyResult:
    """Compute the result at one point with the strongest engine that applies."""
    try:
        verdict = verdict_at(point, mechanism)
        growth, blindness = measure_margin_growth(point, mechanism), find_blindness(verdict)
    except Exception as error:  # a user's mechanism may raise anything
        return NoConstructionResult(name, describe_missing_result(error), not isinstance(error, SeparatrixError))
    outcome = verdict.outcome
    place, numbers = (point.name, verdict.parameters), (outcome.margin, outcome.bits)
    summary = PointVerdict.of(outcome, point.m, *place, *numbers, evidence_kind(outcome))
    return ConstructionResult(name, verdict, summary, growth, blindness)


def verdict_at(point: Construction, mechanism: Mechanism) -> Verdict:
    """Return the verdict at one point, by the strongest engine that applies."""
    return Verdict(point, mechanism, solve_until_decided(point, mechanism, (DELTA, 1 - DELTA)), DELTA)


def measure_margin_growth(point: Construction, mechanism: Mechanism) -> MarginGrowth:
    """Fit the growth of the margin on the lengths that every card uses.

    >>> from separatrix.constructions.spike import Spike
    >>> from separatrix.mechanisms import Linear
    >>> measure_margin_growth(Spike.read(Spike.example), Linear()).law.exponent_text
    '-1.0000 ± 4×10⁻⁹'
    """
    lengths = LITERAL_LENGTHS if is_literal(point, mechanism) else GROUPED_LENGTHS
    try:
        result = scaling(point.name, mechanism, {**point.parameters.as_json(), "n": lengths})
    except SeparatrixError as refusal:
        return MarginGrowth(None, refusal=str(refusal))
    return MarginGrowth(result.law, tuple(value.n for value in result.values if value.n is not None))


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
        return Rescue(RescuedBy.THRESHOLD, f"with tau = {format_exact(threshold.tau)}, {chance_of(threshold.outcome)}")
    if readers.linear is not None and conclusions[ReaderClass.LINEAR] is Conclusion.CAN:
        return Rescue(RescuedBy.LINEAR, f"without noise; {readers.linear.evidence}")
    return None


@dataclass(frozen=True)
class AtlasVerdict(Document):
    """The verdict in one cell of the atlas, at the reference point alone; null where there is no answer."""

    family: str
    mechanism: str
    construction: str
    """With its variant, as tables show it: `spike, identity`."""
    verdict: Word | Literal["none"]
    distinguish: float | None = None
    low: float | None = None
    high: float | None = None
    kind: EvidenceWord | None = None
    engine: str | None = None
    evidence: str = ""
    margin: float | None = None
    bits: float | None = None
    """The significant bits needed to tell the labels apart."""

    @classmethod
    def from_verdict(cls, name: str, verdict: Verdict, **values: Any) -> Self:
        """Describe a verdict on the construction that tables call `name`."""
        mechanism, outcome = verdict.mechanism, verdict.outcome
        return cls(
            *(mechanism.family, mechanism.spelled, name, verdict.word, outcome.distinguish),
            *(*outcome.interval, evidence_kind(outcome), outcome.engine, outcome.evidence),
            *(outcome.margin, outcome.bits),
            **values,
        )


@dataclass(frozen=True)
class AtlasCell(AtlasVerdict):
    """One mechanism on one construction, a row of the atlas as a table; null where there is no answer."""

    margin_exponent: float | None = None
    blind_from_n: int | None = None
    blind_searched_to: int | None = None
    rescued_by: RescuedBy | None = None

    @classmethod
    def from_result(cls, mechanism: Mechanism, result: AnyResult) -> AtlasCell:
        """Return the row for a result."""
        if isinstance(result, NoConstructionResult):
            return cls(*(mechanism.family, mechanism.spelled, result.name), result.word, evidence=result.evidence)
        return cls.from_verdict(
            result.name,
            result.verdict,
            margin_exponent=result.growth.margin_exponent,
            blind_from_n=result.blindness.blind_from_n,
            blind_searched_to=result.blindness.blind_searched_to,
            rescued_by=None if result.rescue is None else result.rescue.by,
        )
