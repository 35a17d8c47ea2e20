"""What every task keeps: its samples, ceiling and floor are what it says."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from separatrix.core.errors import UsageError
from separatrix.training.tasks import TASKS, Metric, Samples, Split, Task, task_named
from separatrix.training.tasks._base import assign_splits

TRIED = [
    *(kind.read(kind.example) for kind in TASKS.values()),
    task_named("duplication").read({"items": 8, "first": "yes"}),
    task_named("modular").read({"trained": 8, "tested": 20, "modulus": 5, "times": "yes"}),
    task_named("copy").read({"trained": 6, "tested": 6, "blanks": 0}),
    task_named("parity").read({"trained": 20, "tested": 20}),
]
COUNT = 2000
GOLDEN = json.loads((Path(__file__).parent / "golden_samples.json").read_text())
"""Made by `python tests/training/tasks/test_tasks.py`."""


@pytest.fixture(params=TRIED, ids=lambda task: task.spelling)
def task(request: pytest.FixtureRequest) -> Task:
    return request.param


def rows(samples: Samples) -> set[bytes]:
    """Each input, without the tokens that are absent."""
    if samples.present is None:
        return {each.tobytes() for each in samples.inputs}
    return {each[there].tobytes() for each, there in zip(samples.inputs, samples.present, strict=True)}


def test_a_seed_and_step_have_the_same_samples_always_and_others_have_others(task: Task) -> None:
    one, again = (task.samples(50, Split.TRAIN, 3, 5) for _ in range(2))
    assert (one.inputs == again.inputs).all()
    assert (one.targets == again.targets).all()
    for seed, step in ((4, 5), (3, 6)):
        assert not np.array_equal(one.inputs, task.samples(50, Split.TRAIN, seed, step).inputs)


def sketch(samples: Samples) -> dict[str, object]:
    """What samples are known by: digests of whole numbers, and a weighted sum of others, which may be
    rounded otherwise elsewhere."""
    numbers = {"inputs": samples.inputs, "targets": samples.targets}
    found: dict[str, object] = {}
    for name, each in (*numbers.items(), ("places", samples.positions), ("present", samples.present)):
        if each is None:
            continue
        if each.dtype == np.float32:
            found[name] = round(float(each.reshape(-1) @ np.cos(np.arange(each.size))), 6)
        else:
            found[name] = hashlib.sha256(each.astype("<i8").tobytes()).hexdigest()[:16]
    return found


def test_samples_are_the_same_on_every_machine(task: Task) -> None:
    for split in Split:
        found, known = sketch(task.samples(6, split, 7, 3)), GOLDEN[task.spelling][split.name]
        assert found.keys() == known.keys()
        for name, value in found.items():
            assert value == (
                pytest.approx(known[name], abs=1e-3) if isinstance(value, float) else known[name]
            )


def test_the_splits_share_no_input(task: Task) -> None:
    train, validation, test = (rows(task.samples(COUNT, split)) for split in Split)
    assert not train & validation
    assert not train & test
    assert not validation & test


def test_samples_are_of_the_shapes_that_the_task_says(task: Task) -> None:
    for split in Split:
        samples = task.samples(30, split)
        assert len(samples) == 30
        assert samples.positions.shape == samples.targets.shape
        assert (samples.positions >= 0).all()
        assert (samples.positions < samples.inputs.shape[1]).all()
        if task.vocabulary is None:
            assert samples.inputs.dtype == np.float32
            assert samples.inputs.shape[2:] == (task.features,)
        else:
            assert samples.inputs.dtype == np.int64
            assert samples.inputs.ndim == 2
            assert samples.inputs.min() >= 0
            assert samples.inputs.max() < task.vocabulary
        if task.metric is Metric.ACCURACY:
            assert samples.targets.dtype == np.int64
            assert samples.targets.min() >= 0
            assert samples.targets.max() < task.outputs
        else:
            assert samples.targets.dtype == np.float32
            assert task.outputs == 1
        if samples.present is not None:
            assert samples.present.shape == samples.inputs.shape[:2]
            assert np.take_along_axis(samples.present, samples.positions, axis=1).all()


def test_the_ceiling_is_above_the_floor(task: Task) -> None:
    samples, sign = task.samples(COUNT, Split.TEST), task.metric.sign
    floor = task.floor(samples)
    assert sign * task.ceiling(samples).score > sign * floor.score


def test_the_answers_are_balanced(task: Task) -> None:
    targets = task.samples(COUNT, Split.TEST).targets.reshape(-1)
    if task.metric is Metric.ACCURACY:
        counts = np.bincount(targets, minlength=task.outputs)
        expected = counts.sum() / task.outputs
        assert (np.abs(counts - expected) < 6 * np.sqrt(expected)).all()
    else:
        assert abs(targets.mean()) < 6 * targets.std() / np.sqrt(COUNT)


def some_answers(task: Task) -> Samples:
    """Samples with some 4,000 to 16,000 answers."""
    asked = task.samples(2, Split.TEST).targets.shape[1]
    return task.samples(max(400, min(2 * COUNT, 16000 // asked)), Split.TEST)


def one_hot(numbers: np.ndarray) -> np.ndarray:
    return (numbers[:, None] == np.unique(numbers)).astype(float)


def places_and_lengths(samples: Samples) -> np.ndarray:
    """For each answer: the place that is asked, and how many tokens there are, one-hot and as numbers."""
    asked = samples.positions.shape[1]
    place, width = samples.positions.reshape(-1), samples.inputs.shape[1]
    length = np.full(len(samples), width) if samples.present is None else samples.present.sum(1)
    length = np.repeat(length, asked)
    return np.concatenate(
        [one_hot(place), one_hot(length), np.stack([place, length, place**2], axis=1) / width**2], axis=1
    )


def outer_tokens(samples: Samples) -> np.ndarray:
    """For each answer: the first two tokens, the one that is asked, and the one before it."""
    asked, row = samples.positions.shape[1], np.arange(len(samples))
    at = [
        0 * samples.positions,
        0 * samples.positions + 1,
        samples.positions,
        np.maximum(samples.positions - 1, 0),
    ]
    found = [samples.inputs[np.repeat(row, asked), place.reshape(-1)] for place in at]
    symbols = samples.inputs.ndim == 2
    return np.concatenate([one_hot(each) if symbols else each for each in found], axis=1)


def fitted(task: Task, known: np.ndarray, samples: Samples) -> tuple[float, float]:
    """How well a linear predictor, fitted to half of the answers, does on the other half, and on how many."""
    targets = samples.targets.reshape(-1)
    wanted = np.eye(task.outputs)[targets] if task.metric is Metric.ACCURACY else targets[:, None]
    known = np.concatenate([known, np.ones((len(known), 1))], axis=1)
    half = len(known) // 2
    square = known[:half].T @ known[:half] + 10 * np.eye(known.shape[1])
    said = known[half:] @ np.linalg.solve(square, known[:half].T @ wanted[:half])
    if task.metric is Metric.ACCURACY:
        return float((said.argmax(1) == targets[half:]).mean()), half
    return float(np.square(said - wanted[half:]).mean() / np.square(wanted[half:]).mean()), half


def test_nothing_is_known_from_the_place_that_is_asked_or_the_number_of_tokens(task: Task) -> None:
    samples = some_answers(task)
    found, count = fitted(task, places_and_lengths(samples), samples)
    if task.asks_length:
        assert found > 0.99
    elif task.metric is Metric.ACCURACY:
        chance = 1 / task.outputs
        assert found < chance + 4 * np.sqrt(chance / count)
    else:
        assert found > 0.98


def test_no_predictor_from_the_first_tokens_or_the_last_beats_the_floor(task: Task) -> None:
    if not task.asks_length:
        samples = some_answers(task)
        known = np.concatenate([places_and_lengths(samples), outer_tokens(samples)], axis=1)
        found, count = fitted(task, known, samples)
        floor = task.floor(samples).score
        assert task.metric.sign * (found - floor) < 4 * np.sqrt(floor / count)


def test_names_of_parameters_are_not_those_of_the_setting(task: Task) -> None:
    assert not set(task.schema.model_fields) & set(type(task.default_setting()).model_fields)


def test_samples_of_the_default_setting_are_there_at_once(task: Task) -> None:
    setting = task.default_setting()
    samples = task.samples(setting.validation, Split.VALIDATION)
    assert len(samples) == setting.validation
    assert samples.inputs.nbytes < 2**27


def test_an_input_belongs_to_one_split_by_its_digest() -> None:
    task = task_named("mqar").read({"pairs": 4})
    drawn = task.draw(4000, Split.TEST, np.random.default_rng(0))
    shares = np.bincount(assign_splits(task.split_keys(drawn)), minlength=3) / 4000
    assert np.abs(shares - [0.5, 0.25, 0.25]).max() < 0.04


def test_too_few_inputs_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_named("duplication").read({})
    monkeypatch.setattr(task, "split_keys", lambda samples: np.zeros((len(samples), 1)))
    with pytest.raises(UsageError, match="duplication has too few different inputs"):
        [task.samples(2, split) for split in Split]


def test_an_unknown_task_is_told_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"there is no task neddle \(did you mean needle\?\)"):
        task_named("neddle")
    with pytest.raises(UsageError, match="n=7 must be an even number"):
        task_named("needle").read({"n": 7})
    with pytest.raises(UsageError, match="pairs=40 is more than keys=32: every key has one value"):
        task_named("mqar").read({"pairs": 40})


@pytest.mark.parametrize("also", ["3", "", "6,", "x", "-6", "16385", "1" * 5000, "6;9"])
def test_further_lengths_are_lengths(also: str) -> None:
    with pytest.raises(UsageError, match=r"also=.* must be lengths from trained=4 to 16384"):
        task_named("parity").read({"trained": 4, "tested": 6, "also": also})


def test_further_lengths_are_the_same_task_at_these_lengths() -> None:
    task = task_named("modular").read(
        {"trained": 4, "tested": 6, "also": "9,5", "modulus": 5, "times": "yes"}
    )
    assert {n: each.spelling for n, each in task.further_tasks().items()} == {
        n: f"modular trained=4 tested={n} modulus=5 times=yes" for n in (9, 5)
    }
    assert not any(each.further_tasks() for each in task.further_tasks().values())


if __name__ == "__main__":
    known = {
        task.spelling: {split.name: sketch(task.samples(6, split, 7, 3)) for split in Split} for task in TRIED
    }
    (Path(__file__).parent / "golden_samples.json").write_text(json.dumps(known, indent=1) + "\n")
