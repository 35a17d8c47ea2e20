"""Training one model on one task: AdamW, linear warm-up, cosine, clipping. To be read in one sitting.

A run is the same for the same `Run` and device, bit for bit on one thread: training batches are drawn by
seed and step, and whatever a mechanism draws by itself comes from a generator that is seeded at every look
at the validation data, where checkpoints are made too. Only validation data decides when a run ends; test
data is read once, after the last step, and only where that was asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from separatrix.core.errors import one_line
from separatrix.core.parameters import Parameters, UsageError
from separatrix.layers import Model
from separatrix.mechanisms import Causality, Mechanism, mechanism_from
from separatrix.training.learning.batch import Batch, answers, loss_of, require_device, score_of
from separatrix.training.learning.curves import Curves
from separatrix.training.learning.model import model_for, tokens_of
from separatrix.training.learning.snapshot import restore, snapshot
from separatrix.training.tasks import Samples, Setting, Split, Task

BETAS = (0.9, 0.98)
"""Of AdamW."""
FURTHER_TOKENS = 2**21
"""Tokens that a finished run is tested with at each further length, at most."""
EXPLODED = 1000.0
"""A run has diverged when its loss is so many times that of its first step, or 1 where that is more."""


class Outcome(StrEnum):
    """How a run ended."""

    SOLVED = "solved"
    """Its validation score was within the task's tolerance of the ceiling at two looks in a row, where it
    stopped, or at the last one."""
    UNSOLVED = "unsolved"
    DIVERGED = "diverged"
    """Its loss or gradient was no number any more, or the loss exploded; the weights are those before."""


@dataclass(frozen=True)
class Run:
    """All that determines a training run.

    - `rate`: the largest learning rate, after the warm-up.
    - `seed`: of the initial weights and of the training batches.
    - `first`: the model to begin with (see `perturbed`) instead of the one of the seed.
    - `test`: whether the test samples are scored at the end. A pilot never does.
    - `device`: of torch. Nothing here is tested on others than `cpu`.
    """

    task: Task
    mechanism: Mechanism | str
    setting: Setting
    rate: float
    seed: int
    first: Model | None = None
    test: bool = False
    device: str = "cpu"


@dataclass(frozen=True)
class Trained:
    """What came of a run."""

    outcome: Outcome
    score: float | None
    """On the test samples; None where it was not asked for."""
    validation: float
    """The score on the validation samples, at the end."""
    loss: float
    """On the training batch of the last step; NaN where there was none."""
    steps: int
    """How many were made: fewer than allowed where it was solved or diverged before."""
    solved_at: int | None
    """The steps after which it had solved the task."""
    parameter_count: int
    state_bytes: int | None
    """Carried from token to token after the longest input; None where the mechanism has no causal form."""
    curves: Curves
    model: Model
    further: Mapping[int, float]
    """On the test samples of other lengths, where a task names some."""

    @property
    def diverged_at(self) -> int | None:
        """The step in which it diverged, counted from 1."""
        return self.steps + 1 if self.outcome is Outcome.DIVERGED else None


def train(run: Run) -> Trained:
    """What comes of a run, from the beginning to the end.

    >>> from separatrix.training.tasks import task_named
    >>> needle = task_named("needle").read({"n": 16})
    >>> setting = needle.default_setting(steps=20, every=10, validation=64)
    >>> found = train(Run(needle, "softmax", setting, rate=0.01, seed=0))
    >>> str(found.outcome), found.steps, found.score
    ('unsolved', 20, None)
    """
    *_, found = training(run)
    assert isinstance(found, Trained)
    return found


def training(run: Run, checkpoint: bytes | None = None) -> Iterator[bytes | Trained]:
    """The checkpoints of a run, one for every look at the validation data, and at last what came of it.

    From any of its checkpoints it goes on to the same end, bit for bit.
    """
    task, setting, mechanism = run.task, run.setting, mechanism_from(run.mechanism)
    model = model_for(task, mechanism, setting, run.seed) if run.first is None else deepcopy(run.first)
    require_device(run.device)
    model.to(run.device).train()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=run.rate, betas=BETAS, weight_decay=float(setting.decay), fused=True
    )
    held_out, ceiling = samples_to_validate(task, setting)
    curves = Curves(setting.steps)
    outcome: Outcome | None = None

    enough = task.answers.sign * ceiling - task.tolerance

    def look() -> Outcome | None:
        curves.looked(step, score_of(model, task, held_out, run.device))
        good = [task.answers.sign * score >= enough for _, score in curves.looks[-2:]]
        if step == setting.steps:
            return Outcome.SOLVED if good[-1] else Outcome.UNSOLVED
        return Outcome.SOLVED if good == [True, True] else None

    if checkpoint is None:
        step = 0
        outcome = look()
    else:
        step = restore(checkpoint, model, optimizer, curves)
    while outcome is None:
        with _seeded(run.seed, step):
            for _ in range(min(setting.every, setting.steps - step)):
                batch = Batch.of(task.samples(setting.batch, Split.TRAIN, run.seed, step), run.device)
                rate = optimizer.param_groups[0]["lr"] = rate_at(step, run.rate, setting)
                optimizer.zero_grad(set_to_none=False)  # the memory of the gradients is used again
                loss = loss_of(answers(model, batch), batch, task)
                _backward(loss, mechanism, step)
                norm = clip_grad_norm_(model.parameters(), float(setting.clip), foreach=True)
                curves.stepped(step, rate, loss.item(), norm.item())
                if curves.exploded(EXPLODED):
                    outcome = Outcome.DIVERGED
                    break
                optimizer.step()
                step += 1
        ended = look()
        outcome = outcome or ended
        if outcome is None:
            yield snapshot(step, model, optimizer, curves)
    model.eval()
    good_looks = [step for step, score in curves.looks[-2:] if task.answers.sign * score >= enough]
    yield Trained(
        outcome=outcome,
        score=score_of(model, task, samples_to_test(task, setting), run.device) if run.test else None,
        validation=curves.looks[-1][1],
        loss=curves.last_loss,
        steps=step,
        solved_at=good_looks[0] if outcome is Outcome.SOLVED else None,
        parameter_count=model.parameter_count,
        state_bytes=model.state_bytes(tokens_of(task))
        if mechanism.causality is not Causality.NEVER
        else None,
        curves=curves,
        model=model,
        further=_further(model, run) if run.test else {},
    )


def _further(model: Model, run: Run) -> dict[int, float]:
    """The scores at other lengths; of long inputs fewer are looked at."""
    return {
        n: score_of(model, each, each.samples(further_tests(run.setting, n), Split.TEST), run.device)
        for n, each in run.task.further().items()
    }


def further_tests(setting: Setting, length: int) -> int:
    """How many samples of a further length there are to test with.

    >>> [further_tests(Setting(tests=4000), length) for length in (64, 1024, 16384)]
    [4000, 2048, 128]
    """
    return max(1, min(setting.tests, FURTHER_TOKENS // length))


def rate_at(step: int, rate: float, setting: Setting) -> float:
    """The learning rate of a step, counted from 0: a line up to `rate`, and then half a cosine down to 0.

    >>> setting = Setting(steps=105, warmup=5)
    >>> [round(rate_at(step, 1.0, setting), 3) for step in (0, 4, 5, 55, 104)]
    [0.2, 1.0, 1.0, 0.5, 0.0]
    """
    if step < setting.warmup:
        return rate * (step + 1) / setting.warmup
    share = (step - setting.warmup) / max(1, setting.steps - setting.warmup)
    return rate * (1 + math.cos(math.pi * share)) / 2


def perturbed(model: Model, noise: float, seed: int) -> Model:
    """A copy of a model with noise added to each of its parameters, `noise` times its own root mean square.

    >>> from separatrix.training.tasks import task_named
    >>> needle = task_named("needle").read({"n": 16})
    >>> given = model_for(needle, "softmax", needle.default_setting())
    >>> moved = (perturbed(given, 0.5, seed=1).head.weight - given.head.weight).detach()
    >>> 0.4 < (moved.norm() / given.head.weight.detach().norm()).item() < 0.6
    True
    """
    made, generator = deepcopy(model), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in made.parameters():
            drawn = torch.randn(weight.shape, generator=generator).to(weight)
            weight.add_(noise * weight.square().mean().sqrt() * drawn)
    return made


@lru_cache(maxsize=2)  # the next run of a worker is often on the same task
def _validation(kind: type[Task], parameters: Parameters, count: int) -> tuple[Samples, float]:
    task = kind(parameters)
    samples = task.samples(count, Split.VALIDATION)
    return samples, task.ceiling(samples).score


@lru_cache(maxsize=1)
def _tests(kind: type[Task], parameters: Parameters, count: int) -> Samples:
    return kind(parameters).samples(count, Split.TEST)


def samples_to_validate(task: Task, setting: Setting) -> tuple[Samples, float]:
    """The samples that decide when a run ends, and the ceiling on them."""
    return _validation(type(task), task.parameters, setting.validation)


def samples_to_test(task: Task, setting: Setting) -> Samples:
    """The samples that every run on a task is tested with: one fixed set for all mechanisms and seeds."""
    return _tests(type(task), task.parameters, setting.tests)


def _backward(loss: Tensor, mechanism: Mechanism, step: int) -> None:
    """The gradients; a mechanism that breaks here is named."""
    try:
        loss.backward()  # type: ignore[no-untyped-call]
    except Exception as error:
        why = f"{type(error).__name__}: {one_line(error)}"
        raise UsageError(f"{mechanism.spelled} breaks in backward, at step {step + 1}: {why}") from error


@contextmanager
def _seeded(seed: int, step: int) -> Iterator[None]:
    """What torch's own generator draws is drawn by seed and step; that of the caller is left as it is."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed((seed * 1_000_003 + step) % 2**63)
        yield
