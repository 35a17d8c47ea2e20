"""Training runs as work: one model, one task, one learning rate, one seed.

The training itself is imported where it is done: it needs torch, which planning does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

from separatrix.core.numbers import format_exact, parse_exact
from separatrix.core.parameters import UsageError
from separatrix.core.parameters.model import Parameters
from separatrix.mechanisms import Mechanism, mechanism_from
from separatrix.sweeps.code import training_code
from separatrix.sweeps.store import Answer, File, Status
from separatrix.sweeps.store.files import curves_file
from separatrix.sweeps.store.schema import TRAINING
from separatrix.sweeps.work import Work
from separatrix.training.tasks import Setting, Task, task_named

if TYPE_CHECKING:
    from separatrix.training.learning import RunResult

named = cache(mechanism_from)

SCRATCH, WITNESS = "scratch", "witness"
PILOT, TEST = "pilot", "test"
SCORE_AT = "score_at_"
"""What the score at a further length is called, before the length."""
WEIGHTS = "weights.npz"
"""The file of the last weights, by the names of the model's state dict."""


@dataclass(frozen=True)
class TrainingRun(Work):
    """Everything that determines a run, as text; make one with `training_run`.

    What it finds: `outcome` (solved, unsolved or diverged), `score` on the test samples (none of a pilot),
    `validation_score`, `loss` of the last step, `last_step`, `solved_at`, `diverged_at`, `weight_count`,
    `state_bytes`, and `score_at_N` for each further length of the task. Beside it are its curves and its last
    weights.
    """

    kind = TRAINING
    threads = 1  # models are small: two runs on two cores beat one run on both
    turn = 5.0
    resumes = True
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
        asked = (self.task, self.parameters, self.mechanism, self.setting, self.rate, self.seed)
        elsewhere = () if self.device == "cpu" else (self.device,)
        return *asked, self.start, self.purpose, *elsewhere

    @property
    def cost_key(self) -> tuple[str, ...]:
        return self.kind, self.task, self.mechanism

    def columns(self) -> dict[str, Any]:
        own = {"rate": self.rate, "start": self.start, "purpose": self.purpose}
        parameters = {"task": self.task, **self.parameters, **own, **self.setting}
        n = self.parameters.get("n")
        return {
            "mechanism": self.mechanism,
            "parameters": parameters,
            "n": None if n is None else float(n),
            "seed": self.seed,
        }

    def code_here(self) -> str:
        return training_code(task_named(self.task), named(self.mechanism), self.start != SCRATCH)

    def share_done(self, checkpoint: bytes) -> float:
        from separatrix.training.learning import unpack_arrays

        return float(unpack_arrays(checkpoint)["step"]) / int(self.setting["steps"])

    def compute(self, checkpoint: bytes | None) -> Iterator[bytes | Answer]:
        from separatrix.training.learning import RunConfig, perturb, train_with_checkpoints
        from separatrix.training.learning.witnesses import build_witness

        task, mechanism = task_named(self.task).read(self.parameters), named(self.mechanism)
        setting, first = Setting.read(self.setting), None
        if self.start != SCRATCH:
            first = build_witness(task, mechanism, setting)
            if first is None:
                message = f"no weights are written down for {self.mechanism} on {task.spelling}"
                yield Answer(status=Status.REFUSED, message=message)
                return
            first = perturb(first, noise_of(self.start), self.seed)
        rate, test = float(Fraction(self.rate)), self.purpose == TEST
        run = RunConfig(task, mechanism, setting, rate, self.seed, first, test, self.device)
        for found in train_with_checkpoints(run, checkpoint):
            yield found if isinstance(found, bytes) else _answer(found)


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
    """A training run as work that `run` and a store take.

    **Arguments:**

    - `task`: at its parameters.
    - `mechanism`: an object or its name; a user's own module is known by the mark of its weights, too.
    - `setting`: sizes and steps; of these, what does not matter to the run is no part of its identity.
    - `rate`: the learning rate, as exact text or number.
    - `seed`: of weights and batches.
    - `start`: `scratch`, or `witness:NOISE`: weights written down, with noise of so many times their own
      root mean square; `witness` is `witness:1`.
    - `pilot`: whether the test samples are left alone.
    - `device`: of torch. No test here is run on any but `cpu`.

    >>> needle = task_named("needle").read({"n": 64})
    >>> work = training_run(needle, "softmax", needle.default_setting(), "0.01", seed=1)
    >>> str(work), work.start, work.purpose, work.columns()["parameters"]["rate"]
    ('the training of softmax on needle', 'scratch', 'test', '0.01')
    """
    found = mechanism if isinstance(mechanism, Mechanism) else named(mechanism)
    matters = texts(setting)
    del matters["rates"]
    if pilot:
        del matters["tests"]
    start = spelled_start(start)
    return TrainingRun(
        task=task.name,
        parameters=texts(task.parameters),
        mechanism=found.spelled,
        setting=matters,
        rate=format_exact(positive(rate)),
        seed=seed,
        start=start,
        purpose=PILOT if pilot else TEST,
        code=training_code(type(task), found, start != SCRATCH),
        device=device,
    )


def positive(rate: Any) -> Fraction:
    """A learning rate, exactly as it is written."""
    found = parse_exact(rate, "rate")
    if found <= 0:
        raise UsageError(f"rate={rate} must be above 0")
    return found


def spelled_start(start: str) -> str:
    """Where a run begins, in one spelling.

    >>> spelled_start("witness"), spelled_start("witness:0.50"), spelled_start("scratch")
    ('witness:1', 'witness:0.5', 'scratch')
    """
    word, colon, noise = start.partition(":")
    if start == SCRATCH:
        return start
    if word != WITNESS:
        raise UsageError(f"start={start} is neither scratch nor witness; witness:0.5 has half the noise")
    found = parse_exact(noise, "the noise of start") if colon else Fraction(1)
    if found < 0:
        raise UsageError(f"start={start}: the noise must be 0 or more")
    return f"{WITNESS}:{format_exact(found)}"


def noise_of(start: str) -> float:
    """The noise of a start that is spelled."""
    return float(Fraction(start.partition(":")[2]))


def texts(parameters: Parameters) -> dict[str, str]:
    """Parameters as the store has them."""
    return {name: str(value) for name, value in parameters.shown().items()}


def _answer(found: RunResult) -> Answer:
    from separatrix.training.learning import pack_arrays

    values: Mapping[str, str | int | float | None] = {
        "outcome": str(found.outcome),
        "score": found.score,
        "validation_score": found.validation,
        "loss": found.loss,
        "last_step": found.steps,
        "solved_at": found.solved_at,
        "diverged_at": found.diverged_at,
        "weight_count": found.parameter_count,
        "state_bytes": found.state_bytes,
        **{f"{SCORE_AT}{length}": score for length, score in found.further_scores.items()},
    }
    weights = {name: tensor.cpu().numpy() for name, tensor in found.model.state_dict().items()}
    return Answer(values, (curves_file(found.curves.rows()), File(WEIGHTS, pack_arrays(**weights))))
