"""Witnesses: constructed weights reach the scores that they are constructed for, in the trained model."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
import torch

from separatrix.mechanisms import mechanism_named
from separatrix.training.learning import build_model, perturb, score_model
from separatrix.training.learning.batch import MAX_BATCH_TOKENS, SampleBatch, compute_outputs
from separatrix.training.learning.witnesses import WITNESSES, build_witness, witnessed_mechanisms
from separatrix.training.learning.witnesses._codes import spread_codes
from separatrix.training.tasks import Samples, Setting, Split, Task, task_named

CASES = [(name, mechanism) for name, witness in WITNESSES.items() for mechanism in witness.mechanisms]


def task_of(name: str, **words: object) -> Task:
    return task_named(name).read(words)


def write_witness(task: Task, mechanism: str, setting: Setting | None = None) -> torch.nn.Module:
    model = build_witness(task, mechanism, setting or task.default_setting())
    assert model is not None
    return model


def outputs_of(model: torch.nn.Module, samples: Samples) -> np.ndarray:
    with torch.no_grad():
        return compute_outputs(model, SampleBatch.of(samples)).double().numpy()


@lru_cache
def samples_with_bounds(name: str) -> tuple[Samples, float, float]:
    """Return test samples of the example of a task, their ceiling and their floor."""
    task = task_of(name, **task_named(name).example)
    samples = task.samples(400, Split.TEST)
    # The floors of needle and spike need a nonlinearity, which not all witnesses have.
    floor = 0.5 if name in ("needle", "spike") else task.floor(samples).score
    return samples, task.ceiling(samples).score, floor


@pytest.mark.parametrize(("name", "mechanism"), CASES)
def test_every_witness_is_between_floor_and_ceiling(name: str, mechanism: str) -> None:
    """At the default sizes of the task, except for the key width of a kernel with many features."""
    task = task_of(name, **task_named(name).example)
    setting = task.default_setting(**({"key_width": 16} if mechanism == "based" else {}))
    samples, ceiling, floor = samples_with_bounds(name)
    score, sign = score_model(write_witness(task, mechanism, setting), task, samples), task.metric.sign
    margin = 0.0 if name in ("mqar", "induction", "duplication", "regression") else 3 * (0.02 / 400) ** 0.5
    assert sign * score <= sign * ceiling + margin + 1e-9  # on a few samples another rule may score better by chance
    proved_ceiling = task.proved_ceiling(mechanism_named(mechanism), setting)
    assert sign * score > sign * floor + 0.05
    if proved_ceiling is not None:  # it is an expectation, and the score is measured on a sample
        assert sign * score <= sign * proved_ceiling.score + 3 * (0.25 / 400) ** 0.5


@pytest.mark.parametrize("name", WITNESSES)
def test_a_witness_has_the_shapes_of_the_trained_model(name: str) -> None:
    task = task_of(name, **task_named(name).example)
    mechanism, setting = witnessed_mechanisms(task)[0], task.default_setting()
    shapes = [
        {key: weight.shape for key, weight in model.state_dict().items()}
        for model in (write_witness(task, mechanism), build_model(task, mechanism, setting))
    ]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize(("n", "count"), [(64, 1000), (256, 300)])
def test_needle_witnesses_compute_the_softmax_and_linear_rules(n: int, count: int) -> None:
    task = task_of("needle", n=n)
    samples = task.samples(count, Split.TEST)
    assert abs(score_model(write_witness(task, "softmax"), task, samples) - task.ceiling(samples).score) <= 1 / count
    u, z, marks = samples.inputs[:, -1, :4], samples.inputs[:, :-1, :4], samples.inputs[:, :-1, 4]
    linear = np.einsum("cnd,cd,cn->c", z, u, marks, dtype=np.float64)
    for mechanism in ("identity-features:normalised=no", "identity-features", "causal-linear", "gla"):
        outputs = outputs_of(write_witness(task, mechanism), samples)[:, 0]
        assert ((outputs[:, 1] > outputs[:, 0]) == (linear > 0)).mean() >= 1 - 2 / count


def test_a_delta_rule_with_weak_writes_answers_the_needle_like_a_sum() -> None:
    task = task_of("needle", n=64)
    samples = task.samples(1000, Split.TEST)
    delta, linear = (
        outputs_of(write_witness(task, mechanism), samples)[:, 0].argmax(-1) for mechanism in ("delta", "causal-linear")
    )
    assert (delta == linear).mean() > 0.97


def test_recall_by_a_sum_equals_the_interference_of_its_codes() -> None:
    task = task_of("mqar", pairs=32)
    setting, samples = task.default_setting(key_width=8), task.samples(60, Split.TEST)
    codes, correct = spread_codes(32, 8).double().numpy(), []
    for row, targets in zip(samples.inputs, samples.targets, strict=True):
        for query, target in zip(row[64:], targets, strict=True):
            scores = np.zeros(32)
            for key, value in zip(row[:64:2], row[1:64:2], strict=True):
                scores[value - 32] += codes[query] @ codes[key]
            correct.append(scores.argmax() == target)
    for mechanism in ("identity-features:normalised=no", "causal-linear", "ssd", "gla", "delta", "gated-delta"):
        score = score_model(write_witness(task, mechanism, setting), task, samples)
        assert abs(score - np.mean(correct)) < 0.003
    assert np.mean(correct) > 0.88


@pytest.mark.parametrize(
    ("mechanism", "narrow"),
    [("softmax", 1.0), ("based", 0.99), ("retention", 0.6), ("linear", 0.8), ("elu", 0.45), ("relu", 1.0)],
)
def test_recall_of_all_pairs(mechanism: str, narrow: float) -> None:
    """At key width 32 every key has its own channel; at 8 they share channels."""
    task = task_of("mqar", pairs=32)
    samples = task.samples(60, Split.TEST)
    for width, least in ((8, narrow), (32, 1.0)):
        model = write_witness(task, mechanism, task.default_setting(key_width=width))
        assert score_model(model, task, samples) >= least


def test_normalised_mechanisms_solve_duplication_only_with_a_first_token() -> None:
    for mechanism in ("softmax", "elu", "identity-features", "relu"):
        without_first, with_first = task_of("duplication"), task_of("duplication", first="yes")
        assert build_witness(without_first, mechanism, without_first.default_setting()) is None
        for setting in (with_first.default_setting(), with_first.default_setting(norm="yes", out_norm="yes")):
            assert (
                score_model(
                    write_witness(with_first, mechanism, setting), with_first, with_first.samples(400, Split.TEST)
                )
                == 1.0
            )


@pytest.mark.parametrize("mechanism", ["identity-features:normalised=no", "linear", "causal-linear"])
def test_regression_by_a_sum_is_one_step_of_gradient_descent(mechanism: str) -> None:
    task, n, d = task_of("regression"), 20, 5
    samples, model = task.samples(10000, Split.TEST), write_witness(task, mechanism)
    step = np.zeros(d)
    for x, y in zip(samples.inputs[0, :n, :d], samples.inputs[0, :n, d], strict=True):
        step += x * y / (n + d + 1)
    assert outputs_of(model, samples.select(np.arange(1))).item() == pytest.approx(
        step @ samples.inputs[0, n, :d], rel=1e-3
    )
    assert score_model(model, task, samples) == pytest.approx((d + 1) / (n + d + 1), abs=0.01)


def test_regression_by_delta_and_softmax() -> None:
    task = task_of("regression")
    samples, two = task.samples(3000, Split.TEST), task.default_setting(heads=2)
    assert score_model(write_witness(task, "delta"), task, samples) < 0.1  # a step for every example
    assert score_model(write_witness(task, "softmax"), task, samples) < 0.5
    assert score_model(write_witness(task, "softmax", two), task, samples) < 0.27  # the second head removes the mean


def test_the_static_spike() -> None:
    task = task_of("spike")
    samples = task.samples(3000, Split.TEST)
    ceiling = task.ceiling(samples).score
    assert abs(score_model(write_witness(task, "softmax"), task, samples) - ceiling) <= 0.0007
    assert score_model(write_witness(task, "elu"), task, samples) > ceiling - 0.01
    linear = write_witness(task, "identity-features:normalised=no")
    assert score_model(linear, task, samples) == pytest.approx(0.7814, abs=0.02)


@pytest.mark.parametrize("name", ["needle", "spike", "mqar", "induction"])
def test_softmax_works_through_norms_heads_blocks_and_mlps(name: str) -> None:
    task = task_of(name, **task_named(name).example)
    setting = task.default_setting(width=128, heads=2, key_width=32, depth=2, mlp=2, norm="yes", out_norm="yes", conv=3)
    samples = task.samples(500, Split.TEST)
    model = write_witness(task, "softmax", setting)
    assert score_model(model, task, samples) == pytest.approx(task.ceiling(samples).score, abs=0.005)


def test_regression_works_through_norms() -> None:
    task = task_of("regression")
    samples = task.samples(1000, Split.TEST)
    for mechanism in ("causal-linear", "identity-features"):
        without_norms, with_norms = (
            score_model(write_witness(task, mechanism, task.default_setting(norm=norm)), task, samples)
            for norm in ("no", "yes")
        )
        assert with_norms == pytest.approx(without_norms, abs=0.005)


@pytest.mark.parametrize(
    ("name", "mechanism", "words"),
    [
        ("needle", "softmax", {"rope": 10000}),
        ("needle", "softmax", {"width": 6, "heads": 1}),
        ("needle", "softmax", {"key_width": 4}),
        ("needle", "power:beta=3", {}),
        ("needle", "linformer", {}),
        ("mqar", "softmax", {"conv": 0}),
        ("mqar", "softmax", {"width": 32}),
        ("mqar", "softmax", {"heads": 4}),
        ("induction", "softmax", {"conv": 1}),
        ("duplication", "causal-linear", {"out_norm": "yes"}),
        ("regression", "causal-linear", {"out_norm": "yes"}),
        ("regression", "power:beta=4", {}),
        ("spike", "softmax", {"width": 7}),
        ("parity", "softmax", {}),
    ],
)
def test_there_is_no_witness_where_a_construction_does_not_apply(
    name: str, mechanism: str, words: dict[str, object]
) -> None:
    task = task_of(name)
    assert build_witness(task, mechanism, task.default_setting(**words)) is None


@pytest.mark.parametrize(("name", "mechanism"), [("needle", "softmax"), ("mqar", "causal-linear")])
def test_queries_keys_and_values_have_equal_norms(name: str, mechanism: str) -> None:
    """Noise in proportion to the weights of the projection then affects all of them equally."""
    task = task_of(name)
    attention = write_witness(task, mechanism).blocks[0].attention
    sizes = [float(part.norm()) for part in attention.project.weight.detach().split(attention.channels)]
    assert sizes == pytest.approx([sizes[0]] * 3, rel=1e-4)
    samples = task.samples(200, Split.TEST)
    score = score_model(perturb(write_witness(task, mechanism), 0.1, 0), task, samples)
    assert score > task.ceiling(samples).score - 0.1


def test_codes_have_smaller_overlaps_than_random_directions() -> None:
    vectors = torch.randn(32, 8, generator=torch.Generator().manual_seed(1))
    for positive in (False, True):
        random_codes = torch.nn.functional.normalize(vectors.abs() if positive else vectors, dim=-1)
        codes = spread_codes(32, 8, positive)
        energy, random_energy = (
            float((unit_vectors @ unit_vectors.T).fill_diagonal_(0).clamp(min=0).pow(3).sum())
            for unit_vectors in (codes, random_codes)
        )
        assert energy < random_energy / 3
        assert codes.norm(dim=-1).numpy() == pytest.approx(1, abs=1e-5)
        assert not positive or float(codes.min()) >= 0


@pytest.mark.parametrize(("name", "mechanism"), [("spike", "elu"), ("regression", "softmax")])
def test_witnesses_are_fitted_in_batches_of_bounded_size(name: str, mechanism: str) -> None:
    """No layer reads more than MAX_BATCH_TOKENS tokens at once, so memory does not grow with the samples."""
    token_counts = list[int]()

    def record_tokens(_: torch.nn.Module, inputs: tuple[object, ...]) -> None:
        if inputs and isinstance(inputs[0], torch.Tensor) and inputs[0].ndim == 3:
            token_counts.append(inputs[0].shape[0] * inputs[0].shape[1])

    handle = torch.nn.modules.module.register_module_forward_pre_hook(record_tokens)
    try:
        write_witness(task_of(name, n=128), mechanism)
    finally:
        handle.remove()
    assert 0 < max(token_counts) <= MAX_BATCH_TOKENS
