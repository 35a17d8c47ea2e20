"""Training: the loop against one written out, checkpoints, ends of a run, and what it never looks at."""

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
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def run(mechanism: Any = "softmax", task: Task = NEEDLE, **given: Any) -> RunConfig:
    sizes = {name: given.pop(name) for name in list(given) if name not in RunConfig.__dataclass_fields__}
    setting = task.default_setting(**{**SIZES, "tests": 16, **sizes})
    return RunConfig(task, mechanism, setting, **{"rate": 0.01, "seed": 3, **given})


def same(one: RunResult, other: RunResult) -> None:
    """Bit for bit."""
    assert list(one.curves.rows()) == list(other.curves.rows())
    for (name, ours), theirs in zip(
        one.model.state_dict().items(), other.model.state_dict().values(), strict=True
    ):
        assert torch.equal(ours, theirs), name
    kept = ("outcome", "score", "validation", "loss", "steps", "solved_at", "parameter_count", "state_bytes")
    assert [getattr(one, each) for each in kept] == [getattr(other, each) for each in kept]


class Numbers(NeedleTask):
    """The needle with numbers to be said at two places, some tokens absent."""

    name = "numbers"
    metric = Metric.RELATIVE_ERROR

    @property
    def outputs(self) -> int:
        return 1

    def draw(self, count: int, split: Split, rng: np.random.Generator) -> Samples:
        drawn = super().draw(count, split, rng)
        present = np.ones(drawn.inputs.shape[:2], dtype=bool)
        present[::2, 0] = False
        targets = np.concatenate([drawn.targets, -drawn.targets], axis=1).astype(np.float32)
        places = np.concatenate([drawn.positions, drawn.positions - 2], axis=1)
        return Samples(drawn.inputs, places, targets, present)

    def ceiling(self, samples: Samples) -> Bound:
        return Bound(-1.0, "nothing reaches it")


def written_out(asked: RunConfig) -> tuple[Model, list[float]]:
    """The same training, with AdamW, clipping and schedule spelled out number by number."""
    task, setting, losses = asked.task, asked.setting, list[float]()
    model = build_model(task, asked.mechanism, setting, asked.seed)
    weights = list(model.parameters())
    first, second = ([torch.zeros_like(weight) for weight in weights] for _ in range(2))
    for step in range(setting.steps):
        samples = task.samples(setting.batch, Split.TRAIN, asked.seed, step)
        there = None if samples.present is None else torch.tensor(samples.present)
        out, _ = model(torch.tensor(samples.inputs), there)
        parts = []
        for row, places in enumerate(samples.positions):
            for asked_for, place in enumerate(places):
                said, target = out[row, place], samples.targets[row, asked_for]
                if task.metric is Metric.ACCURACY:
                    parts.append(said.logsumexp(0) - said[target])
                else:
                    parts.append((said[0] - float(target)) ** 2)
        loss = torch.stack(parts).mean()
        losses.append(loss.item())
        gradients = torch.autograd.grad(loss, weights)
        norm = torch.stack([each.square().sum() for each in gradients]).sum().sqrt().item()
        if step < setting.warmup:
            rate = asked.rate * (step + 1) / setting.warmup
        else:
            share = (step - setting.warmup) / (setting.steps - setting.warmup)
            rate = asked.rate * 0.5 * (1 + math.cos(math.pi * share))
        for weight, gradient, m, v in zip(weights, gradients, first, second, strict=True):
            clipped = gradient * min(1.0, float(setting.clip) / (norm + 1e-6))
            m.copy_(0.9 * m + 0.1 * clipped)
            v.copy_(0.98 * v + 0.02 * clipped**2)
            ahead, spread = m / (1 - 0.9 ** (step + 1)), v / (1 - 0.98 ** (step + 1))
            with torch.no_grad():
                weight -= rate * (float(setting.decay) * weight + ahead / (spread.sqrt() + 1e-8))
    return model, losses


@pytest.mark.parametrize("task", [NEEDLE, Numbers.read({"n": 8})], ids=["classes", "numbers"])
def test_it_is_adamw_with_warm_up_cosine_and_clipping_at_the_places_asked(task: Task) -> None:
    asked = run(task=task, clip="0.3", decay="0.1")
    model, losses = written_out(asked)
    found = train(asked)
    assert found.outcome is RunOutcome.UNSOLVED
    np.testing.assert_allclose(found.curves.loss, losses, rtol=1e-4)
    for (name, ours), theirs in zip(
        found.model.state_dict().items(), model.state_dict().values(), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5, msg=name)
    assert (found.curves.gradient > 0.3).any()


@pytest.mark.parametrize("mechanism", ["softmax", "gated-delta", "hedgehog"])
def test_from_every_checkpoint_it_goes_on_to_the_same_end(mechanism: str) -> None:
    asked = run(mechanism, test=True, steps=14, conv=2, mlp=1)
    *checkpoints, whole = train_with_checkpoints(asked)
    assert isinstance(whole, RunResult)
    assert len(checkpoints) == 3
    same(whole, train(asked))
    for number, each in enumerate(checkpoints):
        assert isinstance(each, bytes)
        *more, resumed = train_with_checkpoints(asked, each)
        assert more == checkpoints[number + 1 :]
        assert isinstance(resumed, RunResult)
        same(resumed, whole)


class Noisy(nn.Module):
    """Draws in every call, counts them in a buffer, and has a weight that only the first calls use."""

    def __init__(self) -> None:
        super().__init__()
        self.early = nn.Parameter(torch.ones(()))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
        self.calls += 1
        weight = self.early if self.calls < 4 else 1.0
        logits = (q @ k.mT).masked_fill(torch.ones(q.shape[-2], q.shape[-2]).triu(1) > 0, -torch.inf)
        return weight * functional.dropout(logits.softmax(-1), 0.3, self.training) @ v


def test_what_a_mechanism_draws_and_counts_is_resumed_too() -> None:
    given = Noisy()
    asked = run(given)
    torch.manual_seed(1)
    *checkpoints, whole = train_with_checkpoints(asked)
    torch.manual_seed(2)
    before = torch.get_rng_state()
    *_, resumed = train_with_checkpoints(asked, checkpoints[-1])
    assert isinstance(whole, RunResult)
    assert isinstance(resumed, RunResult)
    same(resumed, whole)
    assert torch.equal(torch.get_rng_state(), before)
    assert (given.calls, given.early) == (0, 1)
    assert whole.model.blocks[0].attention.attend.early != 1


def test_initial_weights_and_batches_are_paired_over_mechanisms() -> None:
    setting = run().setting
    reference = build_model(NEEDLE, "softmax", setting, 5).state_dict()
    for each in examples():
        found = build_model(NEEDLE, each, setting, 5).state_dict()
        assert all(torch.equal(found[name], weight) for name, weight in reference.items()), each.spelled
    other = build_model(NEEDLE, "softmax", setting, 6).state_dict()
    assert not torch.equal(reference["head.weight"], other["head.weight"])
    first = [train(run(name, seed=seed, steps=1, every=1)).loss for name, seed in (("elu", 1), ("elu", 2))]
    assert first[0] != first[1]


class Watched(NeedleTask):
    """Notes which samples are drawn."""

    name = "watched"
    drawn: ClassVar[list[tuple[Split, int, int, int]]] = []

    def samples(self, count: int, split: Split, seed: int = 0, step: int = 0) -> Samples:
        if count > 1:  # one is looked at for its length
            self.drawn.append((split, count, seed, step))
        return super().samples(count, split, seed, step)


def test_a_pilot_never_sees_test_data_and_others_see_it_once() -> None:
    task = Watched.read({"n": 8})
    assert train(run(task=task)).score is None
    trained = [(Split.TRAIN, 8, 3, step) for step in range(12)]
    assert Watched.drawn == [(Split.VALIDATION, 32, 0, 0), *trained]
    Watched.drawn.clear()
    found = train(run(task=task, test=True))
    assert Watched.drawn == [*trained, (Split.TEST, 16, 0, 0)]
    assert found.score == score_model(
        found.model, task, draw_test_samples(task, run(task=task).setting.tests)
    )


def test_a_finished_run_is_tested_once_at_each_further_length_and_a_pilot_never() -> None:
    task = task_named("retrieval").read({"trained": 4, "tested": 4, "also": "6,9"})
    setting = task.default_setting(**SIZES, tests=50)
    found = train(RunConfig(task, "softmax", setting, 0.01, 0, test=True))
    alone = {n: task_named("retrieval").read({"trained": 4, "tested": n}) for n in (6, 9)}
    for n, each in alone.items():
        assert task.further_tasks()[n].parameters == each.parameters
        assert found.further_scores[n] == score_model(found.model, each, each.samples(50, Split.TEST))
    assert found.further_scores.keys() == {6, 9}
    assert train(RunConfig(task, "softmax", setting, 0.01, 0)).further_scores == {}
    plain = task_named("retrieval").read({"trained": 4, "tested": 4})
    assert train(RunConfig(plain, "softmax", setting, 0.01, 0, test=True)).score == found.score


def test_a_run_stops_when_the_task_is_solved() -> None:
    asked = run(task=NeedleTask.read({"n": 8, "strength": 3}), steps=400, every=20, width=16, batch=32)
    found = train(asked)
    assert found.outcome is RunOutcome.SOLVED
    _, ceiling = draw_validation_samples(asked.task, asked.setting.validation)
    good = ceiling - asked.task.tolerance
    looks = [(step, value >= good) for step, name, value in found.curves.rows() if name == "validation"]
    pairs = [one and other for (_, one), (_, other) in itertools.pairwise(looks)]
    assert pairs == [False] * (len(pairs) - 1) + [True]
    assert (found.solved_at, found.steps) == (looks[-2][0], looks[-1][0])
    assert found.steps == found.curves.step_count < 400
    assert found.validation >= good
    again = train(replace(asked, first=found.model, setting=asked.setting.model_copy(update={"steps": 20})))
    assert (again.outcome, again.steps, again.solved_at) == (RunOutcome.SOLVED, 20, 0)


def test_divergence_is_an_outcome_with_its_step() -> None:
    found = train(run("identity-features:normalised=no", rate=1e8, steps=40, test=True, warmup=0))
    assert found.outcome is RunOutcome.DIVERGED
    assert found.diverged_at == found.steps + 1 < 40
    assert found.solved_at is None
    assert found.score is not None
    assert 0 <= found.score <= 1
    assert found.curves.step_count == found.steps + 1
    last = found.curves.loss[found.steps]
    assert not last < 1000


class Exploding(nn.Module):
    """Loses its numbers in the fourth step, forward or backward."""

    def __init__(self, backward: bool) -> None:
        super().__init__()
        self.backward, self.steps = backward, 0

    def forward(self, q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
        self.steps += self.training
        if self.steps < 4:
            return v
        return (v * 0).sqrt() * 0 + v if self.backward else v / 0


@pytest.mark.parametrize("backward", [False, True])
def test_numbers_that_are_none_are_divergence_and_leave_the_weights(backward: bool) -> None:
    found = train(run(Exploding(backward), test=True))
    assert (found.outcome, found.diverged_at) == (RunOutcome.DIVERGED, 4)
    assert all(weight.isfinite().all() for weight in found.model.parameters())
    assert math.isfinite(found.validation)


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, v: Tensor) -> Tensor:
        return v.clone()

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        raise RuntimeError("no gradient\nhere")


def broken(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    return Broken.apply(v)


def test_a_mechanism_that_breaks_in_backward_is_named() -> None:
    with pytest.raises(UsageError, match=r"^broken fails in backward, at step 1: RuntimeError: no gradient"):
        train(run(broken))


def test_noise_has_the_size_of_the_weights() -> None:
    given = build_model(NEEDLE, "softmax", run(width=64).setting)
    moved, other = perturb(given, 0.5, 1), perturb(given, 0.5, 2)
    for one, before, second in zip(moved.parameters(), given.parameters(), other.parameters(), strict=True):
        share = ((one - before).norm() / before.norm()).item()
        assert 0.2 < share < 0.9
        assert not torch.equal(one, second)
    same_again = perturb(given, 0.5, 1).state_dict()
    assert all(torch.equal(same_again[name], weight) for name, weight in moved.state_dict().items())
    begun = train(run(first=moved, width=64, rate=1e-12))
    torch.testing.assert_close(begun.model.state_dict(), moved.state_dict())


def test_a_checkpoint_that_is_none_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    first = next(train_with_checkpoints(run()))
    assert isinstance(first, bytes)
    for data, complaint in (
        (b"", "the checkpoint is damaged"),
        (first[: len(first) // 2], "the checkpoint is damaged"),
        (pack_arrays(step=4), "does not belong to this run"),
        (next(train_with_checkpoints(run(width=16))), "does not belong to this run"),
        (next(train_with_checkpoints(run(depth=2))), "does not belong to this run"),
    ):
        with pytest.raises(CheckpointError, match=complaint) as told:
            next(train_with_checkpoints(run(), data))  # type: ignore[arg-type]
        assert "\n" not in str(told.value)
    monkeypatch.setattr(checkpoint_file, "VERSION", 2)
    with pytest.raises(CheckpointError, match="has version 1, and this program reads version 2"):
        next(train_with_checkpoints(run(), first))


def npy(header: bytes, content: bytes = b"") -> bytes:
    """An array in NumPy's format with this header."""
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + content


def crafted(method: int = zipfile.ZIP_STORED, **members: bytes) -> bytes:
    """A checkpoint with these bytes as arrays."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as out:
        for name, content in {"version": arrays_of(1), **members}.items():
            out.writestr(f"{name}.npy", content)
    return made.getvalue()


def arrays_of(value: Any) -> bytes:
    made = io.BytesIO()
    np.save(made, value)
    return made.getvalue()


MAX_MEMORY = 4_000_000
"""Bytes that reading a crafted checkpoint may allocate."""
BOMB_BYTES = 4 * MAX_MEMORY
CRAFTED = {
    "a terabyte": crafted(x=npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,)}\n")),
    "a product that is small": crafted(
        x=npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (-4294967296, -4294967296)}\n")
    ),
    "a shape of words": crafted(x=npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': ('a',)}\n")),
    "a type of numbers": crafted(x=npy(b"{'descr': 7, 'fortran_order': False, 'shape': (1,)}\n", bytes(8))),
    "a wide type": crafted(x=npy(b"{'descr': '|V1099511627776', 'fortran_order': False, 'shape': ()}\n")),
    "no dictionary": crafted(x=npy(b"[1, 2\n")),
    "too many bytes": crafted(x=npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}\n", bytes(9))),
    "another format": crafted(x=b"\x93NUMPY\x09\x00"),
    "no array": crafted(x=b"words"),
    "a bomb": crafted(zipfile.ZIP_DEFLATED, x=arrays_of(np.zeros(BOMB_BYTES // 8))),
    "bzip2": crafted(zipfile.ZIP_BZIP2, x=arrays_of(np.zeros(BOMB_BYTES // 8))),
}


@pytest.mark.parametrize("data", CRAFTED.values(), ids=CRAFTED)
def test_a_crafted_checkpoint_is_damaged_and_takes_no_memory(data: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(
            CheckpointError, match="the checkpoint is damaged; start again with --retry-failed"
        ):
            unpack_arrays(data)
        assert tracemalloc.get_traced_memory()[1] < MAX_MEMORY
    finally:
        tracemalloc.stop()


def test_random_damage_to_a_checkpoint_is_said_in_one_line() -> None:
    first, chance = next(train_with_checkpoints(run())), random.Random(0)
    assert isinstance(first, bytes)
    for _ in range(300):
        damaged = bytearray(first)
        for _ in range(chance.choice((1, 2, 8))):
            damaged[chance.randrange(len(damaged))] = chance.choice((0, 0xFF, chance.randrange(256)))
        with suppress(CheckpointError):
            unpack_arrays(bytes(damaged))


@pytest.mark.parametrize(
    "changed",
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
def test_arrays_that_do_not_fit_the_run_are_said_in_one_line(changed: dict[str, Any]) -> None:
    first = next(train_with_checkpoints(run()))
    assert isinstance(first, bytes)
    whole = pack_arrays(**{**unpack_arrays(first), **changed})
    with pytest.raises(CheckpointError, match="the checkpoint does not belong to this run"):
        next(train_with_checkpoints(run(), whole))


def test_nothing_in_a_checkpoint_is_unpickled() -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return pytest.fail, ("unpickled",)

    with pytest.raises(CheckpointError, match="damaged"):
        next(train_with_checkpoints(run(), pack_arrays(step=np.array([Trap()], dtype=object))))


def test_what_is_no_number_scores_as_the_answer_0() -> None:
    task = Numbers.read({"n": 8})
    model = build_model(task, "softmax", run(task=task).setting)
    with torch.no_grad():
        model.head.weight.fill_(torch.nan)
    assert score_model(model, task, task.samples(64, Split.VALIDATION)) == 1
