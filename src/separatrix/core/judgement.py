"""Can, cannot or unknown: the one place where evidence becomes a conclusion.

`readers`, `choose`, the atlas, cards and `learn` all take their conclusions from here. The rules:

- Evidence counts only for the question that it answers: the same task or construction, length, parameters,
  class of models and number format. All other evidence is set aside, and never satisfies or excludes.
- A proof excludes a mechanism only if the best rule of all is expected to be better than the proved ceiling
  by more than the tolerance, beyond the sampling error of the test samples.
- Hand-written weights show that a mechanism can, but only if they score within the tolerance of the best rule
  on the same samples. Trained weights do if the run solved the task on its validation samples: choosing runs
  by their test scores would favour lucky ones.
- A score above a proved ceiling for its class of models, beyond sampling error, is a contradiction: one of
  the two is wrong, so neither counts, and the user is asked to report it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FALSE_ALARM = 1e-6
"""The largest probability with which chance in the test samples alone leads to "cannot" or to a
contradiction."""
MIN_ERRORS = 10
"""Fewer squared errors say nothing about their expectation."""
ROUNDING = 1e-9
"""Scores that differ by less are equal."""
REPORT_BUG = "This is a bug in separatrix; please report it with the command that shows it."


class Conclusion(StrEnum):
    """The state of knowledge about a mechanism and a question."""

    CAN = "can"
    CANNOT = "cannot"
    UNKNOWN = "unknown"
    CONTRADICTION = "contradiction"
    """The evidence contradicts itself: a bug of this program, and no statement about the mechanism."""


class EvidenceKind(StrEnum):
    """How a score is known."""

    PROOF = "proved ceiling"
    WITNESS = "hand-written weights"
    TRAINED = "trained weights"
    FLOOR = "a shortcut"


@dataclass(frozen=True)
class EvidenceQuestion:
    """A question about a mechanism. Evidence counts for it only if the evidence answers an equal question."""

    name: str = ""
    """The task or construction."""
    n: int | None = None
    mechanism: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """The other parameters of the task or construction, as text."""
    models: Mapping[str, str] = field(default_factory=dict)
    """The class of models: their sizes and parts, as text."""
    dtype: str = "float32"
    """The number format in which a model computes. A proof is about exact arithmetic and holds in each."""


@dataclass(frozen=True)
class ProofMargin:
    """How a proved ceiling, an expectation, compares with scores on a finite sample."""

    least_gap: float
    """The best rule is expected to be better than the proved ceiling by at least this much (at a confidence
    of 1 - FALSE_ALARM)."""
    slack: float
    """A model of the class scores better than the proved ceiling by no more than this on such a sample (at
    the same confidence)."""


@dataclass(frozen=True)
class Evidence:
    """One score, how it is known, and the question that it answers."""

    kind: EvidenceKind
    score: float
    question: EvidenceQuestion = field(default_factory=EvidenceQuestion)
    solved: bool = False
    """Whether a training run reached the ceiling on its validation samples."""
    margin: ProofMargin | None = None
    """Of a proof. None if both the ceiling of the task and the proved one are known exactly."""


@dataclass(frozen=True)
class Goal:
    """The score to reach: that of the best rule on the test samples, less a tolerance."""

    ceiling: float
    tolerance: float
    sign: int = 1
    """-1 where lower scores are better."""

    def is_reached_by(self, score: float) -> bool:
        """Whether a score on the same samples is within the tolerance of the ceiling."""
        return math.isfinite(score) and self.shortfall(score) <= self.tolerance + ROUNDING

    def shortfall(self, score: float) -> float:
        """Return the distance of a score below the ceiling; negative above it."""
        return self.sign * (self.ceiling - score)


@dataclass(frozen=True)
class Judgement:
    """A conclusion, and the evidence that it rests on."""

    conclusion: Conclusion
    because: Evidence | None = None
    """The evidence that decides; None if nothing does."""
    against: Evidence | None = None
    """Of a contradiction, the proof that `because` contradicts."""
    best: Evidence | None = None
    """The best measured score that answers the question, whether it decides or not."""
    set_aside: tuple[Evidence, ...] = ()
    """Evidence that answers other questions."""

    @property
    def complaint(self) -> str:
        """The contradiction in a sentence, and the request to report it; empty for other conclusions."""
        if self.because is None or self.against is None:
            return ""
        return (
            f"a ceiling of {self.against.score:.4f} is said to be proved, but the score of "
            f"{self.because.kind.value} in the same class of models is {self.because.score:.4f}. {REPORT_BUG}"
        )


def conclude(question: EvidenceQuestion, goal: Goal, evidence: Iterable[Evidence]) -> Judgement:
    """Turn evidence into a conclusion by the rules of this module.

    >>> goal, needle = Goal(ceiling=0.98, tolerance=0.005), EvidenceQuestion("needle", 64)
    >>> written = Evidence(EvidenceKind.WITNESS, 0.697, needle)
    >>> conclude(needle, goal, [written]).conclusion.value
    'unknown'
    >>> conclude(needle, goal, [Evidence(EvidenceKind.PROOF, 0.7057, needle), written]).conclusion.value
    'cannot'
    >>> longer = Evidence(EvidenceKind.WITNESS, 0.98, EvidenceQuestion("needle", 4096))
    >>> conclude(needle, goal, [longer]).conclusion.value
    'unknown'
    >>> conclude(needle, goal, [Evidence(EvidenceKind.PROOF, 0.5, needle), written]).conclusion.value
    'contradiction'
    """
    items = list(evidence)
    relevant = [item for item in items if _answers(item, question) and math.isfinite(item.score)]
    aside = tuple(item for item in items if not _answers(item, question))
    proofs = [item for item in relevant if item.kind is EvidenceKind.PROOF]
    measurements = [item for item in relevant if item.kind is not EvidenceKind.PROOF]
    models = [item for item in measurements if item.kind is not EvidenceKind.FLOOR]
    best = max(models, key=lambda model: goal.sign * model.score, default=None)
    # Contradictions come first: a proof that a measurement refutes must not exclude a mechanism.
    for proof in proofs:
        for measurement in measurements:
            if goal.sign * (measurement.score - proof.score) > _margin(proof, goal).slack + ROUNDING:
                return Judgement(Conclusion.CONTRADICTION, measurement, proof, best, aside)
    for proof in proofs:
        if _margin(proof, goal).least_gap > goal.tolerance + ROUNDING:
            return Judgement(Conclusion.CANNOT, proof, best=best, set_aside=aside)
    for model in models:
        if model.solved if model.kind is EvidenceKind.TRAINED else goal.is_reached_by(model.score):
            return Judgement(Conclusion.CAN, model, best=best, set_aside=aside)
    return Judgement(Conclusion.UNKNOWN, best=best, set_aside=aside)


def _answers(evidence: Evidence, question: EvidenceQuestion) -> bool:
    """Whether evidence is about exactly this question; a proof is about exact arithmetic, in any format."""
    if evidence.kind is EvidenceKind.PROOF:
        question = replace(question, dtype=evidence.question.dtype)
    return evidence.question == question


def _margin(proof: Evidence, goal: Goal) -> ProofMargin:
    """Return how a proof compares with scores; without a margin both ceilings are known exactly."""
    return proof.margin or ProofMargin(goal.shortfall(proof.score), 0.0)


def is_nearest_length(length: int, n: int, step: int = 1) -> bool:
    """Whether a result at `length` counts for n: the nearest multiple of the step, within a tenth of n.

    >>> is_nearest_length(131_100, 131_072, 100), is_nearest_length(4096, 131_072), is_nearest_length(64, 65)
    (True, False, False)
    """
    distance = abs(length - n)
    return distance == 0 or (2 * distance <= step and 10 * distance <= n)


def share_margin(ceiling: float, proved: float, samples: int, *, exact: bool) -> ProofMargin:
    """Compare the ceiling, an accuracy on the samples or known exactly, with a proved expectation.

    Uses the bound of Chernoff and Hoeffding, which holds for the mean of any independent numbers in [0, 1].

    >>> margin = share_margin(0.98, 0.7057, 10_000, exact=False)
    >>> round(margin.least_gap, 4), round(margin.slack, 4)
    (0.266, 0.0238)
    """
    lowest = ceiling if exact else lowest_expected_share(ceiling, samples)
    return ProofMargin(lowest - proved, highest_share(proved, samples) - proved)


def lowest_expected_share(share: float, samples: int) -> float:
    """Return the least expectation for which chance does not rule out a share as high as this one."""
    # KL(share, p) grows as p moves away from the share, so bisection finds the only end of the interval.
    return _bisect(lambda p: _is_plausible(share, p, samples), share, 0.0)


def highest_share(expected: float, samples: int) -> float:
    """Return the highest share on a sample that chance does not rule out for this expectation."""
    return _bisect(lambda share: _is_plausible(share, expected, samples), expected, 1.0)


def _is_plausible(share: float, expected: float, samples: int) -> bool:
    """Whether samples * KL(share, expected) <= ln(1 / FALSE_ALARM)."""
    from scipy.special import rel_entr

    distance = rel_entr(share, expected) + rel_entr(1 - share, 1 - expected)
    return bool(samples * distance <= -math.log(FALSE_ALARM))


def _bisect(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """Return the last number on the way from `inside` to `outside` for which the condition holds."""
    if holds(outside):
        return outside
    for _ in range(60):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return inside


def error_margin(best: NDArray[Any], limit: NDArray[Any], targets: NDArray[Any], proved: float) -> ProofMargin:
    """Compare squared errors, as a share of that of the answer 0, of two rules on the same samples.

    `best` is the best rule of all and `limit` the best one of the class, whose expected share is `proved`;
    both are answers to `targets`. With squared errors `e` and targets `y`, `sum(e) / sum(y²) - proved`
    is the sum of `e - proved y²` over that of `y²`: the numerator has expectation 0 for `limit`.

    >>> targets = np.random.default_rng(0).normal(size=10_000)
    >>> few, many = (error_margin(0.9 * y, 0.1 * y, y, proved=0.81) for y in (targets[:30], targets))
    >>> few.least_gap < 0 < many.least_gap < 0.8  # thirty samples show nothing
    True
    """
    squares = np.square(targets.astype(np.float64)).reshape(-1)
    errors, best_errors = (np.square(np.reshape(a, -1) - targets.reshape(-1)) for a in (limit, best))
    # No statement at all: a gap of -inf never excludes, a slack of inf never contradicts.
    if len(squares) < MIN_ERRORS or not squares.any():
        return ProofMargin(-math.inf, math.inf)
    gaps, scale, largest = errors - best_errors, squares.mean(), float(squares.max())
    gap = gaps.mean() - _mean_error(gaps, largest)
    return ProofMargin(float(gap / scale), float(_mean_error(errors - proved * squares, largest) / scale))


def _mean_error(terms: NDArray[Any], largest: float) -> float:
    """Bound the distance of the mean of these terms from its expectation, at confidence 1 - FALSE_ALARM.

    The first part is the deviation of a normal mean. It is too small where terms are rarely large: a sample
    without its large terms also looks steadier than it is. The second part covers these: an event that did
    not occur among n samples has a probability of at most `log(1/FALSE_ALARM) / n`, and is taken to differ
    from the mean by as much as the terms that occurred differ from each other, or by the largest square of
    a target.
    """
    confidence = -math.log(FALSE_ALARM)
    rare = max(float(np.ptp(terms)), largest) * confidence / len(terms)
    return math.sqrt(2 * float(terms.var()) * confidence / len(terms)) + rare


class ReaderClass(Enum):
    """Classes of readers of the output of attention on a construction, the smallest first."""

    FIXED = "fixed"
    LINEAR = "linear"
    EVERY = "every"


FIXED_READER = {"distinguishes": Conclusion.CAN, "blind": Conclusion.CANNOT, "saturated": Conclusion.CANNOT}
"""The conclusion about the fixed reader from its verdict; a verdict that is not listed leaves it open."""


def conclude_readers(word: str, *, rows_equal: bool, linear_verified: bool = False) -> Mapping[ReaderClass, Conclusion]:
    """Conclude for each class of readers whether one of it tells D0 from D1 at a point.

    `word` is the verdict on the fixed reader, `rows_equal` whether D0 and D1 are proved to have equal rows,
    and `linear_verified` whether a linear reader was found and verified. A verdict on the fixed reader says
    nothing about others unless it is "distinguishes".

    >>> conclusions = conclude_readers("blind", rows_equal=False)
    >>> {readers.value: conclusion.value for readers, conclusion in conclusions.items()}
    {'fixed': 'cannot', 'linear': 'unknown', 'every': 'unknown'}
    >>> conclude_readers("distinguishes", rows_equal=True)[ReaderClass.EVERY].value
    'contradiction'
    """
    some_reader_can = word == "distinguishes" or linear_verified
    if rows_equal:
        every = Conclusion.CONTRADICTION if some_reader_can else Conclusion.CANNOT
        return dict.fromkeys(ReaderClass, every)
    return {
        ReaderClass.FIXED: FIXED_READER.get(word, Conclusion.UNKNOWN),
        ReaderClass.LINEAR: Conclusion.CAN if linear_verified else Conclusion.UNKNOWN,
        ReaderClass.EVERY: Conclusion.CAN if some_reader_can else Conclusion.UNKNOWN,
    }
