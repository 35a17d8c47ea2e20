"""Parameters of tasks: their defaults, which stored runs are found by, and the values that are refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from separatrix.core.errors import UsageError
from separatrix.mechanisms import mechanism_named
from separatrix.training.tasks import REAL_TASKS, TASKS, task_named
from separatrix.training.tasks.copy import unused_symbol_accuracy

DEFAULTS = Path(__file__).parent / "default_parameters.json"
"""Written by `python tests/training/tasks/test_parameters.py`."""


def list_defaults() -> dict[str, dict[str, object]]:
    return {name: task_named(name).read().parameters.as_json() for name in (*TASKS, *REAL_TASKS)}


def test_defaults_stay_what_they_are() -> None:
    assert list_defaults() == json.loads(DEFAULTS.read_text())


@pytest.mark.parametrize(
    ("name", "parameter", "least", "most"),
    [
        ("listops", "length", 6, 512),
        ("listops", "nesting", 1, 12),
        ("induction", "n", 4, 4096),
        ("induction", "symbols", 3, 1024),
        ("regression", "d", 1, 256),
        ("location", "n", 2, 4096),
        ("parity", "trained", 2, None),
        ("modular", "tested", None, 16384),
        ("copy", "blanks", 0, 64),
        ("duplication", "items", 2, 1024),
        ("needle", "dz", 1, 1024),
    ],
)
def test_sizes_have_limits(name: str, parameter: str, least: int | None, most: int | None) -> None:
    for limit, step in ((least, -1), (most, 1)):
        if limit is None:
            continue
        assert getattr(task_named(name).read({parameter: limit}), parameter) == limit
        with pytest.raises(UsageError, match=parameter):
            task_named(name).read({parameter: limit + step})


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
