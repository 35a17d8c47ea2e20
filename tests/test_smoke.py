"""One short use of every dependency.

`make test-lowest` runs this file with the oldest allowed release of each: a lower bound that is too low fails
here, and not in the hands of a user. Commands run in this process, as in a terminal of 80 columns.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import polars
import pytest
from PIL import Image
from typer.testing import CliRunner

import separatrix as sx
from explorer import running
from separatrix.cli.application import app

PLAN = """
name = "smoke"
construction = "spike"
mechanisms = ["softmax", "linear"]
[parameters]
d = 12
m = 12
a0 = 0.01
b = 0.2
c = 0.1
[[sweep]]
name = "a1"
parameters = { n = 1000, a1 = "0.5:1.5:3" }
[[sweep]]
name = "drawn"
engine = "dense"
draws = 20
parameters = { n = 100, a1 = 1.2 }
"""
TINY = ("n=8", "steps=4", "every=2", "width=8", "batch=4", "validation=8", "tests=8", "rates=0.01")
PROBABILITY = "158456325173550300925235998417/316912650057057350374175801344"
"""P(a neuron fires on D1) for softmax at the reference point of the spike construction."""

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command in an empty folder and returns its standard output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run_command(*words: str, exit_code: int = 0) -> str:
        answer = CliRunner().invoke(app, list(words))
        assert answer.exit_code == exit_code, (words, answer.output, answer.exception)
        return answer.stdout

    return run_command


@pytest.mark.parametrize("command", [(), ("verdict",), ("sweep",), ("store",), ("learn",)])
def test_help(run: Run, command: tuple[str, ...]) -> None:
    assert "Usage:" in run(*command, "--help")


def test_certified_verdict_and_certificate(run: Run, tmp_path: Path) -> None:
    document = json.loads(run("verdict", "spike", "softmax", "--certificate", "proof.json", "--json"))
    assert document["engine"] == "certified"
    assert document["neuron"]["p1"] == PROBABILITY
    assert "certificate holds" in run("check", "proof.json")


@pytest.mark.parametrize("engine", ["closed", "grouped", "dense"])
def test_other_engines(run: Run, engine: str) -> None:
    point = ("n=100", "d=12", "m=4", "a0=0.01", "a1=1.2", "b=0.2", "c=0.1")
    document = json.loads(run("verdict", "spike", "softmax", *point, "--engine", engine, "--json"))
    assert document["engine"] == engine


def test_figures_tables_and_pages(run: Run, tmp_path: Path) -> None:
    plane = ("map", "spike", "softmax,linear", "a1=0.5:1.5:5", "n=1e3:1e18:5:log")
    for name in ("map.png", "map.svg", "map.html", "map.csv", "map.parquet"):
        run(*plane, "--out", name)
    with Image.open(tmp_path / "map.png") as image:
        assert min(image.size) > 100
    assert "<script>" in (tmp_path / "map.html").read_text(encoding="utf-8")
    frame = polars.read_parquet(tmp_path / "map.parquet")
    assert frame.height == 2 * 5 * 5
    assert frame.columns == polars.read_csv(tmp_path / "map.csv").columns


def test_results_in_python(tmp_path: Path) -> None:
    verdict = sx.verdict("spike", "softmax")
    verdict.save(tmp_path / "verdict.svg")
    verdict.save(tmp_path / "verdict.parquet")
    assert sx.map("spike", "softmax", a1="0.5:1.5:3", n=[1000, 10**6]).to_frame().height == 6


def test_boundary_scaling_readers_and_choice(run: Run) -> None:
    assert "0.7785735959 (certified)" in run("boundary", "spike", "softmax", "a1=0.5:1.5", "n=1e6")
    assert "-1.0000" in run("scaling", "spike", "linear", "n=1e3:1e9:7:log", "--of", "margin")
    assert "for every n >= 1000" in run("prove", "spike", "softmax")
    run("readers", "injectivity", "linear")
    run("choose", "n=4096", "--mechanisms", "softmax,linear,gla")


def test_construction_picture_and_search(run: Run, tmp_path: Path) -> None:
    run("list", "constructions", "majority")
    run("list", "constructions", "majority", "--out", "majority.svg")
    assert "<svg" in (tmp_path / "majority.svg").read_text(encoding="utf-8")
    run("search", "softmax", "linear", "--budget", "5")


def test_sweep_store_and_report(run: Run, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    store = ("--store", "sqlite:///cells.db")
    run("sweep", "plan.toml", *store, "--workers", "1")
    with sqlite3.connect(tmp_path / "cells.db") as connection:
        assert connection.execute("select count(*) from sqlite_master").fetchone()[0] > 0
    assert len(json.loads(run("results", *store, "--json"))) > 0
    run("results", *store, "--out", "cells.parquet")
    assert polars.read_parquet(tmp_path / "cells.parquet").height == 2 * 3 + 2
    run("report", *store, "--out", "page")
    assert "<html" in (tmp_path / "page" / "report.html").read_text(encoding="utf-8")[:300]
    run("store", "check", *store)


def test_training(run: Run) -> None:
    document = json.loads(run("learn", "needle", "softmax", *TINY, "--seeds", "2", "--workers", "1", "--json"))
    assert document["task"] == "needle"


def test_errors_are_one_line(run: Run) -> None:
    run("verdict", "spike", "--nope", exit_code=2)


def test_explorer(tmp_path: Path) -> None:
    with running(cwd=tmp_path) as explorer:
        assert explorer.send("/").status == 200
        document = explorer.get("/verdict/spike/softmax")
    assert PROBABILITY in json.dumps(document)
