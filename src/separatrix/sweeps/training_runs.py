"""Training runs as work items: one model, one task, one learning rate, one seed.

The training loop is imported where it runs, because it needs torch and planning does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

from separatrix.core.numbers import format_exact, parse_exact
from separatrix.core.parameters import Parameters, UsageError
from separatrix.mechanisms import Mechanism, mechanism_from
from separatrix.sweeps.code import training_code
from separatrix.sweeps.store import Answer, CellStatus, File
from separatrix.sweeps.store.files import make_curves_file
from separatrix.sweeps.store.schema import TRAINING
from separatrix.sweeps.work import WorkItem
from separatrix.training.tasks import Setting, Task, task_named

if TYPE_CHECKING:
    from separatrix.training.learning import RunResult

find_mechanism = cache(mechanism_from)

SCRATCH, WITNESS = "scratch", "witness"
PILOT, TEST = "pilot", "test"
SCORE_AT = "score_at_"
"""The name of the score at a further length begins with this and ends with the length."""
WEIGHTS = "weights.npz"
"""The file of the final weights, by the names of the model's state dict."""


@dataclass(frozen=True)
class TrainingRun(WorkItem):
    """Everything that determines a run, as text; make one with `training_run`.

    Its findings are `outcome` (solved, unsolved or diverged), `score` on the test samples (none for a pilot),
    `validation_score`, `loss` of the last step, `last_step`, `solved_at`, `diverged_at`, `weight_count`,
    `state_bytes`, and `score_at_N` for each further length of the task. Its files are the curves and the
    final weights.
    """

    kind = TRAINING
    threads = 1  # models are small: two runs on two cores are faster than one run on both
    turn_seconds = 5.0
    has_checkpoints = True
    task: str
    parameters: dict[str, str]
    mechanism: str
    setting: dict[str, str]
    rate: str
    seed: int
    start: str
    purpose: str
    code: str
    device: str = "cpu"

    def __str__(self) -> str:
        return f"the training of {self.mechanism} on {self.task}"

    def identity(self) -> Sequence[Any]:
        request = (self.task, self.parameters, self.mechanism, self.setting, self.rate, self.seed)
        device = () if self.device == "cpu" else (self.device,)
        return *request, self.start, self.purpose, *device

    @property
    def cost_key(self) -> tuple[str, ...]:
        return self.kind, self.task, self.mechanism

    def columns(self) -> dict[str, Any]:
        run = {"rate": self.rate, "start": self.start, "purpose": self.purpose}
        parameters = {"task": self.task, **self.parameters, **run, **self.setting}
        return {"mechanism": self.mechanism, "parameters": parameters, "seed": self.seed}

    def current_code(self) -> str:
        return training_code(task_named(self.task), find_mechanism(self.mechanism), self.start != SCRATCH)

    def estimate_share(self, checkpoint: bytes) -> float:
        from separatrix.training.learning import unpack_arrays

        return float(unpack_arrays(checkpoint)["step"]) / int(self.setting["steps"])

    def compute(self, checkpoint: bytes | None) -> Iterator[bytes | Answer]:
        from separatrix.training.learning import RunConfig, perturb, train_with_checkpoints
        from separatrix.training.learning.witnesses import build_witness

        task, mechanism = task_named(self.task).read(self.parameters), find_mechanism(self.mechanism)
        setting, weights = Setting.read(self.setting), None
        if self.start != SCRATCH:
            weights = build_witness(task, mechanism, setting)
            if weights is None:
                message = f"there are no constructed weights for {self.mechanism} on {task.spelling}"
                yield Answer(status=CellStatus.REFUSED, message=message)
                return
            noise = float(Fraction(self.start.partition(":")[2]))
            weights = perturb(weights, noise, self.seed)
        rate, test = float(Fraction(self.rate)), self.purpose == TEST
        run = RunConfig(task, mechanism, setting, rate, self.seed, weights, test, self.device)
        for output in train_with_checkpoints(run, checkpoint):
            yield output if isinstance(output, bytes) else _make_answer(output)


def training_run(
    task: Task,
    mechanism: Mechanism | str,
    setting: Setting,
    rate: Any,
    seed: int,
    *,
    start: str = SCRATCH,
    pilot: bool = False,
    device: str = "cpu",
) -> TrainingRun:
    """Return a training run as a work item.

    **Arguments:**

    - `task`: the task with its parameters.
    - `mechanism`: an object or its name; a module of the user is identified by its weights, too.
    - `setting`: sizes and steps; those without effect on the run are no part of its identity.
    - `rate`: the learning rate, as exact text or number.
    - `seed`: the seed of weights and batches.
    - `start`: `scratch`, or `witness:NOISE`: constructed weights, with noise of so many times their own root
      mean square; `witness` is `witness:1`.
    - `pilot`: whether the run is not scored on the test samples.
    - `device`: the device of torch; tests run on `cpu` only.

    >>> needle = task_named("needle").read({"n": 64})
    >>> work = training_run(needle, "softmax", needle.default_setting(), "0.01", seed=1)
    >>> str(work), work.start, work.purpose, work.columns()["parameters"]["rate"]
    ('the training of softmax on needle', 'scratch', 'test', '0.01')
    """
    attention = mechanism if isinstance(mechanism, Mechanism) else find_mechanism(mechanism)
    relevant = parameter_texts(setting)
    del relevant["rates"]
    if pilot:
        del relevant["tests"]
    start = normalize_start(start)
    return TrainingRun(
        task=task.name,
        parameters=parameter_texts(task.parameters),
        mechanism=attention.spelled,
        setting=relevant,
        rate=format_exact(parse_rate(rate)),
        seed=seed,
        start=start,
        purpose=PILOT if pilot else TEST,
        code=training_code(type(task), attention, start != SCRATCH),
        device=device,
    )


def parse_rate(rate: Any) -> Fraction:
    """Return a learning rate, exactly as it is written."""
    value = parse_exact(rate, "rate")
    if value <= 0:
        raise UsageError(f"rate={rate} must be above 0")
    return value


def normalize_start(start: str) -> str:
    """Return the start of a run in its unique form.

    >>> normalize_start("witness"), normalize_start("witness:0.50"), normalize_start("scratch")
    ('witness:1', 'witness:0.5', 'scratch')
    """
    word, colon, noise = start.partition(":")
    if start == SCRATCH:
        return start
    if word != WITNESS:
        raise UsageError(f"start={start} is neither scratch nor witness; witness:0.5 has half the noise")
    value = parse_exact(noise, "the noise of start") if colon else Fraction(1)
    if value < 0:
        raise UsageError(f"start={start}: the noise must be 0 or more")
    return f"{WITNESS}:{format_exact(value)}"


def parameter_texts(parameters: Parameters) -> dict[str, str]:
    """Return parameters in the form of the store."""
    return {name: str(value) for name, value in parameters.as_json().items()}


def _make_answer(result: RunResult) -> Answer:
    from separatrix.training.learning import pack_arrays

    findings: Mapping[str, str | int | float | None] = {
        "outcome": str(result.outcome),
        "score": result.score,
        "validation_score": result.validation,
        "loss": result.loss,
        "last_step": result.steps,
        "solved_at": result.solved_at,
        "diverged_at": result.diverged_at,
        "weight_count": result.parameter_count,
        "state_bytes": result.state_bytes,
        **{f"{SCORE_AT}{length}": score for length, score in result.further_scores.items()},
    }
    weights = {name: tensor.cpu().numpy() for name, tensor in result.model.state_dict().items()}
    return Answer(findings, (make_curves_file(result.curves.rows()), File(WEIGHTS, pack_arrays(**weights))))
