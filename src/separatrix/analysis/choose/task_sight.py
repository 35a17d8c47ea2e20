"""What is known of a mechanism on a task at a length: what is proved, written down or trained; or nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import torch

from separatrix.analysis.choose.budget import Budget
from separatrix.analysis.choose.sight import CANNOT, CONTRADICTION, UNKNOWN, Cell
from separatrix.core.errors import raised
from separatrix.core.judgement import (
    Conclusion,
    Evidence,
    Goal,
    Judgement,
    Kind,
    Question,
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

CAN, LEARNED, NOT_LEARNED = "can", "learned", "not learned"
MAX_SCORED_TOKENS = 2**22
"""Written weights are scored on the number of test samples that `learn` uses, or on fewer if these have more
tokens than that."""
FIRST_SAMPLES = (500, 2000)
"""Before, they are scored on fewer, which is enough for weights that are far from the goal."""
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
        return task if not isinstance(task, RealTask) and task.max_tokens == n else None
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
    best = None if known.tested is None else known.tested.ceiling.score
    evidence = f"{said}{_aside(judgement.set_aside)}"
    return Cell(name, word, kind, n, evidence, command, score=known.written, best_score=best)


@dataclass(frozen=True)
class _Tested:
    """The samples that weights are scored on, and what the best rule and a shortcut score there."""

    samples: Samples
    ceiling: Bound
    floor: Bound

    def is_out_of_reach_of(self, score: float, tolerance: float) -> bool:
        """Whether an accuracy is below the goal by more than chance in these samples explains."""
        count = len(self.samples)
        return highest_share(score, count) < lowest_expected_share(self.ceiling.score, count) - tolerance


@lru_cache(maxsize=4)
def _tested(task: Task, count: int) -> _Tested:
    samples = task.samples(count, Split.TEST)
    return _Tested(samples, task.ceiling(samples), task.floor(samples))


@dataclass
class _Known:
    """What is known of one mechanism on one task in one format."""

    task: Task
    mechanism: Mechanism
    dtype: str
    runs: Sequence[Evidence]
    tested: _Tested | None = field(default=None, init=False)
    """None on real data, whose ceiling is not known."""
    written: float | None = field(default=None, init=False)
    """The score of written weights, with all numbers of the model in the format; None without weights."""
    problem: str = field(default="", init=False)
    """Why written weights have no score."""

    def __post_init__(self) -> None:
        if isinstance(self.task, RealTask):
            return
        most = MAX_SCORED_TOKENS // self.task.max_tokens
        full = max(FIRST_SAMPLES[0], min(self.task.default_setting().tests, most))
        model = self._written_model()
        if model is None:
            self.tested = _tested(self.task, full)
            return
        stages = FIRST_SAMPLES if self.task.metric is Metric.ACCURACY else ()
        try:
            for count in (*(few for few in stages if few < full), full):
                self.tested = _tested(self.task, count)
                self.written = score_model(model, self.task, self.tested.samples)
                if count < full and self.tested.is_out_of_reach_of(self.written, self.task.tolerance):
                    break
        except (RuntimeError, NotImplementedError) as error:  # torch has no such operation in this format
            self.problem = f"; written weights do not run in {self.dtype}: {raised(error)}"

    def _written_model(self) -> torch.nn.Module | None:
        if self.mechanism.spelled not in witnessed_mechanisms(self.task):
            return None
        model = build_witness(self.task, self.mechanism, self.task.default_setting())
        return None if model is None else _InFormat(model, getattr(torch, self.dtype))

    @property
    def question(self) -> Question:
        """What is asked: of models at the sizes that `learn` takes by default."""
        setting = self.task.default_setting()
        return _question(
            self.task.name, self.mechanism.spelled, _texts(self.task.parameters), _texts(setting), self.dtype
        )

    @property
    def goal(self) -> Goal:
        """What has to be reached; on real data the best score that any rule could have."""
        sign = self.task.metric.sign
        best = max(sign, 0) if self.tested is None else self.tested.ceiling.score
        return Goal(best, self.task.tolerance, sign)

    def evidence(self) -> Iterator[Evidence]:
        """Yield stored runs, and what is proved and measured here."""
        yield from self.runs
        if self.tested is None:
            return
        proved = self.task.proved_ceiling(self.mechanism, self.task.default_setting())
        if proved is not None:
            margin = self.task.proof_margin(proved, self.tested.samples)
            yield Evidence(Kind.PROOF, proved.score, self.question, margin=margin)
            if self.tested.floor.universal:
                yield Evidence(Kind.FLOOR, self.tested.floor.score, self.question)
        if self.written is not None:
            yield Evidence(Kind.WITNESS, self.written, self.question)

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
        if self.tested is None:
            return "no best rule is known"
        count = len(self.tested.samples)
        return f"the best rule has {self.tested.ceiling.score:.4f} on the same {count:,} samples"


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
    from separatrix.sweeps.store import results

    wanted: dict[str, Any] = {
        "task": name,
        "mechanism": mechanism.spelled,
        "start": "scratch",
        "purpose": "test",
    }
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
    lengths = sorted({run.question.n for run in runs if run.question.n is not None})
    where = f" (n={', '.join(f'{n:,}' for n in lengths)}; {TRAINED_DTYPE})" if lengths else ""
    count = "1 stored run is" if len(runs) == 1 else f"{len(runs)} stored runs are"
    return f"; {count} of another length, size or format{where} and not counted"
