"""Properties of every task: reproducible samples, separate splits, and bounds that no shortcut beats."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from separatrix.core.errors import UsageError
from separatrix.training.tasks import TASKS, Metric, Samples, Split, Task, task_named
from separatrix.training.tasks._base import assign_splits

CASES = [
    *(kind.read(kind.example) for kind in TASKS.values()),
    task_named("duplication").read({"items": 8, "first": "yes"}),
    task_named("modular").read({"trained": 8, "tested": 20, "modulus": 5, "times": "yes"}),
    task_named("copy").read({"trained": 6, "tested": 6, "blanks": 0}),
    task_named("parity").read({"trained": 20, "tested": 20}),
]
COUNT = 2000
GOLDEN = json.loads((Path(__file__).parent / "golden_samples.json").read_text())
"""Written by `python tests/training/tasks/test_tasks.py`."""


@pytest.fixture(params=CASES, ids=lambda task: task.spelling)
def task(request: pytest.FixtureRequest) -> Task:
    return request.param


def rows(samples: Samples) -> set[bytes]:
    """Return each input as bytes, without absent tokens."""
    if samples.present is None:
        return {tokens.tobytes() for tokens in samples.inputs}
    return {tokens[present].tobytes() for tokens, present in zip(samples.inputs, samples.present, strict=True)}


def test_samples_are_determined_by_seed_and_step(task: Task) -> None:
    first, second = (task.samples(50, Split.TRAIN, 3, 5) for _ in range(2))
    assert (first.inputs == second.inputs).all()
    assert (first.targets == second.targets).all()
    for seed, step in ((4, 5), (3, 6)):
        assert not np.array_equal(first.inputs, task.samples(50, Split.TRAIN, seed, step).inputs)


def sketch(samples: Samples) -> dict[str, object]:
    """Return digests of integers, and weighted sums of others, which machines may round differently."""
    numbers = {"inputs": samples.inputs, "targets": samples.targets}
    result: dict[str, object] = {}
    for name, array in (*numbers.items(), ("places", samples.positions), ("present", samples.present)):
        if array is None:
            continue
        if array.dtype == np.float32:
            result[name] = round(float(array.reshape(-1) @ np.cos(np.arange(array.size))), 6)
        else:
            result[name] = hashlib.sha256(array.astype("<i8").tobytes()).hexdigest()[:16]
    return result


def test_samples_are_the_same_on_every_machine(task: Task) -> None:
    for split in Split:
        result, golden = sketch(task.samples(6, split, 7, 3)), GOLDEN[task.spelling][split.name]
        assert result.keys() == golden.keys()
        for name, value in result.items():
            assert value == (pytest.approx(golden[name], abs=1e-3) if isinstance(value, float) else golden[name])


def test_the_splits_share_no_input(task: Task) -> None:
    train, validation, test = (rows(task.samples(COUNT, split)) for split in Split)
    assert not train & validation
    assert not train & test
    assert not validation & test


def test_samples_have_the_declared_shapes(task: Task) -> None:
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


def test_every_symbol_and_every_answer_occurs(task: Task) -> None:
    samples = task.samples(COUNT, Split.TEST)
    if task.vocabulary is not None:
        option = {"duplication": "first", "modular": "times", "copy": "blanks"}.get(task.name, "name")
        unused = 0 if getattr(task, option) else 1  # the symbol of an option that is off
        assert len(np.unique(samples.inputs)) == task.vocabulary - unused
    if task.metric is Metric.ACCURACY:
        assert len(np.unique(samples.targets)) == task.outputs


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


def draw_answers(task: Task) -> Samples:
    """Return samples with about 4,000 to 16,000 answers."""
    answers = task.samples(2, Split.TEST).targets.shape[1]
    return task.samples(max(400, min(2 * COUNT, 16000 // answers)), Split.TEST)


def one_hot(numbers: np.ndarray) -> np.ndarray:
    return (numbers[:, None] == np.unique(numbers)).astype(float)


def position_features(samples: Samples) -> np.ndarray:
    """Return for each answer its position and the number of tokens, one-hot and as numbers."""
    answers = samples.positions.shape[1]
    position, width = samples.positions.reshape(-1), samples.inputs.shape[1]
    length = np.full(len(samples), width) if samples.present is None else samples.present.sum(1)
    length = np.repeat(length, answers)
    return np.concatenate(
        [one_hot(position), one_hot(length), np.stack([position, length, position**2], axis=1) / width**2], axis=1
    )


def outer_token_features(samples: Samples) -> np.ndarray:
    """Return for each answer the first two tokens, the token at its position and the one before."""
    answers, row = samples.positions.shape[1], np.arange(len(samples))
    columns = [
        0 * samples.positions,
        0 * samples.positions + 1,
        samples.positions,
        np.maximum(samples.positions - 1, 0),
    ]
    tokens = [samples.inputs[np.repeat(row, answers), column.reshape(-1)] for column in columns]
    are_symbols = samples.inputs.ndim == 2
    return np.concatenate(
        [one_hot(column_tokens) if are_symbols else column_tokens for column_tokens in tokens], axis=1
    )


def score_linear_fit(task: Task, features: np.ndarray, samples: Samples) -> tuple[float, float]:
    """Fit a linear predictor to half of the answers; return its score on the other half, and their number."""
    targets = samples.targets.reshape(-1)
    labels = np.eye(task.outputs)[targets] if task.metric is Metric.ACCURACY else targets[:, None]
    features = np.concatenate([features, np.ones((len(features), 1))], axis=1)
    half = len(features) // 2
    square = features[:half].T @ features[:half] + 10 * np.eye(features.shape[1])
    predictions = features[half:] @ np.linalg.solve(square, features[:half].T @ labels[:half])
    if task.metric is Metric.ACCURACY:
        return float((predictions.argmax(1) == targets[half:]).mean()), half
    return float(np.square(predictions - labels[half:]).mean() / np.square(labels[half:]).mean()), half


def test_positions_and_lengths_are_uninformative(task: Task) -> None:
    samples = draw_answers(task)
    score, count = score_linear_fit(task, position_features(samples), samples)
    if task.asks_length:
        assert score > 0.99
    elif task.metric is Metric.ACCURACY:
        chance = 1 / task.outputs
        assert score < chance + 4 * np.sqrt(chance / count)
    else:
        assert score > 0.98


def test_no_linear_predictor_from_outer_tokens_beats_the_floor(task: Task) -> None:
    if not task.asks_length:
        samples = draw_answers(task)
        features = np.concatenate([position_features(samples), outer_token_features(samples)], axis=1)
        score, count = score_linear_fit(task, features, samples)
        floor = task.floor(samples).score
        assert task.metric.sign * (score - floor) < 4 * np.sqrt(floor / count)


def test_parameters_and_settings_have_different_names(task: Task) -> None:
    assert not set(task.schema.model_fields) & set(type(task.default_setting()).model_fields)


def test_validation_samples_of_the_default_setting_fit_into_memory(task: Task) -> None:
    setting = task.default_setting()
    samples = task.samples(setting.validation, Split.VALIDATION)
    assert len(samples) == setting.validation
    assert samples.inputs.nbytes < 2**27


def test_an_input_belongs_to_one_split_by_its_digest() -> None:
    task = task_named("mqar").read({"pairs": 4})
    samples = task.draw(4000, Split.TEST, np.random.default_rng(0))
    shares = np.bincount(assign_splits(task.split_keys(samples)), minlength=3) / 4000
    assert np.abs(shares - [0.5, 0.25, 0.25]).max() < 0.04


def test_too_few_inputs_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_named("duplication").read({})
    monkeypatch.setattr(task, "split_keys", lambda samples: np.zeros((len(samples), 1)))
    with pytest.raises(UsageError, match="duplication has too few different inputs"):
        [task.samples(2, split) for split in Split]


def test_an_unknown_task_is_reported_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match=r"there is no task neddle \(did you mean needle\?\)"):
        task_named("neddle")
    with pytest.raises(UsageError, match="n=7 must be an even number"):
        task_named("needle").read({"n": 7})
    with pytest.raises(UsageError, match="pairs=40 is more than keys=32: every key has one value"):
        task_named("mqar").read({"pairs": 40})


@pytest.mark.parametrize("also", ["3", "", "6,", "x", "-6", "16385", "1" * 5000, "6;9"])
def test_invalid_further_lengths_are_refused(also: str) -> None:
    with pytest.raises(UsageError, match=r"also=.* must be lengths from trained=4 to 16384"):
        task_named("parity").read({"trained": 4, "tested": 6, "also": also})


def test_further_lengths_are_the_same_task_at_these_lengths() -> None:
    task = task_named("modular").read({"trained": 4, "tested": 6, "also": "9,5", "modulus": 5, "times": "yes"})
    assert {n: longer.spelling for n, longer in task.further_tasks().items()} == {
        n: f"modular trained=4 tested={n} modulus=5 times=yes" for n in (9, 5)
    }
    assert not any(longer.further_tasks() for longer in task.further_tasks().values())


if __name__ == "__main__":
    golden = {task.spelling: {split.name: sketch(task.samples(6, split, 7, 3)) for split in Split} for task in CASES}
    (Path(__file__).parent / "golden_samples.json").write_text(json.dumps(golden, indent=1) + "\n")
