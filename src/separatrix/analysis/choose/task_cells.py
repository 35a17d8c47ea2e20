"""Cells of a choice for tasks: proofs, hand-written weights and stored training runs at a length."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import torch

from separatrix.analysis.choose.budget import Budget
from separatrix.analysis.choose.construction_cells import CellWord, ChoiceCell
from separatrix.core.errors import describe_failure
from separatrix.core.judgement import (
    Conclusion,
    Evidence,
    EvidenceKind,
    EvidenceQuestion,
    Goal,
    Judgement,
    conclude,
    highest_share,
    lowest_expected_share,
)
from separatrix.core.parameters import Parameters, UsageError
from separatrix.mechanisms import Mechanism
from separatrix.training.learning import score_model
from separatrix.training.learning.witnesses import build_witness, witnessed_mechanisms
from separatrix.training.tasks import Bound, Metric, RealTask, Samples, Split, Task, task_named

if TYPE_CHECKING:
    from separatrix.sweeps.store import Store

MAX_SCORED_TOKENS = 2**22
"""Hand-written weights are scored on the test samples of `learn`, or on fewer if these have more tokens."""
FIRST_SAMPLES = (500, 2000)
"""Fewer samples that are tried first; they suffice for weights that are far from the goal."""
TRAINED_DTYPE = "float32"
"""The format in which models are trained."""
MODEL_PARTS = ("width", "heads", "depth", "key_width", "mlp", "conv", "rope", "norm", "out_norm")
"""The names of a setting that define a class of models; the others are about training."""


@cache
def task_at(name: str, n: int) -> Task | None:
    """Return a task at n tokens, or at n + 1 if it has no odd lengths; None if it has no such length.

    A task without a parameter n has one length, that of its inputs at its defaults.

    >>> task_at("needle", 63).parameters.n, task_at("needle", 131_072), task_at("mqar", 64)
    (64, None, None)
    >>> task_at("mqar", 48).parameters.pairs
    16
    """
    kind = task_named(name)
    if "n" not in kind.schema.model_fields:
        task = kind.read()
        return task if not isinstance(task, RealTask) and task.max_tokens == n else None

    def read(length: int) -> Task | None:
        try:
            return kind.read({"n": length})
        except UsageError:
            return None

    # If n - 1 is a length and n is not, the task has no odd lengths: one token more counts as n.
    return read(n) or (read(n + 1) if read(n - 1) is not None else None)


def task_cell(name: str, mechanism: Mechanism, budget: Budget, store: Store | None = None) -> ChoiceCell:
    """Return the cell of a mechanism on the task `name` at this length, in this format."""
    task = task_at(name, budget.n)
    runs = [] if store is None else list(_stored_runs(name, mechanism, store))
    command = f"separatrix learn {name} {mechanism.spelled}"
    if task is None:
        reason = f"{name} has no length near n={budget.n:,}{_describe_unused(runs)}"
        return ChoiceCell(name, "not known", "not known", None, reason, command)
    evidence = _TaskEvidence(task, mechanism, budget.dtype, runs)
    judgement = conclude(evidence.question, evidence.goal, evidence.collect())
    word, kind, text = evidence.describe(judgement)
    parameters = "".join(f" {key}={value}" for key, value in task.parameters.non_default_values().items())
    command += parameters
    if kind == "trained" and store is not None:
        query = f"task={name} mechanism={mechanism.spelled}{parameters}"
        command = f"separatrix results --kind training {query} --store {store.location}"
    n, text = getattr(task.parameters, "n", budget.n), f"{text}{_describe_unused(judgement.set_aside)}"
    best_score = None if evidence.test is None else evidence.test.ceiling.score
    return ChoiceCell(name, word, kind, n, text, command, score=evidence.score, best_score=best_score)


@dataclass(frozen=True)
class _TestSet:
    """The samples that weights are scored on, and the scores of the best rule and a shortcut on them."""

    samples: Samples
    ceiling: Bound
    floor: Bound

    def rules_out(self, score: float, tolerance: float) -> bool:
        """Whether an accuracy is below the goal by more than chance in these samples explains."""
        count = len(self.samples)
        return highest_share(score, count) < lowest_expected_share(self.ceiling.score, count) - tolerance


@lru_cache(maxsize=4)
def _draw_test_set(task: Task, count: int) -> _TestSet:
    samples = task.samples(count, Split.TEST)
    return _TestSet(samples, task.ceiling(samples), task.floor(samples))


@dataclass
class _TaskEvidence:
    """The evidence about one mechanism on one task in one format, at the default sizes of `learn`."""

    task: Task
    mechanism: Mechanism
    dtype: str
    runs: Sequence[Evidence]
    test: _TestSet | None = field(default=None, init=False)
    """None on real data, whose ceiling is not known."""
    score: float | None = field(default=None, init=False)
    """The score of hand-written weights, with all numbers of the model in the format; None without any."""
    problem: str = field(default="", init=False)
    """The reason why hand-written weights have no score."""

    def __post_init__(self) -> None:
        self.setting = self.task.default_setting()
        self.proved = None
        if isinstance(self.task, RealTask):
            return
        self.proved = self.task.proved_ceiling(self.mechanism, self.setting)
        most = MAX_SCORED_TOKENS // self.task.max_tokens
        count = max(FIRST_SAMPLES[0], min(self.setting.tests, most))
        model = None
        if self.mechanism.spelled in witnessed_mechanisms(self.task):
            model = build_witness(self.task, self.mechanism, self.setting)
        if model is None:
            self.test = _draw_test_set(self.task, count)
        else:
            self._score(_ModelInFormat(model, getattr(torch, self.dtype)), count)

    def _score(self, model: torch.nn.Module, count: int) -> None:
        """Score hand-written weights, on few samples first: most are far from the goal."""
        first_counts = FIRST_SAMPLES if self.task.metric is Metric.ACCURACY else ()
        try:
            for samples in (*(first for first in first_counts if first < count), count):
                self.test = _draw_test_set(self.task, samples)
                self.score = score_model(model, self.task, self.test.samples)
                if samples < count and self.test.rules_out(self.score, self.task.tolerance):
                    break
        except (RuntimeError, NotImplementedError) as error:  # torch has no such operation in this format
            self.problem = f"; hand-written weights do not run in {self.dtype}: {describe_failure(error)}"

    @property
    def question(self) -> EvidenceQuestion:
        """The question, about models of the sizes that `learn` uses by default."""
        texts = _as_texts(self.task.parameters), _as_texts(self.setting)
        return _build_question(self.task.name, self.mechanism.spelled, *texts, self.dtype)

    @property
    def goal(self) -> Goal:
        """The score to reach; on real data the best score that any rule could have."""
        sign = self.task.metric.sign
        return Goal(max(sign, 0) if self.test is None else self.test.ceiling.score, self.task.tolerance, sign)

    def collect(self) -> Iterator[Evidence]:
        """Yield stored runs, proofs and scores."""
        yield from self.runs
        if self.test is not None and self.proved is not None:
            margin = self.task.proof_margin(self.proved, self.test.samples)
            yield Evidence(EvidenceKind.PROOF, self.proved.score, self.question, margin=margin)
            if self.test.floor.universal:
                yield Evidence(EvidenceKind.FLOOR, self.test.floor.score, self.question)
        if self.score is not None:
            yield Evidence(EvidenceKind.WITNESS, self.score, self.question)

    def describe(self, judgement: Judgement) -> tuple[CellWord, str, str]:
        """Return the word, the kind of evidence, and a sentence."""
        conclusion, because = judgement.conclusion, judgement.because
        if conclusion is Conclusion.CONTRADICTION:
            return "contradiction", "contradiction", judgement.complaint
        if conclusion is Conclusion.CANNOT and because is not None:
            models = "" if self.proved is None else f"; proved for {self.proved.models}"
            limit = "at most" if self.goal.sign > 0 else "an error of at least"
            return "cannot", "proved", f"{limit} {because.score:.4f}, where {self._best_rule}{models}"
        training_runs = [run for run in self.runs if run not in judgement.set_aside]
        is_learned = because is not None and because.kind is EvidenceKind.TRAINED
        if training_runs and (conclusion is not Conclusion.CAN or is_learned):
            scores = sorted(run.score for run in training_runs)
            solved_count = sum(run.solved for run in training_runs)
            ends = f"with scores of {scores[0]:.4f} to {scores[-1]:.4f}"
            text = f"{solved_count} of {len(training_runs)} runs solved it, {ends}"
            return "learned" if is_learned else "not learned", "trained", text
        if judgement.best is None:
            return "not known", "not known", f"no proof, weights or runs are known{self.problem}"
        score = judgement.best.score if because is None else because.score
        text = f"hand-written weights score {score:.4f} in {self.dtype}, where {self._best_rule}"
        if conclusion is Conclusion.CAN:
            return "can", "written down", f"{text}; whether training finds them is not known"
        return "not known", "not known", f"{text}; other weights may do better"

    @property
    def _best_rule(self) -> str:
        if self.test is None:
            return "no best rule is known"
        count = len(self.test.samples)
        return f"the best rule has {self.test.ceiling.score:.4f} on the same {count:,} samples"


class _ModelInFormat(torch.nn.Module):
    """A model that computes in a number format: weights, inputs and all results in between."""

    def __init__(self, model: torch.nn.Module, dtype: torch.dtype) -> None:
        super().__init__()
        self.model, self.dtype = model.to(dtype), dtype

    def forward(self, inputs: Any, present: Any, last: int) -> Any:
        """Return the answers of the model, as float32."""
        # Whole numbers are indices of tokens, which no format rounds.
        inputs = inputs.to(self.dtype) if inputs.is_floating_point() else inputs
        answers, state = self.model(inputs, present, last=last)
        return answers.float(), state


def _as_texts(parameters: Parameters) -> dict[str, str]:
    return {name: str(value) for name, value in parameters.as_json().items()}


def _build_question(
    name: str, mechanism: str, parameters: Mapping[str, str], setting: Mapping[str, str], dtype: str
) -> EvidenceQuestion:
    """Return the question that scores of such models on such a task answer."""
    other_parameters = {key: value for key, value in parameters.items() if key != "n"}
    n = int(parameters["n"]) if "n" in parameters else None
    return EvidenceQuestion(name, n, mechanism, other_parameters, {part: setting[part] for part in MODEL_PARTS}, dtype)


def _stored_runs(name: str, mechanism: Mechanism, store: Store) -> Iterator[Evidence]:
    """Yield the runs from scratch in a store, each with the question that it answers."""
    from separatrix.sweeps.store import results

    conditions: dict[str, Any] = {"task": name, "mechanism": mechanism.spelled}
    try:
        frame = results(store, kind="training", start="scratch", purpose="test", **conditions)
    except UsageError:
        return  # the store has no training runs
    task_parameters = task_named(name).schema.model_fields
    for row in frame.iter_rows(named=True):
        parameters = json.loads(row["parameters"])
        if row.get("score") is None or not all(part in parameters for part in MODEL_PARTS):
            continue
        task_values = {key: str(value) for key, value in parameters.items() if key in task_parameters}
        question = _build_question(name, mechanism.spelled, task_values, parameters, TRAINED_DTYPE)
        yield Evidence(EvidenceKind.TRAINED, float(row["score"]), question, solved=row["outcome"] == "solved")


def _describe_unused(evidence: Sequence[Evidence]) -> str:
    """Mention stored runs that answer other questions."""
    runs = [item for item in evidence if item.kind is EvidenceKind.TRAINED]
    if not runs:
        return ""
    lengths = sorted({run.question.n for run in runs if run.question.n is not None})
    lengths_text = f" (n={', '.join(f'{n:,}' for n in lengths)}; {TRAINED_DTYPE})" if lengths else ""
    count = "1 stored run is" if len(runs) == 1 else f"{len(runs)} stored runs are"
    return f"; {count} of another length, size or format{lengths_text} and not counted"
