"""What better readers could do: the fixed reader, a tuned threshold, a linear reader, every reader."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import groupby
from typing import Any, ClassVar, Literal

from separatrix.constructions import Construction, construction_named
from separatrix.core.documents import Document, Hidden, shown, shown_as
from separatrix.core.judgement import REPORT_BUG, Conclusion, ReaderClass, conclude_readers
from separatrix.core.parameters import all_parameters
from separatrix.core.result import Result, Row
from separatrix.exact.engines import EngineRefusal, Sampling
from separatrix.exact.outputs._base import Feature, Outputs
from separatrix.exact.outputs.floats import by_definition
from separatrix.exact.outputs.strongest import strongest_outputs
from separatrix.exact.verdicts.best_reader import BestReader, best_reader
from separatrix.exact.verdicts.best_threshold import TunedThreshold, best_threshold
from separatrix.exact.verdicts.linear_reader import Witness, best_witness
from separatrix.exact.verdicts.rounded_outputs import StoredOutputs, store_outputs
from separatrix.exact.verdicts.verdict import DELTA, OPTIONS, Verdict, chance_of, parse_request
from separatrix.exact.verdicts.words import Word as VerdictWord
from separatrix.mechanisms import Mechanism

THIS_READER = "the fixed reader (random signs, this m and tau)"
EVERY_READER = "every reader of what attention returns"
LINEAR_READERS = "linear readers of one row"


class Word(StrEnum):
    """The conclusion for a class of readers."""

    CANNOT = "cannot"
    """Proved for every reader of the class."""
    CAN = "can"
    """A reader of the class does, and is given."""
    NOT_WITH_THIS_READER = "not with this reader"
    """The fixed reader does not; nothing is claimed about others."""
    OPEN = "open"
    """Unknown."""
    CONTRADICTION = "contradiction"
    """A bug of this program: a reader tells apart labels that are proved to be equal."""


@dataclass(frozen=True)
class Statement(Document):
    """A word, the class of readers it is about, and the evidence."""

    word: Word
    readers: str
    evidence: str


@dataclass(frozen=True)
class Weight(Document):
    """One weight of a linear reader, of the features that share it."""

    features: str
    weight: Fraction


@dataclass(frozen=True)
class LinearReader(Document):
    """A linear reader, and whether a second computation confirms it."""

    witness: Hidden[Witness]
    features: Hidden[tuple[Feature, ...]]
    verified: bool
    evidence: str

    def weights(self) -> list[tuple[str, Fraction]]:
        """Return the nonzero weights with their features; neighbours that share a weight as `3-101`."""
        spans, pairs = [], zip(self.features, self.witness.weights, strict=True)
        for weight, run in groupby(pairs, key=lambda pair: pair[1]):
            together = [feature for feature, _ in run]
            if weight:
                span = Feature(together[0].first, sum(feature.copies for feature in together))
                spans.append((span.text, weight))
        return spans

    @shown_as("weights")
    def shared_weights(self) -> Sequence[Weight]:
        """The weights that are not zero; neighbouring features of one weight together."""
        return [Weight(span, weight) for span, weight in self.weights()]

    @shown
    def threshold(self) -> Fraction:
        """The reading above which it fires."""
        return self.witness.threshold

    @shown
    def fires_on(self) -> Literal["D0", "D1"]:
        """The label it fires on."""
        return "D1" if self.witness.fires_on else "D0"

    @shown
    def gap(self) -> float:
        """The distance between the labels, for weights of length 1."""
        return self.witness.gap


@dataclass(frozen=True)
class NoisyReading(Document):
    """The AUC of two readers under Gaussian noise on every feature that is read."""

    noise: float
    """The standard deviation of the noise."""
    best_linear: float | None
    """The AUC of the best linear reader; None if none was found."""
    probe: float
    """The AUC of the reading with all signs +."""


@dataclass(frozen=True)
class FixedReader(Document):
    """The verdict on the random-sign network."""

    distinguish: float
    interval: tuple[float, float]
    engine: str
    evidence: str
    margin: float
    delta: Fraction
    verdict: VerdictWord


@dataclass(frozen=True, repr=False)
class Readers(Result):
    """The results of increasingly general readers at one point."""

    kind: ClassVar[str] = "readers"
    fixed: Hidden[Verdict]
    threshold: TunedThreshold | None
    """The same network with the best threshold; None if the sign states are too many to tune it."""
    linear: LinearReader | None
    """The best linear reader of one row that was found."""
    outputs: Hidden[Outputs]
    formats: dict[str, StoredOutputs]
    """The difference that is left in each number format."""
    every_reader: BestReader | None
    """The limits of every reader of one row, and of all rows, under noise; null if D0 and D1 have different
    numbers of rows."""

    @shown
    def construction(self) -> Construction:
        """The construction."""
        return self.fixed.construction

    @shown
    def mechanism(self) -> Mechanism:
        """The mechanism."""
        return self.fixed.mechanism

    @shown
    def parameters(self) -> Mapping[str, int | str]:
        """All parameters of the construction."""
        return self.fixed.parameters

    @shown
    def taken(self) -> Mapping[str, int | str]:
        """The parameters that were not given, and taken from the reference point."""
        return self.fixed.taken

    @shown_as("fixed")
    def fixed_reader(self) -> FixedReader:
        """The verdict on the random-sign network."""
        fixed, outcome = self.fixed, self.fixed.outcome
        answer = (outcome.distinguish, outcome.interval, outcome.engine, outcome.evidence, outcome.margin)
        return FixedReader(*answer, fixed.delta, fixed.word)

    @shown_as("outputs")
    def outputs_evidence(self) -> str:
        """How the outputs of attention are known."""
        return self.outputs.evidence

    @shown
    def auc(self) -> NoisyReading | None:
        """P(a noisy D1 reading exceeds a noisy D0 reading), for noise on every feature of the row.

        A reading with weights w has noise of standard deviation |w| times that of a feature. The gap of the
        best linear reader is for |w| = 1; the reading with all signs + has length sqrt(features).
        """
        if self.fixed.noise is None:
            return None
        # The probe has one weight for each feature, so its noise is larger by the length of its weights.
        plain = self.fixed.outcome.margin / self.outputs.length(self.outputs.probe_weights)
        best = self.linear.witness.gap if self.linear is not None else None
        best_auc = None if best is None else _auc(best, self.fixed.noise)
        return NoisyReading(float(self.fixed.noise), best_auc, _auc(plain, self.fixed.noise))

    @shown
    def verdict(self) -> Statement:
        """The most important statement."""
        return self.statements[0]

    @shown
    def statements(self) -> tuple[Statement, ...]:
        """All conclusions about classes of readers, the most important first."""
        return tuple(self._statements())

    @property
    def conclusions(self) -> Mapping[ReaderClass, Conclusion]:
        """The conclusion for each class of readers."""
        verified = self.linear is not None and self.linear.verified
        return conclude_readers(
            self.fixed.word, rows_equal=self.outputs.proves and self.outputs.has_equal_rows, linear_verified=verified
        )

    def _statements(self) -> Iterator[Statement]:
        conclusions = self.conclusions
        outcome = self.fixed.outcome
        chance = f"{chance_of(outcome)} ({outcome.engine})"
        # Equal rows settle every reader, so nothing weaker is added.
        if conclusions[ReaderClass.EVERY] is Conclusion.CANNOT:
            yield Statement(Word.CANNOT, EVERY_READER, f"D0 and D1 have equal rows, in {self.outputs.evidence}")
            return
        if conclusions[ReaderClass.EVERY] is Conclusion.CONTRADICTION:
            yield Statement(
                Word.CONTRADICTION,
                EVERY_READER,
                f"D0 and D1 are said to have equal rows ({self.outputs.evidence}), but a reader tells them "
                f"apart: {chance}. {REPORT_BUG}",
            )
            return
        if conclusions[ReaderClass.FIXED] is Conclusion.CAN:
            yield Statement(Word.CAN, THIS_READER, chance)
        elif conclusions[ReaderClass.FIXED] is Conclusion.CANNOT:
            yield Statement(Word.NOT_WITH_THIS_READER, THIS_READER, chance)
        elif self.fixed.word == "undecided":
            yield Statement(Word.OPEN, THIS_READER, f"undecided, {chance}")
        yield self._of_linear_readers()
        # Float64 rows that round to equal numbers prove nothing about the exact ones.
        if self.outputs.proves:
            for name, stored_outputs in self.formats.items():
                if stored_outputs.same:
                    readers = f"every reader of outputs stored in {name}"
                    yield Statement(Word.CANNOT, readers, "D0 and D1 round to equal rows")

    def _of_linear_readers(self) -> Statement:
        if self.linear is not None and self.conclusions[ReaderClass.LINEAR] is Conclusion.CAN:
            return Statement(Word.CAN, LINEAR_READERS, f"weights given, verified by {self.linear.evidence}")
        if self.linear is not None:
            return Statement(Word.OPEN, LINEAR_READERS, f"weights given, not verified: {self.linear.evidence}")
        if not self.outputs.differ:
            return Statement(
                Word.OPEN, EVERY_READER, f"no difference found in {self.outputs.evidence}; not proved equal"
            )
        return Statement(
            Word.OPEN, LINEAR_READERS, f"the rows differ ({self.outputs.evidence}), but no weights were found"
        )

    @property
    def sentence(self) -> str:
        """A summary of the statements in one or two sentences."""
        name, conclusions = self.mechanism.spelled, self.conclusions
        if conclusions[ReaderClass.EVERY] is Conclusion.CANNOT:
            return f"{name} returns the same for D0 and D1, so no reader of it tells them apart."
        if conclusions[ReaderClass.EVERY] is Conclusion.CONTRADICTION:
            return f"The evidence for {name} contradicts itself. {REPORT_BUG}"
        start = {
            "distinguishes": "The fixed reader tells them apart",
            "blind": "The fixed reader does not tell them apart",
            "saturated": "The fixed reader fires on both D0 and D1",
            "undecided": "Whether the fixed reader tells them apart is undecided",
        }.get(self.fixed.word, "The fixed reader tells them apart at times")
        start += f" ({chance_of(self.fixed.outcome, 4)})"
        if conclusions[ReaderClass.LINEAR] is not Conclusion.CAN:
            return f"{start}; nothing is proved about other readers."
        too = ", too" if self.fixed.word == "distinguishes" else ""
        return f"{start}; without noise a linear reader of one row tells them apart{too}."

    @property
    def summary(self) -> str:
        """The most important statement."""
        first, name = self.verdict, f"{self.mechanism.spelled} on {self.construction.name}"
        return f"{name}: {first.word}, for {first.readers}; {first.evidence}"

    def rows(self) -> list[Row]:
        """Return one row for each statement."""
        return [statement.as_json() for statement in self.statements]


def _auc(gap: float, noise: Fraction) -> float:
    return 0.5 * (1 + math.erf(gap / (2 * float(noise))))


def readers(
    construction: str,
    mechanism: Any,
    parameters: Mapping[str, object] | None = None,
    *,
    delta: object = DELTA,
    noise_sd: object = None,
    sampling: Sampling | None = None,
    progress: Callable[[str], None] = lambda _: None,
    **named: object,
) -> Readers:
    """Find what the fixed reader, the best threshold, the best linear reader and every reader can do.

    **Arguments:**

    - `construction`, `mechanism`, `parameters`, `named`, `delta`, `sampling`: as for `verdict`.
    - `noise_sd`: adds the AUC of both readers, and the accuracy of the best possible reader of one row and of
      all rows, under Gaussian noise of this standard deviation on every feature that is read.
    - `progress`: called with a description of each step.

    >>> result = readers("spike", "linear", n=1000, d=102, m=12, a0="0.01", a1="1.2", b="0.2", c="0.1")
    >>> [(statement.word.value, statement.readers.split(" (")[0]) for statement in result.statements]
    [('not with this reader', 'the fixed reader'), ('can', 'linear readers of one row')]
    """
    fields = construction_named(construction).schema.model_fields
    values = all_parameters(parameters, named, fields, OPTIONS)
    progress("the fixed reader")
    fixed = parse_request(construction, mechanism, values, delta=delta, noise_sd=noise_sd).compute(sampling)
    return try_other_readers(fixed, sampling, progress)


def try_other_readers(
    fixed: Verdict, sampling: Sampling | None = None, progress: Callable[[str], None] = lambda _: None
) -> Readers:
    """Find what other readers can do at the point of a verdict."""
    construction, mechanism = fixed.construction, fixed.mechanism
    progress("attention outputs")
    outputs_at = strongest_outputs(construction, mechanism)
    progress("the best linear reader")
    candidates = [(best_witness(output), output, place) for output, place in outputs_at]
    # The weakest position counts, and one without a reader is the weakest.
    witness, worst, place = min(candidates, key=lambda output: 0.0 if output[0] is None else output[0].gap)
    progress("the best threshold")
    try:
        outputs = [output for output, _ in outputs_at]
        threshold = best_threshold(construction, mechanism, outputs, fixed.outcome, sampling or Sampling())
    except EngineRefusal:
        threshold = None
    progress("verifying the linear reader by the definition")
    linear = None if witness is None else _verify(construction, mechanism, witness, worst, place)
    limits = best_reader(construction, mechanism, worst, fixed.noise)
    return Readers(fixed, threshold, linear, worst, store_outputs(worst), limits)


def _verify(
    construction: Construction, mechanism: Mechanism, witness: Witness, outputs: Outputs, place: int
) -> LinearReader:
    """Verify a linear reader by the mechanism's definition in float64."""
    evidence = outputs.evidence
    try:
        literal = by_definition(construction, mechanism, place)
    except EngineRefusal:
        return LinearReader(witness, outputs.features, outputs.proves, f"{evidence}; too large for the definition")
    spread = witness.spread_over(outputs.features, literal.features)
    if spread.holds_on(literal):
        return LinearReader(witness, outputs.features, True, f"{evidence}, and the definition in float64")
    # Proved readings stand if float64 is too coarse to confirm them, but not if it refutes them.
    if outputs.proves and not spread.contradicts(literal):
        return LinearReader(witness, outputs.features, True, f"{evidence}; too fine for the definition in float64")
    return LinearReader(witness, outputs.features, False, f"{evidence}; the definition does not confirm it")
