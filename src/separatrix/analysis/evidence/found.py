"""What was learned of a task: for each mechanism five numbers, how it was trained, and a sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, cast

from separatrix.analysis.evidence.conclusions import BesideFloor, beside_floor, conclusions
from separatrix.analysis.evidence.estimates import Difference, SeedSummary, Share
from separatrix.analysis.evidence.sentences import Word
from separatrix.core.numbers import format_exact
from separatrix.core.result import Result, Row
from separatrix.training.tasks import Bound, ProvedCeiling, Setting, Task

if TYPE_CHECKING:
    from separatrix.core.schemas import evidence as documents

Curve = tuple[tuple[int, float], ...]
"""(step, score on the validation samples)."""


@dataclass(frozen=True)
class Run:
    """One training run from scratch, with the test data looked at once."""

    seed: int
    score: float
    """On the test samples; of a run that diverged, with its last weights."""
    steps: int
    solved_at: int | None
    diverged_at: int | None
    seconds: float
    curve: Curve = ()
    further: Mapping[int, float] = field(default_factory=dict)
    """On the test samples of further lengths, where the task names some."""


@dataclass(frozen=True)
class Pilot:
    """What a learning rate did on the pilot seeds: the mean score on the validation samples."""

    rate: Fraction
    score: float | None
    """None where there was nothing to choose."""


@dataclass(frozen=True)
class MechanismEvidence:
    """All that is known of one mechanism on one task."""

    mechanism: str
    setting: Setting
    proved: ProvedCeiling | None
    witness: float | None
    tuned: float | None
    """The witness after training from it with noise: the better lower bound on what can be expressed."""
    tuned_scores: tuple[float, ...]
    """The same of every such run; `tuned` is the one that did best on validation samples."""
    pilots: tuple[Pilot, ...]
    rate: Fraction
    window: tuple[Fraction, ...]
    """The rates whose pilots came as close to the best as the task tells solved from unsolved."""
    runs: tuple[Run, ...]
    parameters: int | None
    state_bytes: int | None
    failed: tuple[str, ...]
    """What runs raised that have no score."""
    word: Word
    sentence: str

    @property
    def trained(self) -> SeedSummary | None:
        """The test scores of all seeds."""
        return SeedSummary.of([run.score for run in self.runs]) if self.runs else None

    @property
    def further(self) -> dict[int, SeedSummary]:
        """The test scores of all seeds at each further length."""
        lengths = list(self.runs[0].further) if self.runs else []
        return {n: SeedSummary.of([run.further[n] for run in self.runs]) for n in lengths}

    @property
    def solved(self) -> Share:
        """How many of the seeds solved the task; a run that failed did not."""
        return solved_share(self.runs, self.failed)

    def as_json(self) -> dict[str, Any]:
        trained = self.trained
        return {
            "mechanism": self.mechanism,
            "witness": self.witness,
            "tuned_witness": self.tuned,
            "tuned_seeds": list(self.tuned_scores),
            "proved_ceiling": None if self.proved is None else self.proved.score,
            "proved_for": None if self.proved is None else self.proved.models,
            "trained": {
                "mean": None if trained is None else trained.mean,
                "median": None if trained is None else trained.median,
                "interval": None if trained is None else trained.interval,
                "seeds": [run.score for run in self.runs],
            },
            "further_lengths": {
                str(n): {
                    "mean": summary.mean,
                    "median": summary.median,
                    "interval": summary.interval,
                    "seeds": list(summary.scores),
                }
                for n, summary in self.further.items()
            },
            "solved": self.solved.as_json(),
            "lr": format_exact(self.rate),
            "lr_window": [format_exact(each) for each in self.window],
            "pilots": {format_exact(pilot.rate): pilot.score for pilot in self.pilots},
            "state_bytes": self.state_bytes,
            "parameters": self.parameters,
            "steps_to_solve": [run.solved_at for run in self.runs],
            "diverged": sum(run.diverged_at is not None for run in self.runs),
            "failed": list(self.failed),
            "setting": self.setting.shown(),
            "word": self.word.value,
            "sentence": self.sentence,
        }


@dataclass(frozen=True)
class EqualState:
    """The mechanisms after the first once more, with keys so wide that they carry as much as it does."""

    reference: str
    tokens: int
    """After so many tokens states are compared: the longest input of the task."""
    state_bytes: int
    """What the reference carries then."""
    mechanisms: tuple[MechanismEvidence, ...]
    paired: tuple[Difference, ...]
    """The reference among them, as it was."""
    left_out: tuple[str, ...] = ()
    """Mechanisms that carry nothing from token to token."""

    def ratio(self, each: MechanismEvidence) -> float | None:
        """How many times the state of the reference a mechanism carries: what no key width took away."""
        return None if each.state_bytes is None else each.state_bytes / self.state_bytes

    def as_json(self) -> dict[str, Any]:
        return {
            "reference": self.reference,
            "tokens": self.tokens,
            "state_bytes": self.state_bytes,
            "mechanisms": [
                {
                    **mechanism.as_json(),
                    "key_width": mechanism.setting.keys,
                    "state_ratio": self.ratio(mechanism),
                }
                for mechanism in self.mechanisms
            ],
            "paired": [each.as_json() for each in self.paired],
            "left_out": list(self.left_out),
        }


@dataclass(frozen=True, repr=False)
class Learned(Result):
    """What was learned of a task with some mechanisms."""

    kind: ClassVar[str] = "learned"
    task: Task
    setting: Setting
    ceiling: Bound
    floor: Bound
    mechanisms: tuple[MechanismEvidence, ...]
    paired: tuple[Difference, ...]
    equal_state: EqualState | None = None
    """The same at equal state, where that was asked for."""

    @property
    def states_differ(self) -> bool:
        """Whether one mechanism carries twice as much as another, or more."""
        carried = [mechanism.state_bytes for mechanism in self.mechanisms if mechanism.state_bytes]
        return len(carried) > 1 and max(carried) >= 2 * min(carried)

    @property
    def spelled(self) -> str:
        """The task, and what it was learned with, as far as they differ from their defaults."""
        usual = self.task.default_setting().shown()
        own = {name: value for name, value in self.setting.shown().items() if name != "rates"}
        return " ".join(
            (self.task.spelling, *(f"{name}={value}" for name, value in own.items() if value != usual[name]))
        )

    def alone(self) -> Part:
        """As the only part of a page."""
        return Part(self.task.name, self.task.title, self.task.description, (self,))

    @property
    def standings(self) -> dict[str, BesideFloor]:
        """Where each mechanism stands beside the floor; a run that failed counts as worse than any score."""
        floor, sign = self.floor.score, self.task.metric.sign

        def standing(evidence: MechanismEvidence) -> BesideFloor:
            if evidence.proved is not None and sign * (evidence.proved.score - floor) < 0:
                return BesideFloor.UNABLE
            scores = [run.score for run in evidence.runs]
            failed = [-sign * math.inf] * len(evidence.failed)
            return beside_floor(SeedSummary.of([*scores, *failed]) if scores else None, floor, sign)

        return {evidence.mechanism: standing(evidence) for evidence in self.mechanisms}

    @property
    def conclusions(self) -> tuple[str, ...]:
        """What may be said of mechanisms beside a floor, in plain words."""
        return conclusions(self.standings, self.paired, self.task.metric.sign)

    @property
    def summary(self) -> str:
        """The median score of each mechanism between floor and ceiling."""
        medians = [
            f"{row.mechanism} {'failed' if row.trained is None else format(row.trained.median, '.4f')}"
            for row in self.mechanisms
        ]
        around = f"ceiling {self.ceiling.score:.4f}, floor {self.floor.score:.4f}"
        return f"{self.task.spelling}: {', '.join(medians)}; {around}"

    def rows(self) -> list[Row]:
        """One row for each mechanism: what is proved, written down and trained."""
        return [
            {
                "task": self.task.name,
                "mechanism": mechanism.mechanism,
                "proved_ceiling": None if mechanism.proved is None else mechanism.proved.score,
                "witness": mechanism.witness,
                "tuned_witness": mechanism.tuned,
                "mean": None if mechanism.trained is None else mechanism.trained.mean,
                "median": None if mechanism.trained is None else mechanism.trained.median,
                "low": None if mechanism.trained is None else (mechanism.trained.interval or (None, None))[0],
                "high": None
                if mechanism.trained is None
                else (mechanism.trained.interval or (None, None))[1],
                "solved": mechanism.solved.count,
                "of": mechanism.solved.of,
                "lr": float(mechanism.rate),
                "parameters": mechanism.parameters,
                "state_bytes": mechanism.state_bytes,
                "word": mechanism.word.value,
            }
            for mechanism in self.mechanisms
        ]

    def __getitem__(self, mechanism: str) -> MechanismEvidence:
        return next(each for each in self.mechanisms if each.mechanism == mechanism)

    def as_json(self) -> documents.Learned:
        return cast(
            "documents.Learned",
            {
                "task": self.task.name,
                "parameters": self.task.parameters.shown(),
                "setting": self.setting.shown(),
                "score": self.task.metric.value,
                "ceiling": self.ceiling.score,
                "ceiling_by": self.ceiling.basis,
                "floor": self.floor.score,
                "floor_by": self.floor.basis,
                "mechanisms": [mechanism.as_json() for mechanism in self.mechanisms],
                "paired": [each.as_json() for each in self.paired],
                "beside_floor": {name: where.value for name, where in self.standings.items()},
                "equal_state": None if self.equal_state is None else self.equal_state.as_json(),
            },
        )


@dataclass(frozen=True)
class Part:
    """Experiments that belong together, one question of the report."""

    name: str
    title: str
    question: str
    """What is asked, and what is seen."""
    found: tuple[Learned, ...]
    moved: str | None = None
    """The parameter in which they differ, where that is one number."""
    about_rates: bool = False
    """Whether it is about learning rates and steps, and not about scores."""

    @property
    def labels(self) -> tuple[str, ...]:
        """For each experiment the words in which it differs from the others."""
        said = [each.spelled.split() for each in self.found]
        shared = set.intersection(*map(set, said))
        return tuple(
            " ".join(word for word in words if word not in shared) or " ".join(words) for words in said
        )

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "title": self.title, "found": [each.as_json() for each in self.found]}


def solved_share(runs: Sequence[Run], failed: Sequence[str]) -> Share:
    """How many of some runs solved the task, of these and those that failed."""
    return Share(sum(run.solved_at is not None for run in runs), len(runs) + len(failed))


def window(pilots: Sequence[Pilot], sign: int, tolerance: float) -> list[Pilot]:
    """The pilots that are as good as the best, within a tolerance; none of those that failed.

    >>> window([Pilot(Fraction(1), 0.5), Pilot(Fraction(2), 0.9), Pilot(Fraction(3), -math.inf)], 1, 0.01)
    [Pilot(rate=Fraction(2, 1), score=0.9)]
    """
    scores = [0.0 if pilot.score is None else sign * pilot.score for pilot in pilots]
    best = max(scores)
    return [each for each, x in zip(pilots, scores, strict=True) if x > -math.inf and best - x <= tolerance]
