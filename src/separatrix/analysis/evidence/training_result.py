"""Results of training on a task: scores of each mechanism, the way it was trained, and a conclusion."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from separatrix.analysis.evidence.conclusions import BesideFloor, TrainingWord, compare_with_floor, describe_comparisons
from separatrix.analysis.evidence.estimates import PairedDifference, SeedShare, SeedSummary
from separatrix.core.documents import Document, Hidden, Inlined, register_json, shown, shown_as
from separatrix.core.parameters import Parameters
from separatrix.core.result import Result, Row
from separatrix.training.tasks import ProvedCeiling, Setting, Task

register_json(Task, str, lambda task: task.name)
register_json(Setting, dict[str, Any], lambda setting: setting.as_json())

Curve = tuple[tuple[int, float], ...]
"""(step, score on the validation samples)."""


@dataclass(frozen=True)
class SeedRun:
    """One training run from scratch; the test samples were used once."""

    seed: int
    score: float
    """The score on the test samples; of a diverged run, with its last weights."""
    steps: int
    solved_at: int | None
    diverged_at: int | None
    seconds: float
    curve: Curve = ()
    further: Mapping[int, float] = field(default_factory=dict)
    """The scores on test samples of further lengths, if the task has any."""


@dataclass(frozen=True)
class MechanismEvidence(Document):
    """Everything that is known about one mechanism on one task."""

    mechanism: str
    setting: Setting
    proved: Hidden[ProvedCeiling | None]
    witness: float | None
    """The score of hand-written weights."""
    tuned_witness: float | None
    """The score after training from them with noise, of the run that did best on validation samples."""
    tuned_seeds: tuple[float, ...]
    """The scores of all runs from hand-written weights."""
    pilots: Mapping[Fraction, float | None]
    """The mean validation score of the pilot seeds by learning rate; None where there was no choice."""
    lr: Fraction
    """The learning rate that was chosen."""
    lr_window: tuple[Fraction, ...]
    """The learning rates whose pilots are as good as the best, within the tolerance of the task."""
    runs: Hidden[tuple[SeedRun, ...]]
    parameters: int | None
    """The number of parameters of the model."""
    state_bytes: int | None
    failed: tuple[str, ...]
    """The errors of runs without a score."""
    word: TrainingWord
    sentence: str

    @property
    def trained(self) -> SeedSummary | None:
        """The test scores of all seeds; None if every run failed."""
        return self.seed_summary if self.runs else None

    @shown_as("trained")
    def seed_summary(self) -> SeedSummary:
        """The test scores of all seeds."""
        return SeedSummary([run.score for run in self.runs])

    @shown
    def further_lengths(self) -> Mapping[int, SeedSummary]:
        """The scores on samples of other lengths than those trained on."""
        lengths = list(self.runs[0].further) if self.runs else []
        return {n: SeedSummary([run.further[n] for run in self.runs]) for n in lengths}

    @shown
    def solved(self) -> SeedShare:
        """The number of seeds that solved the task; a failed run did not."""
        return count_solved(self.runs, self.failed)

    @shown
    def proved_ceiling(self) -> float | None:
        """The best score that is possible, by a proof."""
        return None if self.proved is None else self.proved.score

    @shown
    def proved_for(self) -> str | None:
        """The class of models that the proof is about."""
        return None if self.proved is None else self.proved.models

    @shown
    def steps_to_solve(self) -> Sequence[int | None]:
        """The step at which each seed had solved the task."""
        return [run.solved_at for run in self.runs]

    @shown
    def diverged(self) -> int:
        """The number of diverged runs."""
        return sum(run.diverged_at is not None for run in self.runs)


@dataclass(frozen=True)
class EqualStateEvidence(Document):
    """A mechanism with keys so wide that its state is about as large as that of the reference."""

    evidence: Inlined[MechanismEvidence]
    key_width: int
    state_ratio: float | None
    """The size of the state, divided by that of the reference."""


@dataclass(frozen=True)
class EqualState(Document):
    """A comparison at equal state: all mechanisms after the first again, with wider or narrower keys."""

    reference: str
    tokens: int
    """The length of the longest input of the task, after which states are compared."""
    state_bytes: int
    """The state of the reference after these tokens."""
    mechanisms: tuple[EqualStateEvidence, ...]
    paired: tuple[PairedDifference, ...]
    """All pairs, with the runs of the reference as they were."""
    left_out: tuple[str, ...] = ()
    """Mechanisms without a state."""


@dataclass(frozen=True, repr=False)
class TrainingResult(Result):
    """The result of training some mechanisms on a task."""

    kind: ClassVar[str] = "learned"
    task: Task
    setting: Setting
    """The model and its training."""
    ceiling: float
    ceiling_by: str
    floor: float
    floor_by: str
    mechanisms: tuple[MechanismEvidence, ...]
    paired: tuple[PairedDifference, ...]
    equal_state: EqualState | None = None
    """The comparison at equal state, if it was requested."""

    @shown
    def parameters(self) -> Mapping[str, int | str]:
        """The parameters of the task."""
        parameters: Parameters = self.task.parameters
        return parameters.as_json()

    @shown_as("score")
    def score_meaning(self) -> str:
        """The meaning of a score."""
        return self.task.metric.value

    @shown
    def beside_floor(self) -> Mapping[str, BesideFloor]:
        """The position of each mechanism beside the floor; a failed run counts as worse than any score."""
        sign = self.task.metric.sign

        def compare(evidence: MechanismEvidence) -> BesideFloor:
            if evidence.proved is not None and sign * (evidence.proved.score - self.floor) < 0:
                return BesideFloor.UNABLE
            scores = [run.score for run in evidence.runs]
            # Without this, a mechanism whose bad seeds crash would look better than one whose bad seeds end.
            failures = [-sign * math.inf] * len(evidence.failed)
            return compare_with_floor(SeedSummary(scores + failures) if scores else None, self.floor, sign)

        return {evidence.mechanism: compare(evidence) for evidence in self.mechanisms}

    @property
    def states_differ(self) -> bool:
        """Whether the state of one mechanism is at least twice as large as that of another."""
        sizes = [evidence.state_bytes for evidence in self.mechanisms if evidence.state_bytes]
        return len(sizes) > 1 and max(sizes) >= 2 * min(sizes)

    @property
    def label(self) -> str:
        """The task and the setting, as far as they differ from their defaults."""
        defaults = self.task.default_setting().as_json()
        values = {name: value for name, value in self.setting.as_json().items() if name != "rates"}
        words = (f"{name}={value}" for name, value in values.items() if value != defaults[name])
        return " ".join((self.task.spelling, *words))

    def as_part(self) -> ReportPart:
        """Return the result as the only part of a page."""
        return ReportPart(self.task.name, self.task.title, self.task.description, (self,))

    @property
    def conclusions(self) -> tuple[str, ...]:
        """Conclusions about the mechanisms, one sentence each."""
        return describe_comparisons(self.beside_floor, self.paired, self.task.metric.sign)

    @property
    def summary(self) -> str:
        """The median score of each mechanism, the ceiling and the floor."""
        summaries = ((evidence.mechanism, evidence.trained) for evidence in self.mechanisms)
        medians = ", ".join(f"{name} {f'{trained.median:.4f}' if trained else 'failed'}" for name, trained in summaries)
        return f"{self.task.spelling}: {medians}; ceiling {self.ceiling:.4f}, floor {self.floor:.4f}"

    def rows(self) -> list[Row]:
        """Return one row for each mechanism, with the proved, hand-written and trained scores."""
        columns = ("mechanism", "proved_ceiling", "witness", "tuned_witness", "parameters", "state_bytes")
        rows = []
        for evidence in self.mechanisms:
            row = {"task": self.task.name, **{column: getattr(evidence, column) for column in columns}}
            row |= dict.fromkeys(("mean", "median", "low", "high"))
            if (summary := evidence.trained) is not None:
                low, high = summary.interval or (None, None)
                row |= {"mean": summary.mean, "median": summary.median, "low": low, "high": high}
            row |= {"solved": evidence.solved.count, "of": evidence.solved.of}
            rows.append({**row, "lr": float(evidence.lr), "word": evidence.word.value})
        return rows

    def __getitem__(self, mechanism: str) -> MechanismEvidence:
        return next(evidence for evidence in self.mechanisms if evidence.mechanism == mechanism)


@dataclass(frozen=True)
class ReportPart(Document):
    """Experiments that belong together: the answer to one question of a report."""

    name: str
    title: str
    question: Hidden[str]
    """The question in full."""
    results: Hidden[tuple[TrainingResult, ...]]
    varied: Hidden[str | None] = None
    """The parameter in which the experiments differ, if that is one number."""
    is_about_rates: Hidden[bool] = False
    """Whether it is about learning rates and steps, instead of scores."""

    @shown_as("found")
    def found_results(self) -> Sequence[TrainingResult]:
        """The result of each experiment."""
        return self.results

    @property
    def labels(self) -> tuple[str, ...]:
        """The words in which each experiment differs from the others."""
        labels = [result.label.split() for result in self.results]
        shared_words = set.intersection(*map(set, labels))
        own_words = [[word for word in words if word not in shared_words] or words for words in labels]
        return tuple(map(" ".join, own_words))


def count_solved(runs: Sequence[SeedRun], errors: Sequence[str]) -> SeedShare:
    """Return how many of all runs, failed ones included, solved the task."""
    return SeedShare(sum(run.solved_at is not None for run in runs), len(runs) + len(errors))
