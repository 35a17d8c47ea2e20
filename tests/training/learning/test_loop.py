"""Training: the loop against a literal one, checkpoints, outcomes of a run, and use of the splits."""

from __future__ import annotations

import io
import itertools
import math
import random
import tracemalloc
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from separatrix.core.parameters import UsageError
from separatrix.layers import Model
from separatrix.mechanisms import examples
from separatrix.training.learning import (
    CheckpointError,
    RunConfig,
    RunOutcome,
    RunResult,
    build_model,
    pack_arrays,
    perturb,
    score_model,
    train,
    train_with_checkpoints,
    unpack_arrays,
)
from separatrix.training.learning import checkpoint as checkpoint_file
from separatrix.training.learning.loop import draw_test_samples, draw_validation_samples
from separatrix.training.tasks import Bound, Metric, Samples, Split, Task, task_named
from separatrix.training.tasks.needle import NeedleTask

NEEDLE = task_named("needle").read({"n": 8})
SIZES: dict[str, Any] = {"width": 8, "batch": 8, "steps": 12, "every": 4, "warmup": 3, "validation": 32}


@pytest.fixture(autouse=True)
def single_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def run(mechanism: Any = "softmax", task: Task = NEEDLE, **given: Any) -> RunConfig:
    sizes = {name: given.pop(name) for name in list(given) if name not in RunConfig.__dataclass_fields__}
    setting = task.default_setting(**{**SIZES, "tests": 16, **sizes})
    return RunConfig(task, mechanism, setting, **{"rate": 0.01, "seed": 3, **given})


def assert_equal_results(result: RunResult, expected: RunResult) -> None:
    """Require two runs to be equal, bit for bit."""
    assert list(result.curves.rows()) == list(expected.curves.rows())
    for (name, actual), weight in zip(
        result.model.state_dict().items(), expected.model.state_dict().values(), strict=True
    ):
        assert torch.equal(actual, weight), name
    fields = ("outcome", "score", "validation", "loss", "steps", "solved_at", "parameter_count", "state_bytes")
    assert [getattr(result, name) for name in fields] == [getattr(expected, name) for name in fields]


class Numbers(NeedleTask):
    """The needle with numbers as answers at two positions, and with absent tokens."""

    name = "numbers"
    metric = Metric.RELATIVE_ERROR

    @property
    def outputs(self) -> int:
        return 1

    def draw(self, count: int, split: Split, rng: np.random.Generator) -> Samples:
        samples_of_needle = super().draw(count, split, rng)
        present = np.ones(samples_of_needle.inputs.shape[:2], dtype=bool)
        present[::2, 0] = False
        targets = np.concatenate([samples_of_needle.targets, -samples_of_needle.targets], axis=1).astype(np.float32)
        positions = np.concatenate([samples_of_needle.positions, samples_of_needle.positions - 2], axis=1)
        return Samples(samples_of_needle.inputs, positions, targets, present)

    def ceiling(self, samples: Samples) -> Bound:
        return Bound(-1.0, "unreachable")


def train_literally(config: RunConfig) -> tuple[Model, list[float]]:
    """Return the model and losses of the same training with a literal AdamW, clipping and schedule."""
    task, setting, losses = config.task, config.setting, list[float]()
    model = build_model(task, config.mechanism, setting, config.seed)
    weights = list(model.parameters())
    first, second = ([torch.zeros_like(weight) for weight in weights] for _ in range(2))
    for step in range(setting.steps):
        samples = task.samples(setting.batch, Split.TRAIN, config.seed, step)
        present = None if samples.present is None else torch.tensor(samples.present)
        outputs, _ = model(torch.tensor(samples.inputs), present)
        parts = []
        for row, positions in enumerate(samples.positions):
            for column, position in enumerate(positions):
                output, target = outputs[row, position], samples.targets[row, column]
                if task.metric is Metric.ACCURACY:
                    parts.append(output.logsumexp(0) - output[target])
                else:
                    parts.append((output[0] - float(target)) ** 2)
        loss = torch.stack(parts).mean()
        losses.append(loss.item())
        gradients = torch.autograd.grad(loss, weights)
        norm = torch.stack([gradient.square().sum() for gradient in gradients]).sum().sqrt().item()
        if step < setting.warmup:
            rate = config.rate * (step + 1) / setting.warmup
        else:
            share = (step - setting.warmup) / (setting.steps - setting.warmup)
            rate = config.rate * 0.5 * (1 + math.cos(math.pi * share))
        for weight, gradient, m, v in zip(weights, gradients, first, second, strict=True):
            step_gradient = gradient * min(1.0, float(setting.clip) / (norm + 1e-6))
            m.copy_(0.9 * m + 0.1 * step_gradient)
            v.copy_(0.98 * v + 0.02 * step_gradient**2)
            mean, variance = m / (1 - 0.9 ** (step + 1)), v / (1 - 0.98 ** (step + 1))
            with torch.no_grad():
                weight -= rate * (float(setting.decay) * weight + mean / (variance.sqrt() + 1e-8))
    return model, losses


@pytest.mark.parametrize("task", [NEEDLE, Numbers.read({"n": 8})], ids=["classes", "numbers"])
def test_training_equals_a_literal_adamw_with_warm_up_cosine_and_clipping(task: Task) -> None:
    config = run(task=task, clip="0.3", decay="0.1")
    model, losses = train_literally(config)
    result = train(config)
    assert result.outcome is RunOutcome.UNSOLVED
    np.testing.assert_allclose(result.curves.loss, losses, rtol=1e-4)
    for (name, actual), expected in zip(result.model.state_dict().items(), model.state_dict().values(), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-5, msg=name)
    assert (result.curves.gradient > 0.3).any()


@pytest.mark.parametrize("mechanism", ["softmax", "gated-delta", "hedgehog"])
def test_a_run_continued_from_any_checkpoint_has_the_same_result(mechanism: str) -> None:
    config = run(mechanism, test=True, steps=14, conv=2, mlp=1)
    *checkpoints, result = train_with_checkpoints(config)
    assert isinstance(result, RunResult)
    assert len(checkpoints) == 3
    assert_equal_results(result, train(config))
    for number, checkpoint in enumerate(checkpoints):
        assert isinstance(checkpoint, bytes)
        *later, continuation = train_with_checkpoints(config, checkpoint)
        assert later == checkpoints[number + 1 :]
        assert isinstance(continuation, RunResult)
        assert_equal_results(continuation, result)


class Noisy(nn.Module):
    """Draws random numbers, counts its calls in a buffer, and uses a weight only in the first calls."""

    def __init__(self) -> None:
        super().__init__()
        self.early = nn.Parameter(torch.ones(()))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
        self.calls += 1
        weight = self.early if self.calls < 4 else 1.0
        logits = (q @ k.mT).masked_fill(torch.ones(q.shape[-2], q.shape[-2]).triu(1) > 0, -torch.inf)
        return weight * functional.dropout(logits.softmax(-1), 0.3, self.training) @ v


def test_random_numbers_and_buffers_of_a_mechanism_are_resumed() -> None:
    mechanism = Noisy()
    config = run(mechanism)
    torch.manual_seed(1)
    *checkpoints, result = train_with_checkpoints(config)
    torch.manual_seed(2)
    before = torch.get_rng_state()
    *_, continuation = train_with_checkpoints(config, checkpoints[-1])
    assert isinstance(result, RunResult)
    assert isinstance(continuation, RunResult)
    assert_equal_results(continuation, result)
    assert torch.equal(torch.get_rng_state(), before)
    assert (mechanism.calls, mechanism.early) == (0, 1)
    assert result.model.blocks[0].attention.attend.early != 1


class Seeds(nn.Module):
    """Softmax that records the seed of torch's generator at every call."""

    seeds: ClassVar[list[int]] = []

    def forward(self, q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
        self.seeds.append(torch.initial_seed())
        return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)


def test_numbers_are_drawn_by_the_seed_of_the_run_and_the_step_of_the_last_evaluation() -> None:
    """The formula is part of what stored runs depend on; other seeds and steps never share their numbers."""
    expected = []
    for seed in (0, 3, 2**62):
        Seeds.seeds.clear()
        train(run(Seeds(), seed=seed, steps=5, every=2))
        stretches = [(seed * 1_000_003 + step) % 2**63 for step in (0, 2, 4)]
        assert [drawn for drawn in dict.fromkeys(Seeds.seeds) if drawn in stretches] == stretches
        expected += stretches
    assert len(set(expected)) == len(expected)


def test_initial_weights_and_batches_are_paired_over_mechanisms() -> None:
    setting = run().setting
    reference = build_model(NEEDLE, "softmax", setting, 5).state_dict()
    for mechanism in examples():
        weights = build_model(NEEDLE, mechanism, setting, 5).state_dict()
        assert all(torch.equal(weights[name], weight) for name, weight in reference.items()), mechanism.spelled
    other_weights = build_model(NEEDLE, "softmax", setting, 6).state_dict()
    assert not torch.equal(reference["head.weight"], other_weights["head.weight"])
    losses = [train(run(name, seed=seed, steps=1, every=1)).loss for name, seed in (("elu", 1), ("elu", 2))]
    assert losses[0] != losses[1]


class Watched(NeedleTask):
    """The needle, with a record of the samples that are drawn."""

    name = "watched"
    drawn: ClassVar[list[tuple[Split, int, int, int]]] = []

    def samples(self, count: int, split: Split, seed: int = 0, step: int = 0) -> Samples:
        if count > 1:  # single samples are drawn to measure the length
            self.drawn.append((split, count, seed, step))
        return super().samples(count, split, seed, step)


def test_test_data_are_drawn_once_and_never_by_pilots() -> None:
    task = Watched.read({"n": 8})
    assert train(run(task=task)).score is None
    training_draws = [(Split.TRAIN, 8, 3, step) for step in range(12)]
    assert Watched.drawn == [(Split.VALIDATION, 32, 0, 0), *training_draws]
    Watched.drawn.clear()
    result = train(run(task=task, test=True))
    assert Watched.drawn == [*training_draws, (Split.TEST, 16, 0, 0)]
    assert result.score == score_model(result.model, task, draw_test_samples(task, run(task=task).setting.tests))


def test_a_finished_run_is_tested_once_at_each_further_length_and_a_pilot_never() -> None:
    task = task_named("retrieval").read({"trained": 4, "tested": 4, "also": "6,9"})
    setting = task.default_setting(**SIZES, tests=50)
    result = train(RunConfig(task, "softmax", setting, 0.01, 0, test=True))
    by_length = {n: task_named("retrieval").read({"trained": 4, "tested": n}) for n in (6, 9)}
    for n, longer in by_length.items():
        assert task.further_tasks()[n].parameters == longer.parameters
        assert result.further_scores[n] == score_model(result.model, longer, longer.samples(50, Split.TEST))
    assert result.further_scores.keys() == {6, 9}
    assert train(RunConfig(task, "softmax", setting, 0.01, 0)).further_scores == {}
    plain = task_named("retrieval").read({"trained": 4, "tested": 4})
    assert train(RunConfig(plain, "softmax", setting, 0.01, 0, test=True)).score == result.score


def test_a_run_stops_when_the_task_is_solved() -> None:
    config = run(task=NeedleTask.read({"n": 8, "strength": 3}), steps=400, every=20, width=16, batch=32)
    result = train(config)
    assert result.outcome is RunOutcome.SOLVED
    _, ceiling = draw_validation_samples(config.task, config.setting.validation)
    goal = ceiling - config.task.tolerance
    evaluations = [(step, value >= goal) for step, name, value in result.curves.rows() if name == "validation"]
    pairs = [first and second for (_, first), (_, second) in itertools.pairwise(evaluations)]
    assert pairs == [False] * (len(pairs) - 1) + [True]
    assert (result.solved_at, result.steps) == (evaluations[-2][0], evaluations[-1][0])
    assert result.steps == result.curves.step_count < 400
    assert result.validation >= goal
    second_run = train(
        replace(config, initial_model=result.model, setting=config.setting.model_copy(update={"steps": 20}))
    )
    assert (second_run.outcome, second_run.steps, second_run.solved_at) == (RunOutcome.SOLVED, 20, 0)


def test_divergence_is_an_outcome_with_its_step() -> None:
    result = train(run("identity-features:normalised=no", rate=1e8, steps=40, test=True, warmup=0))
    assert result.outcome is RunOutcome.DIVERGED
    assert result.diverged_at == result.steps + 1 < 40
    assert result.solved_at is None
    assert result.score is not None
    assert 0 <= result.score <= 1
    assert result.curves.step_count == result.steps + 1
    last = result.curves.loss[result.steps]
    assert not last < 1000


class Exploding(nn.Module):
    """Computes infinities or NaN in the fourth step, forward or backward."""

    def __init__(self, backward: bool) -> None:
        super().__init__()
        self.backward, self.steps = backward, 0

    def forward(self, q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
        self.steps += self.training
        if self.steps < 4:
            return v
        return (v * 0).sqrt() * 0 + v if self.backward else v / 0


@pytest.mark.parametrize("backward", [False, True])
def test_nonfinite_numbers_are_divergence_and_keep_the_weights(backward: bool) -> None:
    result = train(run(Exploding(backward), test=True))
    assert (result.outcome, result.diverged_at) == (RunOutcome.DIVERGED, 4)
    assert all(weight.isfinite().all() for weight in result.model.parameters())
    assert math.isfinite(result.validation)


class FailingBackward(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, v: Tensor) -> Tensor:
        return v.clone()

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        raise RuntimeError("no gradient\nhere")


def failing_mechanism(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    return FailingBackward.apply(v)


def test_a_mechanism_that_breaks_in_backward_is_named() -> None:
    with pytest.raises(UsageError, match=r"^failing_mechanism fails in backward, at step 1: RuntimeError: no gradient"):
        train(run(failing_mechanism))


def test_noise_has_the_size_of_the_weights() -> None:
    model = build_model(NEEDLE, "softmax", run(width=64).setting)
    noisy, other_seed = perturb(model, 0.5, 1), perturb(model, 0.5, 2)
    for weight, before, other_weight in zip(
        noisy.parameters(), model.parameters(), other_seed.parameters(), strict=True
    ):
        share = ((weight - before).norm() / before.norm()).item()
        assert 0.2 < share < 0.9
        assert not torch.equal(weight, other_weight)
    repetition = perturb(model, 0.5, 1).state_dict()
    assert all(torch.equal(repetition[name], weight) for name, weight in noisy.state_dict().items())
    result = train(run(initial_model=noisy, width=64, rate=1e-12))
    torch.testing.assert_close(result.model.state_dict(), noisy.state_dict())


def test_an_invalid_checkpoint_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    first = next(train_with_checkpoints(run()))
    assert isinstance(first, bytes)
    for data, complaint in (
        (b"", "the checkpoint is damaged"),
        (first[: len(first) // 2], "the checkpoint is damaged"),
        (pack_arrays(step=4), "does not belong to this run"),
        (next(train_with_checkpoints(run(width=16))), "does not belong to this run"),
        (next(train_with_checkpoints(run(depth=2))), "does not belong to this run"),
    ):
        with pytest.raises(CheckpointError, match=complaint) as error:
            next(train_with_checkpoints(run(), data))  # type: ignore[arg-type]
        assert "\n" not in str(error.value)
    monkeypatch.setattr(checkpoint_file, "VERSION", 2)
    with pytest.raises(CheckpointError, match="has version 1, and this program reads version 2"):
        next(train_with_checkpoints(run(), first))


def npy(header: bytes, content: bytes = b"") -> bytes:
    """Return an array in NumPy's format with this header."""
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + content


def pack_members(method: int = zipfile.ZIP_STORED, **members: bytes) -> bytes:
    """Return a checkpoint with these bytes as arrays."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as out:
        for name, content in {"version": npy_bytes(1), **members}.items():
            out.writestr(f"{name}.npy", content)
    return file.getvalue()


def npy_bytes(value: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, value)
    return file.getvalue()


MAX_MEMORY = 4_000_000
"""Bytes that reading a crafted checkpoint may allocate."""
BOMB_BYTES = 4 * MAX_MEMORY
CRAFTED = {
    "a terabyte": pack_members(x=npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,)}\n")),
    "a product that is small": pack_members(
        x=npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (-4294967296, -4294967296)}\n")
    ),
    "a shape of words": pack_members(x=npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': ('a',)}\n")),
    "a type of numbers": pack_members(x=npy(b"{'descr': 7, 'fortran_order': False, 'shape': (1,)}\n", bytes(8))),
    "a wide type": pack_members(x=npy(b"{'descr': '|V1099511627776', 'fortran_order': False, 'shape': ()}\n")),
    "no dictionary": pack_members(x=npy(b"[1, 2\n")),
    "too many bytes": pack_members(x=npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}\n", bytes(9))),
    "another format": pack_members(x=b"\x93NUMPY\x09\x00"),
    "no array": pack_members(x=b"words"),
    "a bomb": pack_members(zipfile.ZIP_DEFLATED, x=npy_bytes(np.zeros(BOMB_BYTES // 8))),
    "bzip2": pack_members(zipfile.ZIP_BZIP2, x=npy_bytes(np.zeros(BOMB_BYTES // 8))),
}


@pytest.mark.parametrize("data", CRAFTED.values(), ids=CRAFTED)
def test_a_crafted_checkpoint_is_refused_within_bounded_memory(data: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError, match="the checkpoint is damaged; start again with --retry-failed"):
            unpack_arrays(data)
        assert tracemalloc.get_traced_memory()[1] < MAX_MEMORY
    finally:
        tracemalloc.stop()


def test_random_damage_raises_only_checkpoint_errors() -> None:
    first, rng = next(train_with_checkpoints(run())), random.Random(0)
    assert isinstance(first, bytes)
    for _ in range(300):
        corrupt = bytearray(first)
        for _ in range(rng.choice((1, 2, 8))):
            corrupt[rng.randrange(len(corrupt))] = rng.choice((0, 0xFF, rng.randrange(256)))
        with suppress(CheckpointError):
            unpack_arrays(bytes(corrupt))


@pytest.mark.parametrize(
    "changes",
    [
        {"step": np.inf},
        {"step": -1},
        {"step": 10**9},
        {"step": np.zeros((2, 2))},
        {"curves/loss": np.float64(1)},
        {"curves/loss": np.zeros(10**6)},
        {"curves/looks": np.array([[np.inf, 0.5]])},
        {"curves/looks": np.zeros(3)},
        {"optimizer/0/exp_avg": np.zeros(1)},
        {"optimizer/0/other": np.zeros(1)},
        {"optimizer/999/exp_avg": np.zeros(1)},
        {"optimizer/x": np.zeros(1)},
    ],
    ids=str,
)
def test_arrays_of_another_run_are_refused(changes: dict[str, Any]) -> None:
    first = next(train_with_checkpoints(run()))
    assert isinstance(first, bytes)
    checkpoint = pack_arrays(**{**unpack_arrays(first), **changes})
    with pytest.raises(CheckpointError, match="the checkpoint does not belong to this run"):
        next(train_with_checkpoints(run(), checkpoint))


def test_nothing_in_a_checkpoint_is_unpickled() -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return pytest.fail, ("unpickled",)

    with pytest.raises(CheckpointError, match="damaged"):
        next(train_with_checkpoints(run(), pack_arrays(step=np.array([Trap()], dtype=object))))


def test_nan_outputs_score_as_the_answer_0() -> None:
    task = Numbers.read({"n": 8})
    model = build_model(task, "softmax", run(task=task).setting)
    with torch.no_grad():
        model.head.weight.fill_(torch.nan)
    assert score_model(model, task, task.samples(64, Split.VALIDATION)) == 1


def test_a_result_has_the_score_of_the_last_evaluation() -> None:
    task = task_named("needle").read({"n": 16})
    setting = task.default_setting(steps=4, every=2, validation=16, batch=4)
    result = train(RunConfig(task, "softmax", setting, rate=1e-6, seed=0))
    step, score = result.curves.evaluations[-1]
    assert (result.steps, result.validation) == (step, score)
    assert 0 <= score <= 1
    assert result.loss == result.curves.last_loss
