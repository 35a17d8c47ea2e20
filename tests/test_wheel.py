"""The wheel, installed alone: nothing of the checkout is on the path, only the packages it depends on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from cases import BASE

ROOT = Path(__file__).parents[1]
POINT = [f"{name}={value}" for name, value in BASE.items()]
AROUND = [f"{name}={value}" for name, value in BASE.items() if name not in ("n", "a1")]
FEW = {"n": [100, 1000], "d": [42, 102], "m": [8, 12], "a0": [0.01, 0.66], "a1": [0.7, 1.2], "c": [0.05, 0.45]}
"""Values of the six sweeps."""
BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"
REPRODUCE = """
import sys
from pathlib import Path
from separatrix.claims import CLAIMS, Entry, Ledger
from separatrix.claims.paper.reproduction import Effort
from separatrix.pages.reproduce import reproduce

def one_claim(tell):
    return Ledger(tuple(Entry(each, each.check(), 0.0) for each in CLAIMS if each.name == "theorem"))

if __name__ == "__main__":
    effort = Effort(plan=sys.argv[1], map_side=9, mechanisms=("softmax", "linear"))
    print(reproduce(Path("out"), True, effort, one_claim).holds)
"""
"""`separatrix reproduce` with one claim, two mechanisms, small maps and the plan that is given."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from what a release has: the sources, and nothing that was built before."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    done = subprocess.run([sys.executable, "-c", BUILD, out], cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Path(out, done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def fresh(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment that has the wheel.

    Of this one it sees the packages by their path: the editable install, a .pth file there, is not followed.
    """
    home = tmp_path_factory.mktemp("fresh")
    venv.create(home, with_pip=False)
    programs = home / ("Scripts" if os.name == "nt" else "bin")
    pip = [sys.executable, "-m", "pip", "--python", programs / "python", "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", "--disable-pip-version-check", wheel], check=True)
    packages = next(home.rglob("site-packages"))
    (packages / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    return programs


def _run(fresh: Path, folder: Path, *words: str) -> str:
    """What a program of the fresh environment prints, started in a folder of its own."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [fresh / words[0], *words[1:]], cwd=folder, env=outside, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_file_of_the_package_is_in_the_wheel(wheel: Path) -> None:
    package = ROOT / "src" / "separatrix"
    files = {
        file.relative_to(package.parent).as_posix()
        for file in package.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert files - {*zipfile.ZipFile(wheel).namelist()} == set()


def test_the_wheel_is_what_runs(fresh: Path, tmp_path: Path) -> None:
    where = _run(fresh, tmp_path, "python", "-c", "import separatrix; print(separatrix.__file__)")
    assert Path(where).is_relative_to(fresh.parent)


def test_verdict_and_map(fresh: Path, tmp_path: Path) -> None:
    found = json.loads(_run(fresh, tmp_path, "separatrix", "verdict", "spike", "softmax", *POINT, "--json"))
    assert (found["verdict"], found["engine"]) == ("distinguishes", "certified")
    plane = ["spike", "softmax,linear", "a1=0.5:1.5:7", "n=1e3:1e18:7:log", *AROUND]
    _run(fresh, tmp_path, "separatrix", "map", *plane, "--out", "map.html")
    assert "<html" in (tmp_path / "map.html").read_text()[:200]


@pytest.mark.exhaustive
def test_reproduce(fresh: Path, tmp_path: Path) -> None:
    (paper,) = fresh.parent.rglob("separatrix/sweeps/plans/paper.toml")
    head = paper.read_text().partition("[[sweep]]")[0]
    sweeps = "".join(
        f'[[sweep]]\nname = "{name}"\nparameters.{name} = {values}\n'
        f'[[sweep]]\nname = "{name}, drawn"\nengine = "dense"\ndraws = 20\nparameters.{name} = {values[:1]}\n'
        for name, values in FEW.items()
    )
    (tmp_path / "few.toml").write_text(head + sweeps)
    (tmp_path / "reproduction.py").write_text(REPRODUCE)
    assert _run(fresh, tmp_path, "python", "reproduction.py", "few.toml").splitlines()[-1] == "True"
    assert len((tmp_path / "out" / "report.html").read_text()) > 100_000
    assert {file.name for file in (tmp_path / "out" / "figures").glob("*.png")} >= {"sweeps.png", "phase.png"}
