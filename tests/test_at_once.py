"""Closed forms, lists and stored results come at once: nothing is loaded that they do not need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import stored
from cases import BASE
from separatrix.constructions import CONSTRUCTIONS

HEAVY = ["torch", "jaxtyping", "scipy.special", "scipy.stats", "scipy.optimize", "optuna", "pandas"]
DRAWING = ["matplotlib"]
STORED = ["sqlalchemy", "polars", "distributed"]
SAMPLED = ("routing", "rough")
"""Their tokens are not rational: there is nothing to certify."""
POINT = [f"{name}={value}" for name, value in BASE.items()]
AROUND = [f"{name}={value}" for name, value in BASE.items() if name not in ("n", "a1")]
PROGRAM = """
import io, json, sys
from separatrix.cli.application import run
watched, commands = json.loads(sys.argv[1])
said, loaded = sys.stdout, []
for words in commands:
    sys.stdout = io.TextIOWrapper(io.BytesIO())
    code = run(words)
    loaded.append([code, *(each for each in watched if each in sys.modules)])
json.dump(loaded, said)
"""


def loaded_by(*commands: list[str], watched: list[str]) -> list[list[object]]:
    """The exit code of each command, and which of the modules watched are loaded after it, in one process."""
    program = [sys.executable, "-c", PROGRAM, json.dumps([watched, commands])]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[list[object]] = json.loads(done.stdout)
    return found


def test_certified_verdicts_of_every_construction() -> None:
    points = {
        name: [f"{key}={value}" for key, value in kind.example.items()]
        for name, kind in CONSTRUCTIONS.items()
        if name not in SAMPLED
    }
    commands = [
        *(["verdict", name, "softmax", *point, "--engine", "certified"] for name, point in points.items()),
        *(["verdict", name, "linear", *point] for name, point in points.items()),
    ]
    assert loaded_by(*commands, watched=HEAVY + DRAWING + STORED) == [[0]] * len(commands)


def test_closed_forms_in_float64_boundaries_maps_certificates_and_lists(tmp_path: Path) -> None:
    plane = ["map", "spike", "softmax,linear", "a1=0.5:1.5:5", "n=1e3:1e18:5:log", *AROUND]
    commands = [
        *(["list", what] for what in ("constructions", "mechanisms", "claims")),
        ["data", "--folder", str(tmp_path)],
        ["verdict", "spike", "power:beta=4", *POINT, "--certificate", str(tmp_path / "proof.json")],
        ["check", str(tmp_path / "proof.json")],
        *(["verdict", name, "softmax", "n=1200", "m=12", "--engine", "closed"] for name in ("plain", "location")),
        ["verdict", "spike", "linear", *POINT, "--engine", "closed", "--json"],
        ["boundary", "spike", "softmax", "a1=0.5:1.5", "n=1e6", *AROUND],
        plane,
        [*plane, "--out", str(tmp_path / "map.npz")],
    ]
    assert loaded_by(*commands, watched=HEAVY + DRAWING + STORED) == [[0]] * len(commands)


def test_stored_results(tmp_path: Path) -> None:
    store = tmp_path / "results.db"
    stored.add(f"sqlite:///{store}", 0, 3, 1)
    commands = [["results", "--store", str(store)], ["list", "sweeps", "--store", str(store)]]
    assert loaded_by(*commands, ["list", "plans"], watched=HEAVY + DRAWING) == [[0]] * 3
    page = ["report", "--store", str(store), "--out", str(tmp_path / "out")]
    assert loaded_by(page, watched=HEAVY) == [[0]]


def test_tokens_are_attended_to_by_torch() -> None:
    sampled = ["verdict", "spike", "softmax", *POINT, "--engine", "grouped", "--draws", "5"]
    assert loaded_by(sampled, watched=["torch", "jaxtyping"]) == [[0, "torch"]]


@pytest.mark.parametrize("first", ["separatrix", "separatrix.core.errors", "separatrix.cli.application"])
def test_what_is_imported_for_help(first: str) -> None:
    heavy = {"numpy", "pydantic", "rich", "torch"}
    program = f"import sys, {first}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
