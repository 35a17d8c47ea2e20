"""Parameters of tasks: their defaults, which stored runs are found by, and the values that are refused."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from separatrix.core.errors import UsageError
from separatrix.mechanisms import mechanism_named
from separatrix.training.tasks import REAL_TASKS, TASKS, Setting, Split, task_named
from separatrix.training.tasks._proofs import (
    KERNEL_SUM_MODELS,
    LINEAR_KERNEL_MODELS,
    ORDER_BLIND_MODELS,
    PROPORTIONAL_MODELS,
    ModelClass,
)
from separatrix.training.tasks.copy import unused_symbol_accuracy

DEFAULTS = Path(__file__).parent / "default_parameters.json"
"""Written by `python tests/training/tasks/test_parameters.py`."""


def list_defaults() -> dict[str, dict[str, object]]:
    return {name: task_named(name).read().parameters.as_json() for name in (*TASKS, *REAL_TASKS)}


def test_defaults_stay_what_they_are() -> None:
    assert list_defaults() == json.loads(DEFAULTS.read_text())


LIMITS: list[tuple[str, str, object, object, dict[str, object]]] = [
    ("listops", "length", 6, 512, {}),
    ("listops", "nesting", 1, 12, {}),
    ("induction", "n", 4, 4096, {}),
    ("induction", "symbols", 3, 1024, {}),
    ("regression", "n", 1, 4096, {}),
    ("regression", "d", 1, 256, {}),
    ("location", "n", 2, 4096, {}),
    ("location", "d", 2, 1024, {}),
    ("location", "shift", 0, 1000, {}),
    ("parity", "trained", 2, 16384, {"tested": 16384}),
    ("parity", "tested", 2, 16384, {"trained": 2}),
    ("modular", "tested", 2, 16384, {"trained": 2}),
    ("modular", "modulus", 2, 97, {}),
    ("copy", "symbols", 2, 1024, {"trained": 2, "tested": 2}),
    ("copy", "blanks", 0, 64, {}),
    ("duplication", "items", 2, 1024, {}),
    ("duplication", "symbols", 2, 1024, {}),
    ("mqar", "pairs", 2, 1024, {"keys": 4096}),
    ("mqar", "keys", 2, 4096, {"pairs": 2}),
    ("mqar", "values", 2, 4096, {}),
    ("retrieval", "classes", 2, 256, {}),
    *(
        (name, parameter, least, most, {})
        for name in ("needle", "spike")
        for parameter, least, most in (("n", 4, 4096), ("dz", 1, 1024), ("strength", Fraction(1, 1000), 1000))
    ),
]


@pytest.mark.parametrize(("name", "parameter", "least", "most", "others"), LIMITS)
def test_sizes_have_limits(
    name: str, parameter: str, least: Fraction | int, most: int, others: dict[str, object]
) -> None:
    step = 2 if (name, parameter) == ("needle", "n") else 1 if isinstance(least, int) else Fraction(1, 10**6)
    for limit, beyond in ((least, least - step), (most, most + step)):
        assert getattr(task_named(name).read({**others, parameter: limit}), parameter) == limit
        with pytest.raises(UsageError, match=f"{parameter}="):
            task_named(name).read({**others, parameter: beyond})


def normal_distribution(x: float) -> float:
    return (1 + math.erf(x / math.sqrt(2))) / 2


@pytest.mark.parametrize(
    ("name", "words", "score"),
    [
        ("needle", {"n": 64}, normal_distribution(1.5 * math.sqrt(2 * math.log(64)) / 8)),
        ("needle", {"n": 4, "strength": "0.5"}, normal_distribution(0.5 * math.sqrt(2 * math.log(4)) / 2)),
        ("regression", {}, 6 / 26),
        ("regression", {"n": 1, "d": 1}, 2 / 3),
        ("location", {"n": 2, "shift": 0}, 1 / 2),
        ("location", {"n": 3, "shift": 2}, 6 / 17),
        ("copy", {"trained": 2, "tested": 2}, (1 + 1 / 2) / 2),
        ("copy", {"trained": 2, "tested": 4}, (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4),
        ("mqar", {"pairs": 2, "values": 2}, 3 / 4),  # both values equal, or half right
        ("mqar", {"pairs": 3, "values": 2}, (2 * 3 + 6 * 2) / 8 / 3),
        ("induction", {"n": 4, "symbols": 3}, 3 / 4),
        ("duplication", {}, 1 / 2),
        ("duplication", {"first": "yes"}, None),
        ("parity", {}, None),
        ("retrieval", {}, None),
        ("listops", {}, None),
    ],
)
def test_proved_scores_by_hand(name: str, words: dict[str, object], score: float | None) -> None:
    found = task_named(name).read(words).proved_score()
    assert found == (None if score is None else pytest.approx(score, rel=1e-12))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mqar", {"pairs": 2, "keys": 3, "values": 2}),
        ("copy", {"trained": 2, "tested": 2, "symbols": 3, "blanks": 1}),
        ("copy", {"trained": 3, "tested": 3, "symbols": 4, "blanks": 0}),
        ("duplication", {"items": 3, "symbols": 3}),
        ("parity", {"trained": 5, "tested": 5}),
    ],
)
def test_the_bits_count_the_inputs(name: str, words: dict[str, object]) -> None:
    """Every input is drawn among thousands, and no other."""
    task = task_named(name).read(words)
    samples = task.draw(4000, Split.TRAIN, np.random.default_rng(0))
    assert len(np.unique(task.split_keys(samples), axis=0)) == round(2**task.bits)
    assert task.has_few_inputs


def test_few_inputs_are_fewer_than_two_to_the_64() -> None:
    assert [task_named("parity").read({"trained": n, "tested": n}).has_few_inputs for n in (63, 64)] == [True, False]
    modular = task_named("modular").read({"trained": 8, "tested": 9, "modulus": 5})
    assert modular.bits == pytest.approx(8 * math.log2(5))
    assert task_named("needle").read().bits == math.inf


LINEAR, SOFTMAX = "identity-features:normalised=no", "softmax"
PLAIN: dict[str, object] = {"conv": 0, "rope": 0, "depth": 1, "norm": "no", "out_norm": "no", "mlp": 0}


@pytest.mark.parametrize(
    ("models", "mechanism", "excluding"),
    [
        (KERNEL_SUM_MODELS, LINEAR, {"conv", "rope", "depth", "norm", "out_norm", "mlp"}),
        (LINEAR_KERNEL_MODELS, LINEAR, {"conv", "rope", "depth", "norm"}),
        (LINEAR_KERNEL_MODELS, "linear", {"conv", "rope", "depth", "norm"}),
        (ORDER_BLIND_MODELS, SOFTMAX, {"conv", "rope", "depth"}),
        (PROPORTIONAL_MODELS, SOFTMAX, {"conv", "rope", "depth"}),
        (KERNEL_SUM_MODELS, "linear", None),
        (KERNEL_SUM_MODELS, SOFTMAX, None),
        (LINEAR_KERNEL_MODELS, SOFTMAX, None),
        (ORDER_BLIND_MODELS, "window:size=3", None),
        (PROPORTIONAL_MODELS, LINEAR, None),
        (PROPORTIONAL_MODELS, "logn-softmax", None),
    ],
)
def test_each_condition_of_a_class_of_models_excludes_by_itself(
    models: ModelClass, mechanism: str, excluding: set[str] | None
) -> None:
    """`None`: no setting brings the mechanism into the class."""
    kind, more = (
        mechanism_named(mechanism),
        {"conv": 3, "rope": 10000, "depth": 2, "norm": "yes", "out_norm": "yes", "mlp": 2},
    )
    assert models.contains(kind, Setting.read(PLAIN)) is (excluding is not None)
    outside = {name for name in more if not models.contains(kind, Setting.read({**PLAIN, name: more[name]}))}
    assert outside == (set(more) if excluding is None else excluding)


@pytest.mark.parametrize("patch", range(1, 10))
def test_patches_tile_an_image_of_8_by_8_pixels(patch: int) -> None:
    if patch in (1, 2, 4, 8):
        assert task_named("digits").read({"patch": patch}).patch == patch
        return
    with pytest.raises(UsageError, match=f"patch={patch} does not divide 8, the side of an image"):
        task_named("digits").read({"patch": patch})


@pytest.mark.parametrize(("n", "shift"), [(2, 0), (3, 2), (5, 1), (40, 3)])
def test_the_ceiling_of_location_is_the_error_of_the_best_linear_rule(n: int, shift: int) -> None:
    """Of a + b x_i: with E x_i = s/n, minimise the expected error over a and b."""
    task = task_named("location").read({"n": n, "shift": shift})
    mechanism = mechanism_named("identity-features:normalised=no")
    proved = task.proved_ceiling(mechanism, task.default_setting())
    assert proved is not None
    second = 1 + shift**2 / n
    moments = np.array([[n, shift], [shift, n * second]])  # of sum_i (1, x_i)(1, x_i)'
    right = np.array([1, shift])  # the value of one token, at which x is `shift` larger
    assert proved.score == pytest.approx(1 - right @ np.linalg.solve(moments, right), rel=1e-12)


def test_a_random_unused_symbol_is_right_once_among_those_that_are_left() -> None:
    assert unused_symbol_accuracy(1) == 1
    assert unused_symbol_accuracy(3) == pytest.approx((1 + 1 / 2 + 1 / 3) / 3, rel=1e-15)


if __name__ == "__main__":
    DEFAULTS.write_text(json.dumps(list_defaults(), indent=1) + "\n")
