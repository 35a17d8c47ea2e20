"""Metadata, constraint files and the source distribution agree with each other."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_sdist(sys.argv[1]))"
SHIPPED = (".ci", "benchmarks", "docs", "src", "tests")
LOWEST_EXTRAS = ("dask", "explore", "postgres")


def project() -> dict[str, Any]:
    tables: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return tables


def pins(name: str, system: str = "linux") -> dict[str, Version]:
    """Return the exact version of every package that a constraints file pins on a system."""
    versions = {}
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        requirement = Requirement(line)
        if requirement.marker and not requirement.marker.evaluate({"sys_platform": system}):
            continue
        (specifier,) = requirement.specifier
        assert specifier.operator == "==", line
        assert canonicalize_name(requirement.name) not in versions, line
        versions[canonicalize_name(requirement.name)] = Version(specifier.version)
    return versions


def required_packages(*extras: str) -> set[str]:
    """Follow the requirements of the project, as they are installed here, to all that they need."""
    tables = project()
    wanted = [*tables["dependencies"]]
    for extra in extras:
        wanted += tables["optional-dependencies"][extra]
    todo = [Requirement(text) for text in wanted]
    found = set[str]()
    seen = set[tuple[str, frozenset[str]]]()
    while todo:
        requirement = todo.pop()
        name, asked = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if (name, asked) in seen:
            continue
        seen.add((name, asked))
        if name == "separatrix":
            todo += [Requirement(text) for extra in asked for text in tables["optional-dependencies"][extra]]
            continue
        found.add(name)
        environments = [{**default_environment(), "extra": extra} for extra in (*asked, "")]
        for text in metadata.requires(name) or ():
            further = Requirement(text)
            if further.marker is None or any(further.marker.evaluate(each) for each in environments):
                todo.append(further)
    return found


def test_lowest_pins_are_the_declared_bounds() -> None:
    lowest = pins("constraints-lowest.txt")
    tables = project()
    declared = [*tables["dependencies"]]
    for extra in LOWEST_EXTRAS:
        declared += tables["optional-dependencies"][extra]
    for text in declared:
        requirement = Requirement(text)
        (specifier,) = requirement.specifier
        assert specifier.operator == ">=", text
        bound, pinned = Version(specifier.version), lowest[canonicalize_name(requirement.name)]
        assert pinned >= bound, text
        assert pinned.release[: len(bound.release)] == bound.release, f"{text}, but {pinned} is tested"


def test_lock_pins_every_package_that_is_installed() -> None:
    missing = required_packages("dev") - {*pins("constraints.txt")}
    assert missing == set()


@pytest.mark.parametrize("name", ["constraints.txt", "constraints-lowest.txt"])
def test_no_cuda_package_is_pulled_in(name: str) -> None:
    assert str(pins(name)["torch"]) == "2.13.0+cpu"
    assert str(pins(name, "darwin")["torch"]) == "2.13.0"
    assert not [package for package in pins(name) if re.match("nvidia|cuda|triton", package)]
    assert "://" not in (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, built from a copy of what is in the repository, and unpacked."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    ignored = shutil.ignore_patterns("*.egg-info", "__pycache__", "build")
    for folder in SHIPPED:
        shutil.copytree(ROOT / folder, source / folder, ignore=ignored)
    for file in ROOT.iterdir():
        if file.is_file() and file.name not in (".git", ".gitignore"):
            shutil.copy(file, source)
    done = subprocess.run([sys.executable, "-c", BUILD, out], cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with tarfile.open(out / done.stdout.splitlines()[-1]) as archive:
        archive.extractall(out, filter="data")
    (unpacked,) = (folder for folder in out.iterdir() if folder.is_dir())
    return unpacked


def repository_files() -> set[str]:
    return {
        file.relative_to(ROOT).as_posix()
        for folder in SHIPPED
        for file in (ROOT / folder).rglob("*")
        if file.is_file() and not {"__pycache__", "separatrix.egg-info"} & {*file.parts}
    }


def test_sdist_has_every_file(sdist: Path) -> None:
    shipped = {file.relative_to(sdist).as_posix() for file in sdist.rglob("*") if file.is_file()}
    assert repository_files() - shipped == set()
    assert {"constraints.txt", "constraints-lowest.txt", "Makefile", "conftest.py", "LICENSE"} <= shipped
    assert not [name for name in shipped if "__pycache__" in name]


def test_tests_of_the_sdist_run(sdist: Path) -> None:
    program = "import sys; sys.path.insert(0, 'src'); import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    chosen = ["tests/exact/reader", "tests/core/numbers"]
    words = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *chosen]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=sdist, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_licence_metadata(sdist: Path) -> None:
    headers = (sdist / "PKG-INFO").read_text(encoding="utf-8")
    assert "License-Expression: Apache-2.0\n" in headers
    assert "License-File: LICENSE\n" in headers
    assert "License-File: src/separatrix/web/static/vendor/LICENSES.txt\n" in headers
    assert "Classifier: License" not in headers
