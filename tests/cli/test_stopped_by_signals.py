"""Commands that a signal stops: soon, with the exit code that shells expect, and with nothing left behind."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from separatrix.core.parameters import SeparatrixError
from separatrix.core.startup import process_context
from separatrix.sweeps import executors
from separatrix.sweeps.executors import PRELOADED, LocalExecutor

pytestmark = pytest.mark.usefixtures("default_signals")
COMMAND = (sys.executable, "-P", "-c", "from separatrix.cli import main; main()")
EACH_SIGNAL = [
    signal.SIGINT,
    *(pytest.param(number, marks=pytest.mark.exhaustive) for number in (signal.SIGTERM, signal.SIGHUP)),
]
PATIENCE = 120
"""Seconds until a command counts as hanging; it ends within three where nothing else runs."""


def begun(cwd: Path, *words: str, sign: str) -> subprocess.Popen[str]:
    """A command in a session of its own, once a file that matches `sign` is there."""
    process = subprocess.Popen(
        [*COMMAND, *words], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    end = time.monotonic() + PATIENCE
    while not any(file.stat().st_size for file in cwd.glob(sign)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.05)
    return process


def stopped(process: subprocess.Popen[str], number: signal.Signals) -> tuple[str, str]:
    """What a command printed until the signal ended it."""
    os.killpg(process.pid, number)
    try:
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 128 + number, (out, err)
    assert "Traceback" not in err
    assert "should not happen" not in err
    return out, err


@pytest.mark.parametrize("number", EACH_SIGNAL)
def test_search(number: signal.Signals, tmp_path: Path) -> None:
    words = ("search", "elu", "softmax", "--budget", "1000000", "--study", "study.log")
    stopped(begun(tmp_path, *words, sign="study.log"), number)
    assert [file.name for file in tmp_path.iterdir()] == ["study.log"]


def count_claims(store: Path) -> int:
    """Count the cells that a worker computes at this moment."""
    with closing(sqlite3.connect(store)) as connection, suppress(sqlite3.OperationalError):
        return int(connection.execute("SELECT count(*) FROM separatrix_leases").fetchone()[0])
    return 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_learn(number: signal.Signals, tmp_path: Path) -> None:
    words = ("learn", "needle", "softmax", "n=64", "steps=100000", "rates=0.01", "--workers", "1")
    process = begun(tmp_path, *words, sign="results.db")
    end = time.monotonic() + PATIENCE
    while not count_claims(tmp_path / "results.db"):  # a run has begun, and takes minutes
        assert time.monotonic() < end
        time.sleep(0.05)
    stopped(process, number)
    assert {file.name for file in tmp_path.iterdir()} <= {"results.db", "results.db-wal", "results.db-shm"}


@pytest.mark.parametrize("number", EACH_SIGNAL)
def test_reproduce_leaves_no_folder_behind(number: signal.Signals, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "reproduce"], cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    end = time.monotonic() + PATIENCE
    while not list(tmp_path.iterdir()):
        assert time.monotonic() < end
        time.sleep(0.01)
    stopped(process, number)
    assert list(tmp_path.iterdir()) == []


def test_a_signal_in_an_import_leaves_no_folder_behind(tmp_path: Path) -> None:
    """A module is imported while a folder is being filled; the process ends at once, but not untidily."""
    program = (
        "import os, pathlib, signal, sys\n"
        "from separatrix import cli\n"
        "from separatrix.core.files.folder import Folder\n"
        "import separatrix.cli.application as application\n"
        "class Late:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'separatrix.pages.figures.phase':\n"
        "            os.kill(os.getpid(), signal.SIGTERM)\n"
        "sys.meta_path.insert(0, Late())\n"
        "def run(words):\n"
        "    with Folder(pathlib.Path('out')) as folder:\n"
        "        (folder.place / 'half').write_text('half')\n"
        "        import separatrix.pages.figures.phase\n"
        "application.run = run\n"
        "cli.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stderr) == (143, b"")
    assert list(tmp_path.iterdir()) == []


def test_a_server_of_processes_that_was_killed_is_started_again() -> None:
    from multiprocessing import forkserver

    context = process_context(PRELOADED)
    server = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    os.kill(server, signal.SIGKILL)
    executor = LocalExecutor(1, context)
    try:
        executor._workers[0].greeting.result(PATIENCE)
        assert forkserver._forkserver._forkserver_pid != server  # type: ignore[attr-defined]
    finally:
        executor.close()


@pytest.mark.parametrize("error", [EOFError(), ConnectionResetError(104, "Connection reset by peer")])
def test_where_no_worker_can_be_started_the_cause_and_a_remedy_are_told(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(executors, "_Worker", fail)
    with pytest.raises(SeparatrixError, match=r"no worker process can be started .* enough memory, then give"):
        LocalExecutor(1)
