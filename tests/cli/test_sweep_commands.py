"""Sweeps on the command line and from Python, with real processes that are stopped and killed."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

import separatrix as sx
from expectations import run as command
from separatrix.cli.options import DEFAULT
from separatrix.core.parameters import UsageError
from separatrix.sweeps import store as store_module
from separatrix.sweeps.plan import Plan, read_plan
from separatrix.sweeps.run import run
from separatrix.sweeps.store import Store, frame, open_store
from separatrix.sweeps.sweep import find_plan
from sweep_tools import HEAD, PATIENCE, SMALL, Inline, is_session_gone

pytestmark = pytest.mark.usefixtures("default_signals")
COMMAND = [sys.executable, "-c", "from separatrix.cli import main; main()"]
LONG = HEAD + "[[sweep]]\nparameters = { n = 1000, a1 = '0.5:1.5:1200' }"
CELLS = 2400


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"sqlite:///{tmp_path / 'results.db'}", create=True)


@pytest.fixture(scope="module")
def small() -> Plan:
    return read_plan(SMALL)


@pytest.fixture
def long_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "long.toml").write_text(LONG)
    return tmp_path / "long.toml"


def _begun(folder: Path) -> subprocess.Popen[str]:
    """The command line at work, once some of its cells are stored."""
    process = subprocess.Popen(
        [*COMMAND, "sweep", "long.toml"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        if _stored(folder / "results.db"):
            return process
        time.sleep(0.01)
    raise AssertionError(process.communicate()[1])


def _stored(file: Path) -> int:
    if not file.exists():
        return 0
    with closing(sqlite3.connect(file)) as connection:
        return int(connection.execute("SELECT count(*) FROM cells").fetchone()[0])


@pytest.mark.exhaustive
def test_the_command_killed_leaves_nobody_behind_and_goes_on(
    long_plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(3):
        process = _begun(long_plan.parent)
        process.kill()
        process.communicate()
        assert is_session_gone(process.pid)
    assert 0 < frame(open_store("results.db")).height < CELLS
    code, out, _ = command(capsys, "sweep", "long.toml", "--workers", "2")
    assert code == 0
    assert f"{CELLS:,} of {CELLS:,} cells are stored" in out
    whole = frame(open_store("results.db"))
    assert whole["id"].n_unique() == whole.height == CELLS


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.exhaustive)])
def test_what_is_sent_once_ends_a_sweep_soon(long_plan: Path, number: signal.Signals) -> None:
    process = _begun(long_plan.parent)
    os.killpg(process.pid, number)  # as a batch system does
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number, err
    assert "Traceback" not in err
    assert is_session_gone(process.pid)
    whole = frame(open_store("results.db"))
    assert 0 < whole["id"].n_unique() == whole.height < CELLS
    with closing(sqlite3.connect(long_plan.parent / "results.db")) as connection:
        assert connection.execute("SELECT count(*) FROM separatrix_leases").fetchone() == (0,)


def test_ctrl_c_finishes_cleanly_and_says_how_to_go_on(long_plan: Path) -> None:
    process = _begun(long_plan.parent)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert "interrupted" in out
    assert "to continue: repeat the command" in out
    assert "Traceback" not in err
    assert "a worker died" not in out
    assert is_session_gone(process.pid)
    stored = frame(open_store("results.db")).height
    assert f"{stored:,} of {CELLS:,} cells are stored" in out


@pytest.mark.exhaustive
def test_a_second_ctrl_c_drops_a_cell_that_hangs(tmp_path: Path) -> None:
    """The first one waits for it; what it had taken is left to others."""
    body = "    pathlib.Path('begun').touch()\n    time.sleep(1000)\n"
    hangs = f"import pathlib, time\ndef attend(q, k, v):\n{body}"
    (tmp_path / "hangs_in_sweeps.py").write_text(hangs)
    plan = HEAD.replace('"softmax", "linear"', '"hangs_in_sweeps:attend"')
    (tmp_path / "plan.toml").write_text(plan + '[[sweep]]\nengine = "dense"\nparameters.n = [100, 200]')
    command = [*COMMAND, "sweep", "plan.toml", "--workers", "1", "--allow", "hangs_in_sweeps:attend"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    end = time.monotonic() + PATIENCE
    while not (tmp_path / "begun").exists():
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    assert process.stderr is not None
    assert process.stderr.readline() == "\n"
    assert "Ctrl-C again abandons them" in process.stderr.readline()
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=PATIENCE)[1] == "separatrix: interrupted\n"
    assert process.returncode == 130
    assert is_session_gone(process.pid)
    with closing(sqlite3.connect(tmp_path / "results.db")) as connection:
        assert connection.execute("SELECT count(*) FROM separatrix_leases").fetchone() == (0,)


def test_the_default_store_is_one() -> None:
    assert DEFAULT == store_module.DEFAULT


def test_bad_usage_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (("--workers", "0"), "workers=0 is out of range"),
        (("--workers", "2", "--scheduler", "tcp://127.0.0.1:1"), "--workers or --scheduler, not both"),
        (("--store", "mysql://x/y"), "stores are in SQLite or PostgreSQL"),
        (("--store", str(tmp_path / "no" / "r.db")), "there is no folder"),
    ):
        store = () if "--store" in words else ("--store", str(tmp_path / "r.db"))
        code, out, err = command(capsys, "sweep", "paper", *words, *store)
        # On a slow machine the command says first what it does.
        complaints = [line for line in err.splitlines() if not line.startswith("sweep: ")]
        assert (code, out, len(complaints)) == (2, "", 1), err
        assert said in complaints[0]


def test_results_on_the_command_line(
    store: Store, small: Plan, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run(small, store, Inline())
    url = ("--store", store.location)
    code, out, _ = command(capsys, "results", *url, "mechanism=softmax", "n=100:1e4", "engine=closed", "--json")
    rows = json.loads(out)
    assert code == 0
    assert {row["mechanism"] for row in rows} == {"softmax"}
    assert all(100 <= row["parameters"]["n"] <= 10_000 for row in rows)
    assert {"construction", "engine", "neuron", "interval", "verdict", "seconds", "versions"} <= rows[0].keys()
    _, out, _ = command(capsys, "results", *url, "--csv")
    assert pl.read_csv(out.encode()).height == frame(store).height
    out_file = tmp_path / "cells.parquet"
    assert command(capsys, "results", *url, "--out", str(out_file))[0] == 0
    assert pl.read_parquet(out_file).height == frame(store).height
    code, out, _ = command(capsys, "results", *url)
    assert f"{frame(store).height} cells:" in out
    assert max(map(len, out.splitlines())) <= 80
    code, out, _ = command(capsys, "results", *url, "--limit", "2", "mechanism=linear")
    assert "2 cells (there may be more: --limit)" in out
    assert "all with d=12" in out
    for words, said in (
        (("--limit", "0"), "leaves nothing"),
        (("mechanism=sofmax",), "no stored cell has mechanism sofmax (did you mean softmax?)"),
        (("n=1e6:1e3",), "runs backwards"),
        (("sweep=1",), "write --sweep 1"),
        (("--csv", "--json"), "choose one"),
        (("--out", "cells.txt"), "let it end in one of"),
        (("verdict=maybe",), "is not one of"),
        (("zz=3",), "no stored cell has zz"),
        (("--sweep", "none"), "there is no sweep none"),
    ):
        code, out, err = command(capsys, "results", *url, *words)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert said in err


def test_lists_of_plans_and_sweeps(store: Store, small: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    run(small, store, Inline())
    _, out, _ = command(capsys, "list", "plans", "--json")
    assert {row["name"]: row["cells"] for row in json.loads(out)}["paper"] == find_plan("paper").count
    _, out, _ = command(capsys, "list", "sweeps", "--store", store.location, "--json")
    assert [(row["name"], row["cells"]) for row in json.loads(out)] == [("small", frame(store).height)]


def test_sweep_and_results_from_python(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(HEAD + '[[sweep]]\nengine = "closed"\nparameters.n = [100, 200]')
    url = f"sqlite:///{tmp_path / 'r.db'}"
    done = sx.sweep(tmp_path / "plan.toml", url, workers=1)
    assert (done.done, done.total) == (4, 4)
    found = sx.results(url, mechanism="softmax", n="150:")
    assert found["n"].to_list() == [200]
    assert sx.results(url, mechanism=["softmax", "linear"], n=(100, 200), delta="1/100").height == 4
    with pytest.raises(UsageError, match="there is no store"):
        sx.results(f"sqlite:///{tmp_path / 'none.db'}")


def test_a_sweep_from_another_thread(tmp_path: Path) -> None:
    """Signals belong to the main thread; elsewhere a sweep works without them."""
    (tmp_path / "plan.toml").write_text(HEAD + '[[sweep]]\nengine = "closed"\nparameters.n = 100')
    found: list[int] = []
    url = f"sqlite:///{tmp_path / 'r.db'}"
    thread = threading.Thread(target=lambda: found.append(sx.sweep(tmp_path / "plan.toml", url, workers=1).done))
    thread.start()
    thread.join(60)
    assert found == [2]
