"""Tasks on real data, tested with small files in the same formats."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tiny_data
from separatrix.core.errors import UsageError
from separatrix.training.data import MissingData, dataset_named
from separatrix.training.tasks import REAL_TASKS, TASKS, Metric, Split, task_named

DATA = {"digits": "digits", "smnist": "mnist", "scifar": "cifar10", "imdb": "imdb", "enwik8": "enwik8"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with every data set."""
    tiny_data.expect_tiny(monkeypatch)
    monkeypatch.setenv("SEPARATRIX_DATA", str(tmp_path))
    for name in DATA.values():
        tiny_data.lay(tmp_path / name, name)
    return tmp_path


def read_task(name: str, **parameters: object) -> Any:
    short = {"enwik8": {"n": 8}, "imdb": {"n": 16}}.get(name, {})
    return task_named(name).read({**short, **parameters})


@pytest.mark.parametrize("name", ["digits", "smnist", "scifar"])
def test_the_last_patch_of_an_image_answers(name: str, folder: Path) -> None:
    task = read_task(name)
    for split in Split:
        samples = task.samples(4, split)
        assert samples.inputs.shape[1] == task.max_tokens
        assert (samples.positions == task.max_tokens - 1).all()


def test_names_of_real_tasks_are_unique() -> None:
    assert set(REAL_TASKS) == set(DATA)
    assert not REAL_TASKS.keys() & TASKS.keys()
    assert {name: kind.data for name, kind in REAL_TASKS.items()} == DATA


@pytest.mark.parametrize("name", DATA)
def test_missing_data_are_reported_with_the_command_that_fetches_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_data.expect_tiny(monkeypatch)
    monkeypatch.setenv("SEPARATRIX_DATA", str(tmp_path))
    with pytest.raises(MissingData, match=f"separatrix data fetch {DATA[name]}"):
        read_task(name).samples(3, Split.TRAIN)


@pytest.mark.parametrize("name", DATA)
def test_samples_have_the_declared_shapes(name: str, folder: Path) -> None:
    task = read_task(name)
    for split in Split:
        samples = task.samples(4, split)
        assert len(samples) == 4
        assert samples.positions.shape == samples.targets.shape
        assert samples.targets.dtype == np.int64
        assert 0 <= samples.targets.min() <= samples.targets.max() < task.outputs
        if task.vocabulary is None:
            assert samples.inputs.dtype == np.float32
            assert samples.inputs.shape[2] == task.features
            assert np.abs(samples.inputs).max() <= 1
        else:
            assert samples.inputs.dtype == np.int64
            assert 0 <= samples.inputs.min() <= samples.inputs.max() < task.vocabulary
        if samples.present is not None:
            assert np.take_along_axis(samples.present, samples.positions, axis=1).all()
    assert not set(task.schema.model_fields) & set(type(task.default_setting()).model_fields)


@pytest.mark.parametrize("name", DATA)
def test_samples_are_reproducible_and_no_row_is_tested_twice(name: str, folder: Path) -> None:
    task = read_task(name)
    first, second, third = (task.samples(20, Split.TRAIN, 3, step) for step in (5, 5, 6))
    assert (first.inputs == second.inputs).all()
    assert first.latents["row"].tolist() != third.latents["row"].tolist()
    for split in (Split.VALIDATION, Split.TEST):
        rows = task.samples(10**6, split).latents["row"].tolist()
        assert len(set(rows)) == len(rows) == task.count(task.part(split))
        assert task.samples(3, split).latents["row"].tolist() == rows[:3]


@pytest.mark.parametrize("name", ["digits", "smnist", "scifar"])
def test_patches_are_cut_row_by_row(name: str, folder: Path) -> None:
    side = {"digits": 8, "smnist": 28, "scifar": 32}[name]
    for patch in (1, 2, 4):
        task = read_task(name, patch=patch)
        samples = task.samples(2, Split.TEST)
        images = task.part(Split.TEST).pixels.reshape(-1, side, side, task.colours)
        for i, row in enumerate(samples.latents["row"]):
            tokens = []
            for top in range(0, side, patch):
                for left in range(0, side, patch):
                    cut = images[row, top : top + patch, left : left + patch]
                    tokens.append([2 * int(value) / task.max_value - 1 for value in cut.reshape(-1)])
            assert samples.inputs[i].tolist() == pytest.approx(np.array(tokens), abs=1e-6)
            assert samples.targets[i, 0] == task.part(Split.TEST).labels[row]
    with pytest.raises(UsageError, match=f"patch=3 does not divide {side}, the side of an image"):
        read_task(name, patch=3)


def test_grey_is_as_bright_as_its_colours(folder: Path) -> None:
    grey, colour = (read_task("scifar", patch=1, grey=word) for word in ("yes", "no"))
    grey_samples, colour_samples = (task.samples(3, Split.TEST) for task in (grey, colour))
    assert (grey.features, colour.features) == (1, 3)
    brightness = colour_samples.inputs @ np.array([0.299, 0.587, 0.114])
    assert np.abs(grey_samples.inputs[..., 0] - brightness).max() < 1.01 / 255


def test_the_floor_of_images_is_computed_on_the_given_samples(folder: Path) -> None:
    for name in ("digits", "smnist", "scifar"):
        task = read_task(name)
        samples = task.samples(10, Split.TEST)
        reverse = samples.select(np.arange(10)[::-1])
        floor = task.floor(samples)
        assert floor.score == task.floor(reverse).score
        assert floor.score >= np.bincount(samples.targets[:, 0]).max() / 10
        assert not task.ceiling(samples).exact


def test_reviews_end_at_their_last_byte(folder: Path) -> None:
    task = read_task("imdb", n=64)
    texts = list(task.part(Split.TEST).samples())
    samples = task.samples(100, Split.TEST)
    for row, inputs, present, position in zip(
        samples.latents["row"], samples.inputs, samples.present, samples.positions, strict=True
    ):
        assert inputs[present].astype(np.uint8).tobytes() == texts[row][:64]
        assert position == [min(64, len(texts[row])) - 1]
    cut = read_task("imdb", n=8).samples(100, Split.TEST)
    assert cut.present.all()
    assert task.floor(samples).score == 1  # "good" or "bad" is in every one
    assert read_task("imdb", n=8).floor(cut).score < 1


def test_splits_of_reviews_do_not_depend_on_their_storage(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    plain = {name: text.replace(b" film", b' film, "so" it is') for name, text in tiny_data.REVIEWS.items()}
    other_folder = tmp_path_factory.mktemp("other")
    for name, text in plain.items():
        path = other_folder / "aclImdb" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    table, acl = (dataset_named("imdb").load_training_half(location) for location in (folder, other_folder))
    assert table.digest == acl.digest
    assert table.sizes == acl.sizes
    assert list(table.test.samples()) == list(acl.test.samples())
    assert table.count_shared() == 0
    assert dataset_named("imdb").load_official(other_folder).sizes["test"] == 60
    with pytest.raises(MissingData, match="aclImdb is not in"):
        dataset_named("imdb").load_official(folder)


def test_every_byte_predicts_the_next(folder: Path) -> None:
    task = read_task("enwik8")
    for split in Split:
        symbols = task.part(split).symbols
        samples = task.samples(5, split)
        for start, inputs, targets in zip(samples.latents["row"], samples.inputs, samples.targets, strict=True):
            assert inputs.tolist() == symbols[start : start + 8].tolist()
            assert targets.tolist() == symbols[start + 1 : start + 9].tolist()
        assert (samples.positions == np.arange(8)).all()
    assert (task.samples(5, Split.TEST).latents["row"] % 8 == 0).all()


def test_bytes_are_scored_in_bits(folder: Path) -> None:
    task = read_task("enwik8")
    samples = task.samples(5, Split.TEST)
    assert task.metric is Metric.BITS
    assert task.metric.sign == -1
    assert task.score(torch.zeros(5, 8, 256), samples) == pytest.approx(8)
    sure = 50 * torch.nn.functional.one_hot(torch.from_numpy(samples.targets), 256).float()
    assert task.score(sure, samples) == pytest.approx(0, abs=1e-12)
    outputs = torch.randn(5, 8, 256, generator=torch.Generator().manual_seed(0))
    bits = 0.0
    for i in range(5):
        for j in range(8):
            row = outputs[i, j].double().tolist()
            bits += math.log2(sum(map(math.exp, row))) - row[samples.targets[i, j]] / math.log(2)
    assert task.score(outputs, samples) == pytest.approx(bits / 40)


def test_the_floor_of_bytes_is_that_of_ngrams_on_the_given_windows(folder: Path) -> None:
    """Independent uniform draws from eight bytes take three bits each."""
    task = read_task("enwik8")
    floor = task.floor(task.samples(6, Split.TEST))
    assert floor.score == pytest.approx(3, abs=0.3)
    assert "grams counted in all of the training bytes" in floor.basis


def test_bigrams_predict_repeating_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_data.expect_tiny(monkeypatch)
    content = b"ab" * 1000
    monkeypatch.setattr(dataset_named("enwik8"), "files", (tiny_data.describe_file("enwik8", content),))
    monkeypatch.setenv("SEPARATRIX_DATA", str(tmp_path))
    (tmp_path / "enwik8").write_bytes(content)
    task = read_task("enwik8")
    floor = task.floor(task.samples(6, Split.TEST))
    assert floor.score < 0.01
    assert floor.basis.startswith(("bigrams", "trigrams"))


def test_a_model_learns_bytes_and_images(folder: Path) -> None:
    """A few steps of training reduce the loss."""
    from separatrix.training.learning import RunConfig, train

    for name in ("enwik8", "digits", "imdb"):
        task = read_task(name)
        small = {"width": 16, "heads": 2, "depth": 1, "steps": 60, "every": 30, "batch": 16}
        setting = task.default_setting(**small, validation=5, tests=5)
        result = train(RunConfig(task, "softmax", setting, rate=0.01, seed=0, test=True))
        losses = result.curves.loss[: result.steps]
        assert losses[:5].mean() > losses[-5:].mean()
        assert result.score is not None
        assert 0 <= result.score < 8


def test_the_code_version_of_stored_runs_includes_the_checksums_of_their_data() -> None:
    from separatrix.sweeps.code import TRAINING_MODULES, find_sources

    for name, data in DATA.items():
        dependencies = set(find_sources([*TRAINING_MODULES, REAL_TASKS[name].__module__]))
        assert f"separatrix.training.data.{data}" in dependencies
        assert "separatrix.training.data.fetching" not in dependencies
    dependencies = set(find_sources([*TRAINING_MODULES, TASKS["needle"].__module__]))
    assert not any("training.data" in name for name in dependencies)
