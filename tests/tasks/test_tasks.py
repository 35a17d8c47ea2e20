"""What every task keeps: its samples, ceiling and floor are what it says."""

import numpy as np
import pytest

from separatrix.errors import UsageError
from separatrix.tasks import TASKS, Answers, Samples, Split, Task, task_named
from separatrix.tasks._base import split_of

TRIED = [kind.read(kind.example) for kind in TASKS.values()]
COUNT = 2000


@pytest.fixture(params=TRIED, ids=lambda task: task.name)
def task(request: pytest.FixtureRequest) -> Task:
    return request.param


def rows(samples: Samples) -> set[bytes]:
    return {each.tobytes() for each in samples.inputs}


def test_a_seed_and_step_have_the_same_samples_always_and_others_have_others(task: Task) -> None:
    one, again = (task.samples(50, Split.TRAIN, 3, 5) for _ in range(2))
    assert (one.inputs == again.inputs).all()
    assert (one.targets == again.targets).all()
    for seed, step in ((4, 5), (3, 6)):
        assert not np.array_equal(one.inputs, task.samples(50, Split.TRAIN, seed, step).inputs)


def test_the_splits_share_no_input(task: Task) -> None:
    train, validation, test = (rows(task.samples(COUNT, split)) for split in Split)
    assert not train & validation
    assert not train & test
    assert not validation & test


def test_samples_are_of_the_shapes_that_the_task_says(task: Task) -> None:
    samples = task.samples(30, Split.TEST)
    assert len(samples) == 30
    assert samples.places.shape == samples.targets.shape
    assert (samples.places >= 0).all()
    assert (samples.places < samples.inputs.shape[1]).all()
    if task.vocabulary is None:
        assert samples.inputs.dtype == np.float32
        assert samples.inputs.shape[2:] == (task.features,)
    else:
        assert samples.inputs.dtype == np.int64
        assert samples.inputs.ndim == 2
        assert samples.inputs.min() >= 0
        assert samples.inputs.max() < task.vocabulary
    if task.answers is Answers.CLASSES:
        assert samples.targets.dtype == np.int64
        assert samples.targets.min() >= 0
        assert samples.targets.max() < task.outputs
    else:
        assert samples.targets.dtype == np.float32
        assert task.outputs == 1


def test_the_ceiling_is_above_the_floor(task: Task) -> None:
    samples, sign = task.samples(COUNT, Split.TEST), task.answers.sign
    floor = task.floor(samples, task.default_setting())
    assert sign * task.ceiling(samples).score > sign * floor.score


def test_the_answers_are_balanced(task: Task) -> None:
    if task.answers is Answers.CLASSES:
        counts = np.bincount(task.samples(COUNT, Split.TEST).targets.reshape(-1), minlength=task.outputs)
        expected = counts.sum() / task.outputs
        assert (np.abs(counts - expected) < 6 * np.sqrt(expected)).all()


def test_the_place_that_is_asked_says_nothing_of_the_answer(task: Task) -> None:
    samples = task.samples(COUNT, Split.TEST)
    place, target = samples.places.reshape(-1).astype(float), samples.targets.reshape(-1).astype(float)
    if place.std() > 0:
        assert abs(np.corrcoef(place, target)[0, 1]) < 6 / np.sqrt(len(place))


def test_names_of_parameters_are_not_those_of_the_setting(task: Task) -> None:
    assert not set(task.schema.model_fields) & set(type(task.default_setting()).model_fields)


def test_needles_are_found_by_the_best_rule_as_often_as_simulated_elsewhere() -> None:
    for n, known, proved in ((64, 0.981, 0.7057), (256, 0.988, 0.6226)):
        task = task_named("needle").read({"n": n})
        samples = task.samples(20000, Split.TEST)
        assert abs(task.ceiling(samples).score - known) < 0.005
        marks, along = samples.inputs[:, :-1, -2], samples.hidden["along"]
        right = ((marks * along).sum(1) > 0) == samples.targets[:, 0]
        assert abs(right.mean() - proved) < 0.015


def test_an_input_belongs_to_one_split_by_its_digest() -> None:
    samples = task_named("needle").read({}).samples(4000, Split.TEST)
    shares = np.bincount(split_of(samples), minlength=3) / 4000
    assert np.abs(shares - [0.5, 0.25, 0.25]).max() < 0.04


def test_an_unknown_task_is_told_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"there is no task neddle \(did you mean needle\?\)"):
        task_named("neddle")
    with pytest.raises(UsageError, match="n=7 must be an even number"):
        task_named("needle").read({"n": 7})
