"""One sentence for a task and a mechanism, which keeps "cannot" and "did not learn" apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from separatrix.analysis.evidence.estimates import Share
from separatrix.core.judgement import Conclusion, Evidence, Goal, Kind, Margin, Question, conclude
from separatrix.training.tasks import ProvedCeiling

CLOSE = 0.015
"""Within this of a proved ceiling is at it: what test samples scatter by."""


class Word(Enum):
    """What is known of a mechanism on a task."""

    CANNOT = "cannot"
    LEARNS = "can, and learns it"
    NOT_LEARNED = "can, and did not learn it here"
    UNKNOWN = "unknown"
    CONTRADICTION = "contradiction"
    """A bug of this program: a score is above a ceiling that is said to be proved."""


@dataclass(frozen=True)
class Scores:
    """What there is to judge by; `sign` is -1 where lower scores are better."""

    sign: int
    tolerance: float
    ceiling: float
    proved: ProvedCeiling | None
    witness: float | None
    """The better of the constructed weights' score and the score after tuning them."""
    trained: float | None
    """The median over seeds; None if every run failed."""
    solved: Share
    floor: float | None = None
    """Where no ceiling is known, as on real data: what a shortcut scores."""
    margin: Margin | None = None
    """How the proved ceiling compares with scores on the test samples; None if both are known exactly."""
    shortcut: float | None = None
    """The score of a shortcut that the models of the proved ceiling can take."""
    best_trained: float | None = None
    """The best score of a single training run; the median over seeds unless given."""
    question: Question = field(default_factory=Question)

    def reaches(self, score: float, goal: float, slack: float) -> bool:
        """Whether a score is at a goal, but for some slack."""
        return self.sign * (goal - score) <= slack

    def evidence(self) -> Iterator[Evidence]:
        """Yield the scores as evidence, all of it about the same question."""
        if self.proved is not None:
            yield Evidence(Kind.PROOF, self.proved.score, self.question, margin=self.margin)
        if self.shortcut is not None:
            yield Evidence(Kind.FLOOR, self.shortcut, self.question)
        if self.witness is not None:
            yield Evidence(Kind.WITNESS, self.witness, self.question)
        trained = self.trained if self.best_trained is None else self.best_trained
        if trained is not None:
            yield Evidence(Kind.TRAINED, trained, self.question, solved=self.solved.count > 0)


def judged(found: Scores) -> tuple[Word, str]:
    """The word for it, and the sentence that says why."""
    solved = found.solved
    judgement = conclude(found.question, Goal(found.ceiling, found.tolerance, found.sign), found.evidence())
    if judgement.conclusion is Conclusion.CONTRADICTION:
        return Word.CONTRADICTION, f"contradiction: {judgement.complaint.rstrip('.')}"
    if judgement.conclusion is Conclusion.CANNOT and found.proved is not None:
        most = "at most" if found.sign > 0 else "at best"
        why = f"cannot: {most} {found.proved.score:.4f} is proved for {found.proved.models}"
        return Word.CANNOT, f"{why}; {_within(found, found.proved)}"
    runs = f"{solved.count} of {solved.of} seeds solved it"
    if solved.count and solved.count == solved.of:
        return Word.LEARNS, f"can, and learns it: {runs}"
    if solved.count:
        return Word.LEARNS, f"can, and learns it on some seeds: {runs}"
    if found.witness is not None and judgement.conclusion is Conclusion.CAN:
        written = f"weights that reach {found.witness:.4f} are written down"
        return Word.NOT_LEARNED, f"can, and did not learn it here: {written}, {_trained(found)}"
    if found.floor is not None:
        return Word.UNKNOWN, f"unknown: {_beside_the_floor(found, found.floor)}"
    known = "no weights are written down for this setting"
    if found.witness is not None:
        known = f"the best weights known reach {found.witness:.4f}"
    return Word.UNKNOWN, f"unknown: {_trained(found)}, {runs}, and {known}; that proves nothing"


def _trained(found: Scores) -> str:
    return "every run failed" if found.trained is None else f"training reached {found.trained:.4f}"


def _beside_the_floor(found: Scores, floor: float) -> str:
    """What training reached on data whose ceiling nobody knows."""
    if found.trained is None or found.sign * (found.trained - floor) > 0:
        return f"no ceiling is known; {_trained(found)}, where a shortcut has {floor:.4f}"
    shortcut = f"no better than a shortcut, which has {floor:.4f}"
    return f"{_trained(found)}, {shortcut}: that says nothing about the mechanism"


def _within(found: Scores, proved: ProvedCeiling) -> str:
    """Whether it learned what is left to it."""
    if found.trained is not None and found.reaches(found.trained, proved.score, CLOSE):
        return f"what it can it learned: {found.trained:.4f}"
    if found.witness is not None and found.reaches(found.witness, proved.score, CLOSE):
        written = f"weights that reach {found.witness:.4f} are written down"
        return f"{written}, and it did not learn that here: {_trained(found)}"
    return f"{_trained(found)}; whether it can do better is unknown"


def best(scores: Iterable[float | None], sign: int) -> float | None:
    """The best of the scores that there are."""
    return max((score for score in scores if score is not None), key=lambda each: sign * each, default=None)
