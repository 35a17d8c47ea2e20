"""The training loop for one model on one task: AdamW, linear warm-up, cosine schedule, clipping.

A run is reproducible bit for bit on one thread and device: training batches are drawn by seed and step, and
torch's generator, from which mechanisms may draw, is seeded after every evaluation on the validation samples.
Checkpoints are made there too. Only validation data decides when a run ends; test data is used once, after
the last step, and only if `RunConfig.test` is set.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from separatrix.core.errors import one_line
from separatrix.core.parameters import UsageError
from separatrix.layers import Model
from separatrix.mechanisms import Causality, Mechanism, mechanism_from
from separatrix.training.learning.batch import SampleBatch, compute_loss, compute_outputs, score_model
from separatrix.training.learning.checkpoint import restore_checkpoint, save_checkpoint
from separatrix.training.learning.curves import Curves
from separatrix.training.learning.model import build_model, require_device, temporary_seed
from separatrix.training.tasks import Samples, Setting, Split, Task

BETAS = (0.9, 0.98)
"""Of AdamW."""
MAX_FURTHER_TOKENS = 2**21
"""Tokens of the test samples at each further length."""
DIVERGENCE_FACTOR = 1000.0
"""A run has diverged if its loss exceeds that of the first step, but at least 1, by this factor."""


class RunOutcome(StrEnum):
    """The outcome of a run."""

    SOLVED = "solved"
    """The validation score was within the task's tolerance of the ceiling at two evaluations in a row, after
    which the run stopped, or at the last one."""
    UNSOLVED = "unsolved"
    DIVERGED = "diverged"
    """The loss or gradient was not finite, or the loss exploded; the weights are those before that step."""


@dataclass(frozen=True)
class RunConfig:
    """All inputs that determine a training run."""

    task: Task
    mechanism: Mechanism | str
    setting: Setting
    rate: float
    """The largest learning rate, after the warm-up."""
    seed: int
    """Of the initial weights and of the training batches."""
    initial_model: Model | None = None
    """Replaces the untrained model of the seed, for example by a model of `perturb`."""
    test: bool = False
    """Whether to score the test samples at the end. Pilot runs never do."""
    device: str = "cpu"
    """A torch device; only `cpu` is tested."""


@dataclass(frozen=True)
class RunResult:
    """The result of a training run."""

    outcome: RunOutcome
    score: float | None
    """On the test samples; None if they were not scored."""
    validation: float
    """The final score on the validation samples."""
    loss: float
    """On the training batch of the last step; NaN without steps."""
    steps: int
    """The number of steps; fewer than allowed if the run was solved or diverged before."""
    solved_at: int | None
    """The number of steps after which the task was solved."""
    parameter_count: int
    state_bytes: int | None
    """The recurrent state after the longest input; None if the mechanism has no causal form."""
    curves: Curves
    model: Model
    further_scores: Mapping[int, float]
    """Test scores at further lengths, if the task has any."""

    @property
    def diverged_at(self) -> int | None:
        """The step in which the run diverged, counted from 1."""
        return self.steps + 1 if self.outcome is RunOutcome.DIVERGED else None


def train(config: RunConfig) -> RunResult:
    """Train from the beginning to the end.

    >>> from separatrix.training.tasks import task_named
    >>> needle = task_named("needle").read({"n": 16})
    >>> setting = needle.default_setting(steps=20, every=10, validation=64)
    >>> result = train(RunConfig(needle, "softmax", setting, rate=0.01, seed=0))
    >>> str(result.outcome), result.steps, result.score
    ('unsolved', 20, None)
    """
    *_, result = train_with_checkpoints(config)
    assert isinstance(result, RunResult)
    return result


def train_with_checkpoints(config: RunConfig, checkpoint: bytes | None = None) -> Iterator[bytes | RunResult]:
    """Yield a checkpoint after every evaluation on the validation samples, and finally the result.

    A run that continues from one of its checkpoints has the same result, bit for bit.
    """
    task, setting, mechanism = config.task, config.setting, mechanism_from(config.mechanism)
    start = config.initial_model
    model = build_model(task, mechanism, setting, config.seed) if start is None else deepcopy(start)
    require_device(config.device)
    model.to(config.device).train()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=config.rate, betas=BETAS, weight_decay=float(setting.decay), fused=True
    )
    validation, ceiling = draw_validation_samples(task, setting.validation)
    curves = Curves(setting.steps)
    outcome: RunOutcome | None = None

    def is_solved(score: float) -> bool:
        return task.metric.sign * score >= task.metric.sign * ceiling - task.tolerance

    def evaluate() -> RunOutcome | None:
        curves.record_score(step, score_model(model, task, validation, config.device))
        recent = [is_solved(score) for _, score in curves.evaluations[-2:]]
        if step == setting.steps:
            return RunOutcome.SOLVED if recent[-1] else RunOutcome.UNSOLVED
        return RunOutcome.SOLVED if recent == [True, True] else None

    if checkpoint is None:
        step = 0
        outcome = evaluate()
    else:
        step = restore_checkpoint(checkpoint, model, optimizer, curves)
    while outcome is None:
        # Seeded at each checkpoint, so that a resumed run draws the same numbers.
        with temporary_seed((config.seed * 1_000_003 + step) % 2**63):
            for _ in range(min(setting.every, setting.steps - step)):
                samples = task.samples(setting.batch, Split.TRAIN, config.seed, step)
                batch = SampleBatch.of(samples, config.device)
                rate = optimizer.param_groups[0]["lr"] = scheduled_rate(step, config.rate, setting)
                optimizer.zero_grad(set_to_none=False)  # reuses the memory of the gradients
                loss = compute_loss(compute_outputs(model, batch), batch, task)
                _backward(loss, mechanism, step)
                norm = clip_grad_norm_(model.parameters(), float(setting.clip), foreach=True)
                curves.record_step(step, rate, loss.item(), norm.item())
                if curves.has_diverged(DIVERGENCE_FACTOR):
                    outcome = RunOutcome.DIVERGED
                    break
                optimizer.step()
                step += 1
        latest = evaluate()  # also after divergence: the result has the score of the last weights
        outcome = outcome or latest
        if outcome is None:
            yield save_checkpoint(step, model, optimizer, curves)
    model.eval()
    has_state = mechanism.causality is not Causality.NEVER
    solved_steps = [step for step, score in curves.evaluations[-2:] if is_solved(score)]
    score = None
    if config.test:
        score = score_model(model, task, draw_test_samples(task, setting.tests), config.device)
    yield RunResult(
        outcome=outcome,
        score=score,
        validation=curves.evaluations[-1][1],
        loss=curves.last_loss,
        steps=step,
        solved_at=solved_steps[0] if outcome is RunOutcome.SOLVED else None,
        parameter_count=model.parameter_count,
        state_bytes=model.state_bytes(task.max_tokens) if has_state else None,
        curves=curves,
        model=model,
        further_scores=_score_further_lengths(model, config) if config.test else {},
    )


def _score_further_lengths(model: Model, config: RunConfig) -> dict[int, float]:
    scores = {}
    for length, task in config.task.further_tasks().items():
        samples = task.samples(count_further_tests(config.setting, length), Split.TEST)
        scores[length] = score_model(model, task, samples, config.device)
    return scores


def count_further_tests(setting: Setting, length: int) -> int:
    """Return the number of test samples at a further length; long samples are fewer.

    >>> [count_further_tests(Setting(tests=4000), length) for length in (64, 1024, 16384)]
    [4000, 2048, 128]
    """
    return max(1, min(setting.tests, MAX_FURTHER_TOKENS // length))


def scheduled_rate(step: int, rate: float, setting: Setting) -> float:
    """Return the learning rate of a step, counted from 0: linear up to `rate`, then half a cosine down to 0.

    >>> setting = Setting(steps=105, warmup=5)
    >>> [round(scheduled_rate(step, 1.0, setting), 3) for step in (0, 4, 5, 55, 104)]
    [0.2, 1.0, 1.0, 0.5, 0.0]
    """
    if step < setting.warmup:
        return rate * (step + 1) / setting.warmup
    share = (step - setting.warmup) / max(1, setting.steps - setting.warmup)
    return rate * (1 + math.cos(math.pi * share)) / 2


def perturb(model: Model, noise: float, seed: int) -> Model:
    """Return a copy of a model with noise added to each parameter, `noise` times its root mean square.

    >>> from separatrix.training.tasks import task_named
    >>> needle = task_named("needle").read({"n": 16})
    >>> model = build_model(needle, "softmax", needle.default_setting())
    >>> difference = (perturb(model, 0.5, seed=1).head.weight - model.head.weight).detach()
    >>> 0.4 < (difference.norm() / model.head.weight.detach().norm()).item() < 0.6
    True
    """
    copy, generator = deepcopy(model), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in copy.parameters():
            direction = torch.randn(weight.shape, generator=generator).to(weight)
            weight.add_(noise * weight.square().mean().sqrt() * direction)
    return copy


# Cached because the next run of a worker is often on the same task.
@lru_cache(maxsize=2)
def draw_validation_samples(task: Task, count: int) -> tuple[Samples, float]:
    """Return the samples that decide when a run ends, and their ceiling."""
    samples = task.samples(count, Split.VALIDATION)
    return samples, task.ceiling(samples).score


@lru_cache(maxsize=1)
def draw_test_samples(task: Task, count: int) -> Samples:
    """Return the test samples, the same for all mechanisms and seeds."""
    return task.samples(count, Split.TEST)


def _backward(loss: Tensor, mechanism: Mechanism, step: int) -> None:
    """Compute the gradients; an error of the mechanism is reported with its name."""
    try:
        loss.backward()  # type: ignore[no-untyped-call]
    except Exception as error:
        reason = f"{type(error).__name__}: {one_line(error)}"
        raise UsageError(f"{mechanism.spelled} fails in backward, at step {step + 1}: {reason}") from error
