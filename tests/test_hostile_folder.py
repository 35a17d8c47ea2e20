"""Nothing in the current folder is run unless the user names it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from separatrix.core.parameters import UsageError
from separatrix.mechanisms.load import mechanism_from
from separatrix.mechanisms.own_modules import OWN
from separatrix.sweeps.code import find_sources, list_mechanism_modules
from traps import TRAP, installed, lay_traps

ATTEND = """
import torch

import beside_helper


def attend(q, k, v, causal=False):
    from later_package.part import doubled

    return beside_helper.attend(q, k, v, causal) * doubled(0.5)
"""
HELPER = """
from torch.nn.functional import scaled_dot_product_attention


def attend(q, k, v, causal):
    return scaled_dot_product_attention(q, k, v, is_causal=causal)
"""
PLAN = """
mechanisms = ["softmax", "own_attention:attend"]
[[sweep]]
construction = "spike"
engine = "dense"
draws = 20
parameters = { n = [20, 40], d = 6, m = 4, a0 = 0.01, a1 = 1.2, b = 0.2, c = 0.1 }
"""


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with a trap for every import, and a mechanism of the user's own among them."""
    folder = tmp_path / "here"
    lay_traps(folder)
    (folder / "later_package").mkdir()
    (folder / "own_attention.py").write_text(ATTEND)
    (folder / "beside_helper.py").write_text(HELPER)
    (folder / "later_package" / "part.py").write_text("def doubled(x): return 2 * x\n")
    (folder / "plan.toml").write_text(PLAN)
    (folder / "matplotlibrc").write_text("backend: module://torch\ntext.usetex: True\n")
    return folder


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    return installed(tmp_path / "bin")


MAP = "map spike softmax a1=0.5:1.5:3 n=1e3:1e4:3:log d=102 m=12 a0=0.01 b=0.2 c=0.1 --out map.png"


def test_no_command_runs_what_lies_in_the_current_folder(hostile: Path, program: list[str]) -> None:
    """The workers of the sweep load the user's own mechanism, and what that imports."""
    for words in ("sweep plan.toml --workers 1 --allow own_attention:attend", MAP, "report --out page"):
        command = [*program, *words.split()]
        done = subprocess.run(command, cwd=hostile, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert [each.name for each in hostile.glob("*.ran")] == []
    assert "4 done" in done.stdout


def test_helpers_of_multiprocessing_start_with_a_safe_path() -> None:
    from separatrix.core.startup import SAFE_PATH, safe_path

    look = [sys.executable, "-c", "import sys; print('' in sys.path)"]
    before = os.environ.get(SAFE_PATH)
    with safe_path():
        assert subprocess.check_output(look, text=True) == "False\n"
    assert os.environ.get(SAFE_PATH) == before


@pytest.fixture
def here(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(hostile)
    yield hostile
    for name in ("own_attention", "beside_helper", "later_package", "later_package.part"):
        sys.modules.pop(name, None)
    OWN.__init__()  # type: ignore[misc]
    with suppress(ValueError):
        sys.meta_path.remove(OWN)


def test_only_the_users_own_modules_import_from_beside(here: Path) -> None:
    path = list(sys.path)
    mechanism = mechanism_from("own_attention:attend")
    assert mechanism.spelled == "own_attention:attend"
    assert sys.path == path
    assert sys.modules["beside_helper"].__file__ == str(here / "beside_helper.py")
    (here / "never_installed.py").write_text(TRAP)
    with pytest.raises(ModuleNotFoundError):
        __import__("never_installed")
    with pytest.raises(ModuleNotFoundError):
        __import__("fla")
    assert list(here.glob("*.ran")) == []


def test_a_module_that_could_not_be_loaded_is_found_in_the_next_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = here / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "own_attention.py").write_text("import nowhere_to_be_found\n")
    monkeypatch.chdir(elsewhere)
    with pytest.raises(UsageError, match="nowhere_to_be_found"):
        mechanism_from("own_attention:attend")
    monkeypatch.chdir(here)
    assert mechanism_from("own_attention:attend").spelled == "own_attention:attend"


def test_what_own_modules_import_later_belongs_to_the_code_of_a_cell(here: Path) -> None:
    mechanism_from("own_attention:attend")
    assert "later_package.part" not in sys.modules
    assert {"own_attention", "beside_helper", "later_package.part"} <= find_sources(["own_attention"]).keys()
    assert list(here.glob("*.ran")) == []


def test_a_module_here_with_the_name_of_another_is_refused(here: Path) -> None:
    for name in ("torch", "queue", "torch.nn.functional", "json", "sqlalchemy"):
        with pytest.raises(UsageError, match=r"\.py in this folder has the name of another module .*; rename it"):
            mechanism_from(f"{name}:attend")
    assert list(here.glob("*.ran")) == []
    (here / "scipy.py").unlink()
    (here / "scipy").mkdir()
    with pytest.raises(UsageError, match="scipy has no attend"):
        mechanism_from("scipy:attend")
    with pytest.raises(UsageError):
        mechanism_from(":attend")


def test_a_module_is_found_in_the_folder_before_its_name(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the way to it is written; what it imports lies beside it, and nothing else is run there."""
    path = list(sys.path)
    monkeypatch.chdir(here.parent)
    for typed in ("here/own_attention.py", "./here/../here/own_attention", f"{here}/own_attention.py"):
        assert mechanism_from(f"{typed}:attend").spelled == "here/own_attention:attend"
    assert sys.modules["beside_helper"].__file__ == str(here / "beside_helper.py")
    assert sys.path == path
    (here / "inside").mkdir()
    monkeypatch.chdir(here / "inside")
    found = mechanism_from("../own_attention.py:attend")
    assert found.spelled == "../own_attention:attend"
    assert mechanism_from(found.spelled).spelled == found.spelled
    assert {"own_attention", "beside_helper", "later_package.part"} <= find_sources(
        list_mechanism_modules(found)
    ).keys()
    assert mechanism_from(f"{here}/own_attention.py:attend").spelled == f"{here}/own_attention:attend"
    assert list(here.glob("*.ran")) == []


def test_what_is_not_in_that_folder_is_not_taken_from_elsewhere(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here.parent)
    for name in ("torch", "queue", "json", "sqlalchemy"):
        with pytest.raises(UsageError, match=r"\.py in that folder has the name of another module"):
            mechanism_from(f"here/{name}.py:attend")
    (here / "empty").mkdir()
    (here / "empty" / "json").mkdir()
    for name in ("empty/own_attention", "empty/json", "nowhere/json", "empty/torch.nn"):
        with pytest.raises(UsageError, match=f"there is no here/{name}.py; folders count from the current"):
            mechanism_from(f"here/{name}.py:attend")
    mechanism_from("here/own_attention.py:attend")
    (here / "empty" / "own_attention.py").write_text(TRAP)
    with pytest.raises(UsageError, match="in that folder has the name of another module"):
        mechanism_from("here/empty/own_attention.py:attend")
    assert list(here.rglob("*.ran")) == []


@pytest.mark.exhaustive
def test_workers_of_a_sweep_find_a_file_in_a_folder(hostile: Path, program: list[str]) -> None:
    plan = PLAN.replace("own_attention:", "here/own_attention.py:")
    (hostile.parent / "plan.toml").write_text(plan)
    words = "sweep plan.toml --workers 2 --allow here/own_attention.py:attend"
    done = subprocess.run([*program, *words.split()], cwd=hostile.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "4 computed now" in done.stdout
    assert list(hostile.glob("*.ran")) == []
