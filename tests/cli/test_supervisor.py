"""A command whose process dies, hangs or is stopped ends with one line and the right exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command import run
from documents import require_document
from separatrix.cli.supervisor import CAUSE, OWN, ChildState

PROGRAM = """
import ctypes, json, os, signal, sys, time
from pathlib import Path
from separatrix.cli import _interrupt, supervisor
from separatrix.core.interrupts import exit_code
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, _interrupt)
supervisor.GRACE = 0.5
words = ["verdict", "spike", "mine.py:attend", "--json"]
assert supervisor.can_supervise(words)
supervisor.start(words)
try:
    {body}
except KeyboardInterrupt:
    supervisor.report(code=exit_code())
"""
"""A command that does `body` in the child, and imports nothing that takes time."""
WAIT = "Path('ready').touch(); time.sleep(60)"
DEAF = "signal.pthread_sigmask(signal.SIG_BLOCK, [15]); Path('ready').touch(); time.sleep(60)"


def start(body: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM.format(body=body)]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def finish(body: str, folder: Path) -> tuple[int, str, str]:
    with start(body, folder) as process:
        out, error = process.communicate(timeout=60)
    return process.returncode, out, error


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("os._exit(0)", "it ended the process with exit status 0; does your code call os._exit?"),
        ("os._exit(3)", "it ended the process with exit status 3; does your code call os._exit?"),
        ("ctypes.string_at(0)", "it crashed with SIGSEGV; PYTHONFAULTHANDLER=1 shows the line"),
        ("os.abort()", "it crashed with SIGABRT; PYTHONFAULTHANDLER=1 shows the line"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "it was killed by SIGKILL, as the system does when memory runs out"),
        (
            "supervisor.report(seconds=0.2); time.sleep(60)",
            "it took longer than 0.2 s; a larger --timeout waits longer",
        ),
    ],
)
def test_a_death_is_a_finding_with_one_line(body: str, line: str, tmp_path: Path) -> None:
    code, out, error = finish(body, tmp_path)
    assert (code, out) == (1, "")
    assert error == f"separatrix: verdict mine.py:attend: {line}\n"


def test_the_exit_code_is_the_one_that_was_reported(tmp_path: Path) -> None:
    assert finish("print('answer'); supervisor.report(code=2); os._exit(0)", tmp_path) == (2, "answer\n", "")


def test_only_answers_are_on_standard_output(tmp_path: Path) -> None:
    body = "os.write(1, b'not for you\\n'); os.system('echo nor this'); print('answer')"
    code, out, error = finish(f"{body}; supervisor.report(code=0)", tmp_path)
    assert (code, out) == (0, "answer\n")
    assert error == "not for you\nnor this\n"


def test_what_was_printed_is_not_lost_in_a_buffer(tmp_path: Path) -> None:
    assert finish("print('contract'); os._exit(0)", tmp_path)[1] == "contract\n"


def test_a_prepared_answer_is_shown_and_written_with_the_cause(tmp_path: Path) -> None:
    prepared = {"answer": f"card: {CAUSE}\n", "file": f"page: {CAUSE}", "path": str(tmp_path / "card.html")}
    body = f"supervisor.report(step='mine: contract, form', if_dead={prepared!r}); os._exit(0)"
    code, out, error = finish(body, tmp_path)
    assert (code, out) == (1, "card: ended the process with exit status 0\n")
    assert (tmp_path / "card.html").read_text() == "page: ended the process with exit status 0"
    assert error.startswith("separatrix: mine: contract, form: it ended the process")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("everyone", [False, True], ids=["the command", "both processes"])
def test_signals_end_both_processes(number: signal.Signals, everyone: bool, tmp_path: Path) -> None:
    process = start(WAIT, tmp_path)
    wait_for(tmp_path / "ready")
    (child,) = children(process.pid)
    if everyone:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    _, error = process.communicate(timeout=120)
    assert (process.returncode, error) == (128 + number, "")
    assert is_gone(child)


@pytest.mark.parametrize("times", [1, 2])
def test_a_process_that_hears_nothing_is_killed(times: int, tmp_path: Path) -> None:
    known = {"answer": "card as far as it is\n"}
    process = start(f"supervisor.report(if_interrupted={known!r}); {DEAF}", tmp_path)
    wait_for(tmp_path / "ready")
    (child,) = children(process.pid)
    for _ in range(times):
        process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
    out, _ = process.communicate(timeout=120)
    assert (process.returncode, out) == (143, "card as far as it is\n")
    assert is_gone(child)


def test_the_child_does_not_outlive_its_parent(tmp_path: Path) -> None:
    process = start(WAIT, tmp_path)
    wait_for(tmp_path / "ready")
    (child,) = children(process.pid)
    process.kill()
    process.communicate(timeout=120)
    deadline = time.monotonic() + 120
    while not is_gone(child):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_reader_that_goes_away_ends_the_command_as_usual(tmp_path: Path) -> None:
    code, _, error = finish("supervisor.streams.exit_by_broken_pipe()", tmp_path)
    assert (code, error) == (-signal.SIGPIPE, "")


def test_what_is_no_report_is_ignored() -> None:
    state = ChildState()
    for line in (b"garbage", b"[1]", b'{"bogus": 1}', b'"step"', b"\xff"):
        state.update(line)
    assert state == ChildState(since=state.since)
    state.update(json.dumps({"code": 0}).encode())
    assert state.code == 0


@pytest.mark.parametrize(
    ("word", "own"),
    [
        ("mine.py:attend", ["mine.py:attend"]),
        ("softmax,../my.mod:Net:dim=4", ["../my.mod:Net"]),
        ("power:beta=4", []),
        ("n=8:40", []),
    ],
)
def test_which_of_the_words_are_the_users_own(word: str, own: list[str]) -> None:
    assert OWN.findall(word) == own


DEADLY = """
import os, time

def exits(q, k, v):
    os.write(1, b"not for you")
    os._exit(0)

def loops(q, k, v):
    while True:
        pass
"""


def test_a_card_names_the_check_in_which_the_process_ended(tmp_path: Path) -> None:
    (tmp_path / "deadly_own.py").write_text(DEADLY)
    words = ("assess", "deadly_own.py:exits", "--quick", "--json", "--out", "card.html")
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 1
    shown = require_document("card", done.stdout)
    assert shown["contract"]["failed"] == {"form": "ended the process with exit status 0"}
    assert shown["finished"] is False
    assert "ended the process with exit status 0" in (tmp_path / "card.html").read_text()
    assert done.stderr.splitlines()[-1].endswith(
        "deadly_own:exits: contract: it ended the process with exit status 0; does your code call os._exit?"
    )


def test_an_endless_loop_is_ended(tmp_path: Path) -> None:
    (tmp_path / "deadly_own.py").write_text(DEADLY)
    done = run("assess", "deadly_own.py:loops", "--timeout", "2", cwd=tmp_path)
    assert done.returncode == 1
    assert "  broken form: took longer than 2 s" in done.stdout.splitlines()
    assert "Not finished: 0 of 18 constructions were tested." in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize("words", ["verdict plain", "readers plain", "bench"])
def test_no_other_command_looks_like_a_success(words: str, tmp_path: Path) -> None:
    (tmp_path / "deadly_own.py").write_text(DEADLY)
    done = run(*words.split(), "deadly_own.py:exits", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "not for you")
    name = words.partition(" ")[0]
    line = f"separatrix: {name} deadly_own.py:exits: it ended the process with exit status 0"
    assert done.stderr.splitlines()[-1].startswith(line)


def children(parent: int) -> list[int]:
    found = subprocess.run(["ps", "-axo", "pid=,ppid="], capture_output=True, text=True, check=True)
    pairs = (line.split() for line in found.stdout.splitlines())
    return [int(child) for child, of in pairs if int(of) == parent]


def is_gone(process: int) -> bool:
    """Whether a process has ended; one that nobody waits for stays as a zombie."""
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True)
    return found.stdout.strip()[:1] in ("", "Z")
