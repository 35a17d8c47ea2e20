"""Ceilings, floors and proved ceilings against literal rules, simulation and every mechanism."""

import math
from typing import Any

import numpy as np
import pytest

from separatrix.core.tensors import torch
from separatrix.mechanisms import MECHANISMS, mechanism_named
from separatrix.training.tasks import Samples, Split, task_named
from separatrix.training.tasks._base import relative_error
from separatrix.training.tasks._proofs import (
    KERNEL_SUMS,
    PROPORTIONAL,
    SECOND_MOMENTS,
    expected_majority_share,
    is_proportional,
)
from separatrix.training.tasks.spike import log_mean_exp_coordinate, moment_ceiling

LINEAR = mechanism_named("identity-features:normalised=no")
PARAMETERS = {"power": ":beta=2", "taylor": ":order=3"}


def test_the_ceiling_of_the_needle_agrees_with_independent_simulations() -> None:
    for n, simulated, proved in ((64, 0.981, 0.7057), (256, 0.988, 0.6226)):
        task = task_named("needle").read({"n": n})
        samples = task.samples(20000, Split.TEST)
        assert abs(task.ceiling(samples).score - simulated) < 0.005
        marks, along = samples.inputs[:, :-1, -2], samples.latents["along"]
        correct = ((marks * along).sum(1) > 0) == samples.targets[:, 0]
        assert abs(correct.mean() - proved) < 0.015


def test_the_expected_majority_share_agrees_with_counts() -> None:
    assert expected_majority_share(3, 2) == pytest.approx((2 * 3 + 6 * 2) / 8 / 3)
    for pairs in (4, 32):
        task = task_named("mqar").read({"pairs": pairs})
        samples = task.samples(8000, Split.TEST)
        assert abs(task.floor(samples).score - expected_majority_share(pairs, 32)) < 0.004


def test_every_key_of_recall_has_the_value_next_to_it() -> None:
    task = task_named("mqar").read({"pairs": 5})
    samples = task.samples(20, Split.TRAIN)
    for tokens, positions, targets in zip(samples.inputs, samples.positions, samples.targets, strict=True):
        values = {tokens[i]: tokens[i + 1] - 32 for i in range(0, 10, 2)}
        assert len(values) == 5
        assert [values[tokens[position]] for position in positions] == list(targets)
        assert sorted(tokens[positions]) == sorted(values)


def test_pairs_of_duplication_are_one_multiset_once_and_twice() -> None:
    for first in ("no", "yes"):
        samples = task_named("duplication").read({"first": first}).samples(100, Split.TEST)
        assert samples.present is not None
        sequences = [tokens[mask] for tokens, mask in zip(samples.inputs, samples.present, strict=True)]
        if first == "yes":
            assert all(tokens[0] == 16 for tokens in sequences)
            sequences = [tokens[1:] for tokens in sequences]
        for once, twice in zip(sequences[::2], sequences[1::2], strict=True):
            assert sorted([*once, *once]) == sorted(twice)
            assert once[-1] == twice[-1]
        assert samples.targets[:, 0].tolist() == [0, 1] * 50


OTHERS = (
    *("logn-softmax", "adaptive-softmax", "sparsemax", "entmax", "topk", "sigmoid", "causal-linear"),
    *("identity-features:normalised=no", "elu:normalised=no"),
)


@pytest.mark.parametrize("name", [*PROPORTIONAL, *OTHERS])
def test_proportional_mechanisms_give_equal_outputs_for_a_multiset_once_and_twice(name: str) -> None:
    mechanism = mechanism_named(name + PARAMETERS.get(name, ""))
    assert is_proportional(mechanism) == (name in PROPORTIONAL)
    samples, differences = task_named("duplication").read({"items": 12}).samples(8, Split.TEST), []
    assert samples.present is not None
    torch.manual_seed(0)
    q, k, v = (0.3 + torch.rand(3, 17, 8, dtype=torch.float64)).unbind()
    for once in range(0, 8, 2):
        sequences = [torch.from_numpy(samples.inputs[i][samples.present[i]]) for i in (once, once + 1)]
        outputs = [
            mechanism(*(table[tokens][None, None] for table in (q, k, v)), causal=True)[0, 0, -1]
            for tokens in sequences
        ]
        differences.append(float((outputs[0] - outputs[1]).abs().max()))
    assert max(differences) < 1e-9 if name in PROPORTIONAL else max(differences) > 1e-3


def test_mechanisms_named_in_proofs_exist() -> None:
    assert set(PROPORTIONAL) <= set(MECHANISMS)
    for spelling in SECOND_MOMENTS:
        assert mechanism_named(spelling).spelled == spelling


@pytest.mark.parametrize("spelling", SECOND_MOMENTS)
def test_linear_kernels_depend_only_on_second_moments(spelling: str) -> None:
    """A rotation of the tokens that keeps the moments of (1, k, v) does not change the output of a query."""
    torch.manual_seed(1)
    mechanism, n = mechanism_named(spelling), 6
    tokens = torch.randn(n, 5, dtype=torch.float64)
    ones = torch.ones(n, 1, dtype=torch.float64)
    basis = torch.linalg.qr(torch.cat([ones, torch.randn(n, n - 1, dtype=torch.float64)], dim=1))[0]
    rotation = torch.linalg.qr(torch.randn(n - 1, n - 1, dtype=torch.float64))[0]
    block = torch.block_diag(torch.ones(1, 1, dtype=torch.float64), rotation)
    rotated = basis @ block @ basis.T @ tokens
    assert not torch.allclose(rotated, tokens)
    q, outputs = torch.randn(1, 1, 1, 3, dtype=torch.float64), []
    for rows in (tokens, rotated):
        k, v = torch.cat([rows[:, :3], torch.zeros(1, 3)]), torch.cat([rows[:, 3:], torch.zeros(1, 2)])
        queries = torch.cat([torch.zeros(1, 1, n, 3, dtype=torch.float64), q], dim=2)
        queries = queries + 0.1  # so that no row of scores sums to 0
        outputs.append(mechanism(queries, k[None, None], v[None, None], causal=True)[0, 0, -1])
    assert torch.allclose(*outputs, atol=1e-9)
    assert (spelling in KERNEL_SUMS) == (not mechanism.is_normalised)


def test_one_gradient_step_has_the_error_proved_for_kernel_sums() -> None:
    for n, d in ((20, 5), (4, 6)):
        task = task_named("regression").read({"n": n, "d": d})
        proved = task.proved_ceiling(LINEAR, task.default_setting())
        assert proved is not None
        assert proved.score == (d + 1) / (n + d + 1)
        samples = task.samples(40000, Split.TRAIN)
        x, y, query = samples.inputs[:, :-1, :d], samples.inputs[:, :-1, d], samples.inputs[:, -1, :d]
        step = np.einsum("cn,cnd,cd->c", y, x, query)[:, None]
        rate = 1 / (n + d + 1)
        assert relative_error(rate * step, samples) == pytest.approx(proved.score, abs=0.015)
        predictors = [step, *(step * np.square(query).sum(1, keepdims=True), y.sum(1, keepdims=True))]
        features = np.concatenate(predictors, axis=1)
        best = features @ np.linalg.lstsq(features, samples.targets, rcond=None)[0]
        assert relative_error(best, samples) < relative_error(rate * step, samples) + 1e-6
        assert task.ceiling(samples).score == pytest.approx(max(0, 1 - n / d), abs=0.02)


def test_bounds_of_the_spike_agree_with_literal_rules() -> None:
    task = task_named("spike").read({})
    samples = task.samples(30000, Split.TEST)
    assert abs(task.ceiling(samples).score - 0.919) < 0.006
    proved = task.proved_ceiling(LINEAR, task.default_setting())
    assert proved is not None
    along, n = samples.latents["along"], 64
    total, square = along.sum(1), np.square(along).sum(1)
    answers = log_moment_ratio(total, square - total**2 / n, n, task.shift) > 0  # type: ignore[attr-defined]
    assert abs((answers == samples.targets[:, 0]).mean() - proved.score) < 0.008
    floor = task.floor(samples)
    assert "norms" in floor.basis
    assert abs(floor.score - 0.82) < 0.01
    wide = task_named("spike").read({"dz": 64})
    by_mean = wide.floor(wide.samples(8000, Split.TEST))
    assert "mean" in by_mean.basis
    assert abs(by_mean.score - 0.5 * (1 + math.erf(task.shift / 16 / math.sqrt(2)))) < 0.015  # type: ignore[attr-defined]


def log_moment_ratio(total: Any, remainder: Any, n: int, shift: float) -> Any:
    """Return the log likelihood ratio of a spike, given sum s and R² = sum s² - (sum s)²/n.

    Without a spike, s_i - mean(s) is then R sqrt(1 - 1/n) times a coordinate of a uniform direction in
    n - 1 dimensions, and E exp(k coordinate) = Gamma(v + 1) (2/k)^v I_v(k) with v = (n - 3)/2.
    """
    k = shift * np.sqrt(remainder * (1 - 1 / n))
    return shift * total / n - shift**2 / 2 + log_mean_exp_coordinate((n - 3) / 2, k)


def test_the_moment_ratio_is_that_of_densities() -> None:
    """By the densities of the normal and the two chi-squared distributions."""
    from scipy.stats import chi2, ncx2, norm

    n, shift, total, remainder = 12, 2.5, 3.0, 14.0
    with_spike = norm.pdf(total, shift, math.sqrt(n)) * ncx2.pdf(remainder, n - 1, shift**2 * (1 - 1 / n))
    without = norm.pdf(total, 0, math.sqrt(n)) * chi2.pdf(remainder, n - 1)
    assert log_moment_ratio(total, remainder, n, shift) == pytest.approx(math.log(with_spike / without))
    assert moment_ceiling(n, 1e-3) == pytest.approx(0.5, abs=1e-3)


def test_bounds_of_single_location_regression_agree_with_literal_rules() -> None:
    for n, shift in ((3, 2), (6, 1)):
        task = task_named("location").read({"n": n, "shift": shift})
        samples = task.samples(40000, Split.TEST)
        x = samples.inputs[:, :-1].astype(np.float64)
        features = np.stack([x[..., 1].sum(1), (x[..., 0] * x[..., 1]).sum(1)], axis=1)
        best = features @ np.linalg.lstsq(features, samples.targets, rcond=None)[0]
        proved = task.proved_ceiling(LINEAR, task.default_setting())
        assert proved is not None
        assert relative_error(best, samples) == pytest.approx(proved.score, abs=0.015)
        assert task.floor(samples).score == pytest.approx(1 - 1 / n, abs=0.015)
        assert task.ceiling(samples).score < proved.score - 0.02


def test_a_proved_ceiling_covers_only_its_class_of_models() -> None:
    softmax = mechanism_named("softmax")
    for name, mechanism, changes in (
        ("needle", LINEAR, {"norm": "yes"}),
        ("needle", softmax, {}),
        ("spike", LINEAR, {"depth": 2}),
        ("regression", LINEAR, {"mlp": 2}),
        ("regression", mechanism_named("linear"), {}),
        ("location", LINEAR, {"out_norm": "yes"}),
        ("mqar", softmax, {}),
        ("mqar", mechanism_named("delta"), {"conv": 0}),
        ("duplication", LINEAR, {}),
        ("duplication", softmax, {"rope": 10000}),
    ):
        task = task_named(name).read({})
        assert task.proved_ceiling(mechanism, task.default_setting(**changes)) is None
    first = task_named("duplication").read({"first": "yes"})
    assert first.proved_ceiling(softmax, first.default_setting()) is None
    for name, mechanism, changes in (("mqar", softmax, {"conv": 0}), ("duplication", softmax, {"norm": "yes"})):
        task = task_named(name).read({})
        proved = task.proved_ceiling(mechanism, task.default_setting(**changes))
        samples: Samples = task.samples(4000, Split.TEST)
        assert proved is not None
        assert proved.score == pytest.approx(task.floor(samples).score, abs=0.005)


@pytest.mark.parametrize(
    ("n", "strength", "score"),
    [(2048, "1.5", 0.6078), (4096, "1.5", 0.5837), (600, "0.25", 0.5086), (4, "0.001", 0.5002), (64, "1000", 1)],
)
def test_the_ceiling_of_spikes_does_not_underflow(n: int, strength: str, score: float) -> None:
    """Against draws of the two statistics, classified by their densities in the arithmetic of mpmath."""
    import mpmath

    task = task_named("spike").read({"n": n, "strength": strength})
    proved = task.proved_ceiling(LINEAR, task.default_setting())
    assert proved is not None
    assert proved.score == pytest.approx(score, abs=5e-5)
    rng, count, shift = np.random.default_rng(3), 2000, task.shift
    noncentrality, order, correct = shift**2 * (1 - 1 / n), (n - 3) / 2, 0
    with mpmath.workdps(30):
        gamma, constant = mpmath.loggamma(order + 1), shift**2 / 2
        for spike in (0, 1):
            totals = rng.normal(shift * spike, math.sqrt(n), count)
            squares = rng.noncentral_chisquare(n - 1, noncentrality * spike, count)
            for total, square in zip(totals[:150], squares[:150], strict=True):
                k = mpmath.mpf(shift * math.sqrt(square * (1 - 1 / n)))
                bessel = gamma + order * mpmath.log(2 / k) + mpmath.log(mpmath.besseli(order, k))
                ratio = shift * total / n - constant + bessel
                assert abs(ratio - log_moment_ratio(total, square, n, shift)) < 1e-7 * (1 + abs(ratio))
            correct += int(((log_moment_ratio(totals, squares, n, shift) > 0) == spike).sum())
    assert abs(correct / (2 * count) - proved.score) < 4 * 0.5 / math.sqrt(2 * count)


EXTREMES = {
    "needle": [{"n": 4, "strength": "0.001"}, {"n": 4096, "strength": "1000"}, {"n": 4, "dz": 1}],
    "spike": [{"n": 4, "strength": "1000"}, {"n": 4096, "strength": "0.001"}, {"n": 5, "dz": 1}],
    "location": [{"n": 2, "shift": "0"}, {"n": 4096, "shift": "1000"}, {"n": 2, "shift": "1000"}],
    "regression": [{"n": 1, "d": 1}, {"n": 4096, "d": 1}, {"n": 1, "d": 256}],
    "mqar": [{"pairs": 2, "values": 4096}, {"pairs": 1024, "keys": 1024, "values": 2}],
    "induction": [{"n": 4, "symbols": 3}, {"n": 4096, "symbols": 3}, {"n": 4096, "symbols": 1024}],
    "copy": [{"trained": 2, "tested": 2}, {"trained": 2, "tested": 1024, "symbols": 1024, "blanks": 0}],
    "duplication": [{"items": 2, "symbols": 2}],
}


@pytest.mark.parametrize(("name", "words"), [(name, words) for name, several in EXTREMES.items() for words in several])
def test_proved_ceilings_lie_between_a_shortcut_and_the_best_rule(name: str, words: dict[str, object]) -> None:
    task = task_named(name).read(words)
    setting = task.default_setting(conv=0, depth=1)
    mechanism = mechanism_named("softmax" if name in ("mqar", "induction", "copy", "duplication") else "causal-linear")
    proved = task.proved_ceiling(LINEAR if name in ("location", "regression") else mechanism, setting)
    assert proved is not None
    assert math.isfinite(proved.score)
    assert 0 <= proved.score <= 1
    count = {"mqar": 40, "copy": 40, "induction": 40, "regression": 400}.get(name, 200)
    samples = task.samples(count, Split.TEST)
    margin, sign = task.proof_margin(proved, samples), task.metric.sign
    ceiling, floor = task.ceiling(samples), task.floor(samples)
    assert sign * proved.score <= sign * ceiling.score + margin.slack + 1e-9
    assert not floor.universal or sign * floor.score <= sign * proved.score + margin.slack + 1e-9
