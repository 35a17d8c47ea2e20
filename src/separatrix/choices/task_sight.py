"""What is known of a mechanism on a task at a length: what is proved, written down or trained; or nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import torch

from separatrix.choices.budget import Budget
from separatrix.choices.sight import CANNOT, CONTRADICTION, UNKNOWN, Cell
from separatrix.errors import raised
from separatrix.judgement import Conclusion, Evidence, Goal, Judgement, Kind, Question, conclude
from separatrix.learning import score_of
from separatrix.learning.model import tokens_of
from separatrix.learning.witnesses import witness_for, witnessed
from separatrix.mechanisms import Mechanism
from separatrix.parameters import Parameters, UsageError
from separatrix.tasks import Bound, RealTask, Samples, Split, Task, task_named

if TYPE_CHECKING:
    from separatrix.store import Store

CAN, LEARNED, NOT_LEARNED = "can", "learned", "not learned"
MAX_SCORED_TOKENS, LEAST_SAMPLES = 2**22, 200
"""Written weights are scored on the number of test samples that `learn` uses, or on fewer if these have more
tokens than that; never on fewer samples than this."""
TRAINED_DTYPE = "float32"
"""The format in which models are trained."""
MODEL_PARTS = ("width", "heads", "depth", "key_width", "mlp", "conv", "rope", "norm", "out_norm")
"""What a class of models is known by, of the names of a setting; the others are about training."""


@cache
def task_at(name: str, n: int) -> Task | None:
    """A task at n tokens, or at the next even number if it has no odd ones; None if it has no such length.

    A task without a parameter n has one length, that of its inputs at its defaults.

    >>> task_at("needle", 63).parameters.n, task_at("needle", 131_072), task_at("mqar", 64)
    (64, None, None)
    >>> task_at("mqar", 48).parameters.pairs
    16
    """
    kind = task_named(name)
    if "n" not in kind.schema.model_fields:
        task = kind.read()
        return task if not isinstance(task, RealTask) and tokens_of(task) == n else None
    if (task_here := _read(kind, n)) is not None:
        return task_here
    around = _read(kind, n - 1), _read(kind, n + 1)
    return None if None in around else around[1]


def _read(kind: type[Task], n: int) -> Task | None:
    try:
        return kind.read({"n": n})
    except UsageError:
        return None


def task_sight(name: str, mechanism: Mechanism, budget: Budget, store: Store | None = None) -> Cell:
    """What is known of a mechanism on the task `name` at this length, in this format."""
    task = task_at(name, budget.n)
    runs = [] if store is None else list(_stored_runs(name, mechanism, store))
    if task is None:
        why = f"{name} has no length near n={budget.n:,}{_aside(runs)}"
        return Cell(name, UNKNOWN, UNKNOWN, None, why, f"separatrix learn {name} {mechanism.spelled}")
    known = _Known(task, mechanism, budget.dtype, runs)
    judgement = conclude(known.question, known.goal, known.evidence())
    given = "".join(f" {key}={value}" for key, value in task.parameters.chosen().items())
    command = f"separatrix learn {name} {mechanism.spelled}{given}"
    n = getattr(task.parameters, "n", budget.n)
    word, kind, said = known.describe(judgement)
    if kind == "trained" and store is not None:
        asked = f"task={name} mechanism={mechanism.spelled}{given}"
        command = f"separatrix results --kind training {asked} --store {store.where}"
    return Cell(name, word, kind, n, f"{said}{_aside(judgement.set_aside)}", command)


@dataclass(frozen=True)
class _Tested:
    """The samples that weights are scored on, and what the best rule and a shortcut score there."""

    samples: Samples
    ceiling: Bound
    floor: Bound


@lru_cache(maxsize=2)
def _tested(task: Task) -> _Tested:
    setting = task.default_setting()
    count = max(LEAST_SAMPLES, min(setting.tests, MAX_SCORED_TOKENS // tokens_of(task)))
    samples = task.samples(count, Split.TEST)
    return _Tested(samples, task.ceiling(samples), task.floor(samples, setting))


@dataclass
class _Known:
    """What is known of one mechanism on one task in one format; `problem` says why weights have no score."""

    task: Task
    mechanism: Mechanism
    dtype: str
    runs: Sequence[Evidence]
    problem: str = field(default="", init=False)

    @property
    def question(self) -> Question:
        """What is asked: of models at the sizes that `learn` takes by default."""
        setting = self.task.default_setting()
        return _question(
            self.task.name, self.mechanism.spelled, _texts(self.task.parameters), _texts(setting), self.dtype
        )

    @property
    def goal(self) -> Goal:
        """What has to be reached. On real data no ceiling is known, and none is drawn."""
        if isinstance(self.task, RealTask):
            return Goal(1.0 if self.task.answers.sign > 0 else 0.0, self.task.tolerance, self.task.answers.sign)
        return Goal(_tested(self.task).ceiling.score, self.task.tolerance, self.task.answers.sign)

    def evidence(self) -> Iterator[Evidence]:
        """Yield stored runs, and what is proved and measured here."""
        yield from self.runs
        if isinstance(self.task, RealTask):
            return
        tested, question = _tested(self.task), self.question
        proved = self.task.proved_ceiling(self.mechanism, self.task.default_setting())
        if proved is not None:
            margin = self.task.proof_margin(proved, tested.samples)
            yield Evidence(Kind.PROOF, proved.score, question, margin=margin)
            if tested.floor.universal:
                yield Evidence(Kind.FLOOR, tested.floor.score, question)
        score = self._written_score(tested.samples)
        if score is not None:
            yield Evidence(Kind.WITNESS, score, question)

    def _written_score(self, samples: Samples) -> float | None:
        """The score of written weights, with all numbers of the model in the format that is asked for."""
        if self.mechanism.spelled not in witnessed(self.task):
            return None
        try:
            model = witness_for(self.task, self.mechanism, self.task.default_setting())
            if model is None:
                return None
            return score_of(_InFormat(model, getattr(torch, self.dtype)), self.task, samples)
        except (RuntimeError, NotImplementedError) as error:  # torch has no such operation in this format
            self.problem = f"; written weights do not run in {self.dtype}: {raised(error)}"
            return None

    def describe(self, judgement: Judgement) -> tuple[str, str, str]:
        """The word, the kind of evidence, and a sentence."""
        because, best = judgement.because, judgement.best
        if judgement.conclusion is Conclusion.CONTRADICTION:
            return CONTRADICTION, CONTRADICTION, judgement.complaint
        trained = [run for run in self.runs if run not in judgement.set_aside]
        solved = sum(run.solved for run in trained)
        scores = sorted(run.score for run in trained)
        ends = f"{scores[0]:.4f} to {scores[-1]:.4f}" if scores else ""
        ran = f"{solved} of {len(trained)} runs solved it, with scores of {ends}"
        if judgement.conclusion is Conclusion.CANNOT and because is not None:
            proved = self.task.proved_ceiling(self.mechanism, self.task.default_setting())
            models = "" if proved is None else f": proved for {proved.models}"
            most = "at most" if self.goal.sign > 0 else "an error of at least"
            return CANNOT, "proved", f"{most} {because.score:.4f}, where {self._best_rule}{models}"
        if judgement.conclusion is Conclusion.CAN and because is not None:
            if because.kind is Kind.TRAINED:
                return LEARNED, "trained", ran
            said = f"written weights score {because.score:.4f} in {self.dtype}, where {self._best_rule}"
            return CAN, "written down", f"{said}; whether they are learned is not known"
        if trained:
            return NOT_LEARNED, "trained", ran
        if best is not None:
            said = f"written weights score {best.score:.4f} in {self.dtype}, where {self._best_rule}"
            return UNKNOWN, UNKNOWN, f"{said}; other weights may do better"
        return UNKNOWN, UNKNOWN, f"nothing is proved, and no weights or runs are known{self.problem}"

    @property
    def _best_rule(self) -> str:
        tested = _tested(self.task)
        return f"the best rule has {tested.ceiling.score:.4f} on the same {len(tested.samples):,} samples"


class _InFormat(torch.nn.Module):
    """A model with its weights, inputs and all that it computes in a number format."""

    def __init__(self, model: torch.nn.Module, dtype: torch.dtype) -> None:
        super().__init__()
        self.model, self.dtype = model.to(dtype), dtype

    def forward(self, inputs: Any, present: Any, last: int) -> Any:
        """The answers of the model, as float32."""
        given = inputs.to(self.dtype) if inputs.is_floating_point() else inputs
        said, state = self.model(given, present, last=last)
        return said.float(), state


def _texts(parameters: Parameters) -> dict[str, str]:
    return {name: str(value) for name, value in parameters.shown().items()}


def _question(
    name: str, mechanism: str, parameters: Mapping[str, str], setting: Mapping[str, str], dtype: str
) -> Question:
    """The question that scores of such models on such a task answer."""
    own = {key: value for key, value in parameters.items() if key != "n"}
    n = int(parameters["n"]) if "n" in parameters else None
    return Question(name, n, mechanism, own, {part: setting[part] for part in MODEL_PARTS}, dtype)


def _stored_runs(name: str, mechanism: Mechanism, store: Store) -> Iterator[Evidence]:
    """Yield the runs from scratch that a store has, each with the question that it answers."""
    from separatrix.store import results

    wanted = {"task": name, "mechanism": mechanism.spelled, "start": "scratch", "purpose": "test"}
    try:
        found = results(store, kind="training", **wanted)
    except UsageError:
        return  # it has no training runs
    fields = task_named(name).schema.model_fields
    for row in found.iter_rows(named=True):
        given = json.loads(row["parameters"])
        if row.get("score") is None or not all(part in given for part in MODEL_PARTS):
            continue
        own = {key: str(value) for key, value in given.items() if key in fields}
        question = _question(name, mechanism.spelled, own, given, TRAINED_DTYPE)
        yield Evidence(Kind.TRAINED, float(row["score"]), question, solved=row["outcome"] == "solved")


def _aside(evidence: Sequence[Evidence]) -> str:
    """That runs are stored which answer other questions."""
    runs = [each for each in evidence if each.kind is Kind.TRAINED]
    if not runs:
        return ""
    lengths = sorted({each.question.n for each in runs if each.question.n is not None})
    where = f" (n={', '.join(f'{n:,}' for n in lengths)}; {TRAINED_DTYPE})" if lengths else ""
    count = "1 stored run is" if len(runs) == 1 else f"{len(runs)} stored runs are"
    return f"; {count} of another length, size or format{where} and not counted"
