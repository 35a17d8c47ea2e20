"""Verdicts: probabilities with their evidence, margin, bits, and one word."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

from separatrix.constructions import Construction, construction_named
from separatrix.constructions.reference import read_with_defaults
from separatrix.core.documents import Hidden, Inlined, shown, shown_as
from separatrix.core.numbers import format_exact, parse_exact
from separatrix.core.numbers.spelling import for_people
from separatrix.core.parameters import Parameters, UsageError
from separatrix.core.result import Result, Row
from separatrix.core.tensors import torch
from separatrix.exact.engines import ENGINES, EngineRefusal, Outcome, Sampling, engine_named, solve
from separatrix.exact.outputs.strongest import strongest_outputs
from separatrix.exact.verdicts.best_reader import parse_noise
from separatrix.exact.verdicts.lost_formats import LARGEST, lost_from
from separatrix.exact.verdicts.theorem import theorem_coverage
from separatrix.exact.verdicts.words import Word, word_for
from separatrix.mechanisms import Mechanism, mechanism_from
from separatrix.mechanisms.calling import drawn_note, scale_note
from separatrix.mechanisms.custom import CustomMechanism

if TYPE_CHECKING:
    from separatrix.exact.verdicts.best_threshold import TunedThreshold

DELTA = Fraction(1, 100)
MAX_TUNED_TOKENS = 4096
"""Up to this length a verdict looks for a working threshold though it takes every token to be computed."""
OPTIONS = {"noise": "noise_sd="}
"""The options to suggest for names that look like parameters."""


@dataclass(frozen=True, repr=False)
class Verdict(Result):
    """The result for one mechanism on one construction at one parameter point."""

    kind: ClassVar[str] = "verdict"
    construction: Construction
    mechanism: Mechanism
    outcome: Inlined[Outcome]
    delta: Fraction
    """How sure `distinguishes` and `blind` have to be."""
    noise: Hidden[Fraction | None] = None
    """The standard deviation of Gaussian noise on the pre-activation, in units of sqrt(log n)."""
    taken: Mapping[str, int | str] = field(default_factory=dict)
    """The parameters that were not given, and taken from the construction's reference point."""

    @shown
    def parameters(self) -> Mapping[str, int | str]:
        """All parameters of the construction."""
        parameters: Parameters = self.construction.parameters
        return parameters.as_json()

    @shown_as("verdict")
    def word(self) -> Word:
        """`distinguishes`, `blind`, `saturated`, `partial` or `undecided`, as `word_for` defines them."""
        return word_for(self.outcome, self.construction.m, self.delta)

    @property
    def bits(self) -> float:
        """The significant bits needed to tell the labels apart."""
        return self.outcome.bits

    @shown
    def auc(self) -> float | None:
        """P(a noisy D1 pre-activation exceeds a noisy D0 one) = Phi(margin / (sqrt(2) sd)).

        None unless a noise was given.
        """
        if self.noise is None:
            return None
        return 0.5 * (1 + math.erf(self.outcome.margin / (2 * float(self.noise))))

    @shown_as("lost_from")
    def formats(self) -> Mapping[str, int | None] | None:
        """For each number format the n from which on both labels are the same number.

        None for a format in which none was found, and None altogether without a closed form.
        """
        try:
            return lost_from(self.construction, self.mechanism)
        except EngineRefusal:
            return None

    @cached_property
    def working_threshold(self) -> TunedThreshold | None:
        """For a saturated reader, another threshold with which it distinguishes, if one is known.

        It is not searched for if that would compute more than `MAX_TUNED_TOKENS` tokens one by one; `readers`
        does it at any length.
        """
        from separatrix.exact.verdicts.best_threshold import best_threshold

        point, mechanism = self.construction, self.mechanism
        has_counts = mechanism.takes_counts and point.has_groups
        if self.word != "saturated" or not (has_counts or point.n <= MAX_TUNED_TOKENS):
            return None
        try:
            outputs = [output for output, _ in strongest_outputs(point, mechanism)]
            threshold = best_threshold(point, mechanism, outputs, self.outcome, Sampling())
        except EngineRefusal:
            return None
        return threshold if word_for(threshold.outcome, point.m, self.delta) == "distinguishes" else None

    def _saturation_remark(self) -> str:
        cause = "The reader is saturated: D0 exceeds the threshold as well."
        threshold = self.working_threshold
        if threshold is not None:
            chance = chance_of(threshold.outcome)
            return f"{cause} With tau = {format_exact(threshold.tau)} it distinguishes, {chance}."
        return f"{cause} separatrix readers looks for a threshold or another reader that works."

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """Sentences needed to read the answer: a hidden scale, drawn weights, a saturated reader."""
        user_mechanism = self.mechanism if isinstance(self.mechanism, CustomMechanism) else None
        remarks = (
            []
            if user_mechanism is None
            else [scale_note(user_mechanism, _key_width(self.construction)), drawn_note(user_mechanism)]
        )
        if self.word == "saturated":
            remarks.append(self._saturation_remark())
        return tuple(filter(None, remarks))

    @cached_property
    def theorem(self) -> str:
        """A sentence on whether the separation theorem covers this point; empty for other constructions."""
        coverage = theorem_coverage(self.construction, self.mechanism, self.delta)
        low, high = self.outcome.interval
        exact = self.outcome.engine == "certified" if low == high else None
        return "" if coverage is None else coverage.sentence(exact=exact)

    @property
    def summary(self) -> str:
        """The verdict, P and the engine."""
        name = f"{self.mechanism.spelled} on {self.construction.name}"
        return f"{name}: {self.word}, {chance_of(self.outcome)} ({self.outcome.engine})"

    @shown
    def working_tau(self) -> str | None:
        """The working threshold of a saturated reader; None if none is known."""
        return None if self.working_threshold is None else format_exact(self.working_threshold.tau)

    @shown
    def lost_searched_to(self) -> int:
        """The largest n that was tried for `lost_from`."""
        return LARGEST

    @shown_as("remarks")
    def all_remarks(self) -> Sequence[str]:
        """Sentences needed to read the answer: a hidden scale, drawn weights, a saturated reader, and whether
        the separation theorem covers the point."""
        return [*self.remarks, *filter(None, [self.theorem])]

    def rows(self) -> list[Row]:
        """Return one row with every parameter and the answer, so that frames can be concatenated."""
        outcome = self.outcome
        answer = {
            "construction": self.construction.name,
            "mechanism": self.mechanism.spelled,
            "verdict": self.word,
            "distinguish": outcome.distinguish,
            "low": outcome.interval[0],
            "high": outcome.interval[1],
            **{name: getattr(outcome, name) for name in ("fire_d0", "fire_d1", "margin", "bits", "engine")},
        }
        values = self.construction.parameters.complete_values()
        parameters = {name: float(v) if isinstance(v, Fraction) else v for name, v in values.items()}
        return [{**parameters, **answer}]


def chance_of(outcome: Outcome, digits: int = 6) -> str:
    """Return P(tells apart) as text, with its interval if it is not exact."""
    low, high = outcome.interval
    if low == high:
        return f"P = {for_people(outcome.distinguish, digits)}"
    if ENGINES[outcome.engine].proves:  # an undecided comparison: no value in between is more likely
        return f"P between {for_people(low, digits)} and {for_people(high, digits)}"
    return f"P = {for_people(outcome.distinguish, digits)} in [{for_people(low, 4)}, {for_people(high, 4)}]"


def _key_width(construction: Construction) -> int:
    """Return the width of queries and keys."""
    make_tokens = construction.token_groups if construction.has_groups else partial(construction.dense, spike=0)
    return int(make_tokens(0, dtype=torch.float64).keys.shape[-1])


def parse_delta(value: object) -> Fraction:
    """Parse delta as an exact number between 0 and 1/2."""
    delta = parse_exact(value, "delta")
    if not 0 < delta < Fraction(1, 2):
        raise UsageError(f"delta={value} is out of range; it must lie between 0 and 1/2")
    return delta


@dataclass(frozen=True)
class VerdictRequest:
    """A parsed and valid request for a verdict on one mechanism; nothing is computed yet."""

    construction: Construction
    mechanism: Mechanism
    engine: str
    delta: Fraction
    noise: Fraction | None
    taken: Mapping[str, int | str]

    def compute(self, sampling: Sampling | None = None) -> Verdict:
        """Compute the verdict, or raise an EngineRefusal."""
        outcome = solve(self.construction, self.mechanism, self.engine, sampling)
        unused = ENGINES[outcome.engine].describe_unused(sampling)
        outcome = replace(outcome, evidence=f"{outcome.evidence}{unused}")
        return Verdict(self.construction, self.mechanism, outcome, self.delta, self.noise, self.taken)


def parse_request(
    construction: str,
    mechanism: Any,
    parameters: Mapping[str, object],
    engine: str = "auto",
    delta: object = DELTA,
    noise_sd: object = None,
) -> VerdictRequest:
    """Parse a request, or raise a UsageError."""
    kind = construction_named(construction)
    tolerance = parse_delta(delta)
    noise = None if noise_sd is None else parse_noise(noise_sd)
    engine_named(engine)
    point, taken = read_with_defaults(kind, parameters)
    return VerdictRequest(point, mechanism_from(mechanism), engine, tolerance, noise, taken)
