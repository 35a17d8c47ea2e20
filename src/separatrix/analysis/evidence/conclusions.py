"""Conclusions from training in words: about one mechanism on a task, and about mechanisms beside a floor.

"cannot" and "did not learn" are kept apart: the first takes a proof (`core.judgement`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from separatrix.analysis.evidence.estimates import PairedDifference, SeedShare, SeedSummary, describe_resolution
from separatrix.core.judgement import Conclusion, Evidence, EvidenceKind, EvidenceQuestion, Goal, ProofMargin, conclude
from separatrix.training.tasks import ProvedCeiling

SAMPLING_SLACK = 0.015
"""A score this close to a proved ceiling has reached it: test samples scatter by as much."""


class TrainingWord(Enum):
    """The conclusion about a mechanism on a task."""

    CANNOT = "cannot"
    LEARNS = "can, and learns it"
    NOT_LEARNED = "can, and did not learn it here"
    UNKNOWN = "unknown"
    CONTRADICTION = "contradiction"
    """A bug of this program: a score is above a ceiling that is claimed to be proved."""


@dataclass(frozen=True)
class Scores:
    """All scores of a mechanism on a task; `sign` is -1 where lower scores are better."""

    sign: int
    tolerance: float
    ceiling: float
    proved: ProvedCeiling | None
    witness: float | None
    """The score of hand-written weights."""
    trained: float | None
    """The median over seeds; None if every run failed."""
    solved: SeedShare
    floor: float | None = None
    """The score of a shortcut on real data, where no ceiling is known."""
    margin: ProofMargin | None = None
    """How the proved ceiling compares with scores on the test samples; None if both are known exactly."""
    shortcut: float | None = None
    """The score of a shortcut that the models of the proved ceiling can take."""
    best_trained: float | None = None
    """The best score of a single training run; the median over seeds unless given."""
    tuned: float | None = None
    """The score of hand-written weights after training from them."""
    steps: int | None = None
    """The steps of the longest run."""
    is_improving: bool = False
    """Whether the validation scores were still rising at the end."""

    @property
    def expressible(self) -> float | None:
        """The best score of weights that are known, tuned or not."""
        return best_score((self.witness, self.tuned), self.sign)

    @property
    def weights(self) -> str:
        """The origin of the weights with the score `expressible`."""
        return f"{'' if self.expressible == self.witness else 'tuned '}hand-written weights"

    @property
    def training(self) -> str:
        """The result of training, as a part of a sentence."""
        if self.trained is None:
            return "every run failed"
        steps = "" if self.steps is None else f"{self.steps:,} steps of "
        return f"{steps}training reached {self.trained:.4f}{', still improving' * self.is_improving}"

    def reaches(self, score: float | None, goal: float) -> bool:
        """Whether a score is at a goal, but for the scatter of test samples."""
        return score is not None and self.sign * (goal - score) <= SAMPLING_SLACK

    def evidence(self) -> Iterator[Evidence]:
        """Yield the scores as evidence, all of it about the same question."""
        if self.proved is not None:
            yield Evidence(EvidenceKind.PROOF, self.proved.score, margin=self.margin)
        if self.shortcut is not None:
            yield Evidence(EvidenceKind.FLOOR, self.shortcut)
        if self.expressible is not None:
            yield Evidence(EvidenceKind.WITNESS, self.expressible)
        score = self.trained if self.best_trained is None else self.best_trained
        if score is not None:
            yield Evidence(EvidenceKind.TRAINED, score, solved=self.solved.count > 0)


def describe_scores(scores: Scores) -> tuple[TrainingWord, str]:
    """Return the conclusion about a mechanism, and a sentence with the reason."""
    solved_share, weights = scores.solved, scores.expressible
    goal = Goal(scores.ceiling, scores.tolerance, scores.sign)
    judgement = conclude(EvidenceQuestion(), goal, scores.evidence())
    # The order matters: contradictory evidence supports no other conclusion, and a proof outranks runs.
    if judgement.conclusion is Conclusion.CONTRADICTION:
        return TrainingWord.CONTRADICTION, f"contradiction: {judgement.complaint.rstrip('.')}"
    if judgement.conclusion is Conclusion.CANNOT and scores.proved is not None:
        limit = f"{'at most' if scores.sign > 0 else 'at best'} {scores.proved.score:.4f}"
        reached_text = _describe_reached(scores, scores.proved)
        return TrainingWord.CANNOT, f"cannot: {limit} is proved for {scores.proved.models}; {reached_text}"
    runs = f"{solved_share.count} of {solved_share.of} seeds solved it"
    if solved_share.count:
        scope = "" if solved_share.count == solved_share.of else " on some seeds"
        return TrainingWord.LEARNS, f"can, and learns it{scope}: {runs}"
    if weights is not None and judgement.conclusion is Conclusion.CAN:
        return TrainingWord.NOT_LEARNED, f"can ({weights:.4f} by {scores.weights}); {scores.training}"
    if scores.floor is not None:
        return TrainingWord.UNKNOWN, f"unknown: {_describe_beside_floor(scores, scores.floor)}"
    no_weights = "no weights are known for this setting"
    weights_text = no_weights if weights is None else f"the best known weights reach {weights:.4f}"
    return TrainingWord.UNKNOWN, f"unknown: {scores.training}, {runs}; {weights_text}; this proves nothing"


def _describe_beside_floor(scores: Scores, floor: float) -> str:
    """Describe the result of training on data whose ceiling is not known."""
    if scores.trained is None or scores.sign * (scores.trained - floor) > 0:
        return f"no ceiling is known; {scores.training}, a shortcut {floor:.4f}"
    shortcut = f"no better than a shortcut ({floor:.4f})"
    return f"{scores.training}, {shortcut}: this says nothing about the mechanism"


def _describe_reached(scores: Scores, ceiling: ProvedCeiling) -> str:
    """Describe whether training reached the proved ceiling."""
    if scores.reaches(scores.trained, ceiling.score):
        return f"training reached this ceiling: {scores.trained:.4f}"
    if scores.reaches(scores.expressible, ceiling.score):
        return f"{scores.weights} reach {scores.expressible:.4f}, but {scores.training}"
    return f"{scores.training}; whether it can do better is unknown"


def best_score(scores: Iterable[float | None], sign: int) -> float | None:
    """Return the best of the scores that are not None."""
    known_scores = (score for score in scores if score is not None)
    return max(known_scores, key=lambda score: sign * score, default=None)


class BesideFloor(Enum):
    """The position of trained models relative to the best shortcut."""

    ABOVE = "better than the floor"
    AT = "not shown to be better than the floor: says nothing about mechanisms"
    BELOW = "below the floor: says nothing about mechanisms"
    UNABLE = "proved to be unable to reach the floor, which takes another class of models"
    FAILED = "every run failed"


def compare_with_floor(trained: SeedSummary | None, floor: float, sign: int) -> BesideFloor:
    """Compare the scores of all seeds with a floor; `sign` is -1 where lower is better.

    Models are better than the floor if the 95 % interval of the median over seeds lies beyond it, which takes
    six seeds or more.

    >>> compare_with_floor(SeedSummary([0.91, 0.92, 0.93, 0.92, 0.91, 0.9]), 0.87, 1).value
    'better than the floor'
    >>> compare_with_floor(SeedSummary([0.91, 0.92]), 0.87, 1).name
    'AT'
    """
    if trained is None:
        return BesideFloor.FAILED
    if all(sign * (score - floor) <= 0 for score in trained.interval or trained.scores):
        return BesideFloor.BELOW
    if trained.interval is not None and all(sign * (end - floor) > 0 for end in trained.interval):
        return BesideFloor.ABOVE
    return BesideFloor.AT


def describe_comparisons(
    positions: Mapping[str, BesideFloor], differences: Sequence[PairedDifference], sign: int
) -> tuple[str, ...]:
    """Return sentences on the differences between mechanisms.

    Mechanisms are compared in pairs, seed by seed, where both are better than the floor.
    """
    above = [name for name, position in positions.items() if position is BesideFloor.ABOVE]
    unable = [name for name, position in positions.items() if position is BesideFloor.UNABLE]
    lines = [f"{', '.join(unable)}: {BesideFloor.UNABLE.value}"] if unable else []
    if not above:
        nothing = "no mechanism was shown to be better than the floor, which says nothing about mechanisms, only "
        return (*lines, f"{nothing}that this training is not enough")
    if other_names := ", ".join(name for name in positions if name not in (*above, *unable)):
        lines.append(f"nothing can be concluded about {other_names}: not shown to be better than the floor")
    pairs = [pair for pair in differences if pair.a in above and pair.b in above]
    for pair in pairs:
        if pair.is_significant:
            better, worse = (pair.a, pair.b) if sign * pair.difference > 0 else (pair.b, pair.a)
            size = f"{abs(pair.difference):.4f} (adjusted p = {pair.p_adjusted:.2g})"
            lines.append(f"{better} is better than {worse} by {size}")
    if unclear := [f"{pair.a} and {pair.b}" for pair in pairs if not pair.is_significant]:
        lines.append(f"no significant difference between {'; '.join(unclear)}")
        lines += filter(None, [describe_resolution(differences)])
    return tuple(lines)
