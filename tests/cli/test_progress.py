"""Long commands say what they do, about how long it takes, and how far they are; quick ones say nothing."""

from __future__ import annotations

import io
import json
import time

import pytest
from rich.console import Console

import separatrix as sx
from separatrix.cli import progress
from separatrix.cli.application import run as typed
from separatrix.exact.engines import Sampling


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What is said where nobody looks at a terminal."""
    written = io.StringIO()
    monkeypatch.setattr(progress, "on_stderr", lambda quiet=False: Console(file=written, quiet=quiet, width=80))
    return written


def test_work_is_announced_once_and_plain_lines_follow_now_and_then(
    heard: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    with progress.announced("assess", "the contract, about 10 s", False), progress.working(False) as tell:
        assert heard.getvalue() == ""
        tell("softmax: contract")
        tell("softmax: [cost]")
        assert heard.getvalue() == "assess: the contract, about 10 s\n"
        monkeypatch.setattr(progress, "PLAIN_INTERVAL", 0.0)
        tell("softmax: [cost]")
    assert heard.getvalue().splitlines()[1:] == ["assess: 0:00 softmax: [cost]"]


def test_what_takes_a_second_to_begin_is_announced(heard: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "ANNOUNCE_AFTER", 0.01)
    with progress.announced("atlas", "minutes", False):
        deadline = time.monotonic() + 60
        while not heard.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert heard.getvalue() == "atlas: minutes\n"


def test_what_is_refused_at_once_is_not_announced(heard: io.StringIO) -> None:
    with pytest.raises(ValueError, match="no"), progress.announced("atlas", "minutes", False):
        raise ValueError("no")
    assert heard.getvalue() == ""


def test_nothing_is_said_with_json(heard: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PLAIN_INTERVAL", 0.0)
    with progress.announced("search", "trying", True), progress.counting(True) as tell:
        tell(1, 2, "a trial")
    assert heard.getvalue() == ""


def test_counts_are_told_plainly(heard: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PLAIN_INTERVAL", 0.0)
    with progress.announced("search", "trying", False), progress.counting(False) as tell:
        tell(1200, 3000, "a trial")
    assert heard.getvalue() == "search: trying\nsearch: 0:00 1,200 of 3,000, a trial\n"


def test_a_terminal_sees_the_announcement_before_the_line_that_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    terminal = Console(file=written, force_terminal=True, width=80)
    monkeypatch.setattr(progress, "on_stderr", lambda quiet=False: terminal)
    with progress.announced("assess", "about 10 s", False), progress.working(False) as tell:
        tell("softmax: contract")
    assert "assess: about 10 s" in written.getvalue()


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("boundary recall delta n=8:40 --scan 5 --draws 20", "boundary: P across the range"),
        ("boundary recall delta n=8:40 --scan 5 --draws 20 --over m=2:12:2", "boundary: a boundary for each"),
        ("readers recall delta n=16", "readers: the fixed reader, its best threshold"),
    ],
)
def test_slow_questions_say_what_they_do_before_they_answer(
    words: str, first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(words.split()) == 0
    shown = capsys.readouterr()
    assert shown.err.startswith(first)
    assert first not in shown.out
    assert typed([*words.split(), "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert json.loads(shown.out)["mechanism"] == "delta"


def test_a_boundary_tells_of_every_value_it_looks_at() -> None:
    told: list[tuple[int, int, str]] = []
    found = sx.boundary(
        "recall", "delta", n="8:40", scan=5, sampling=Sampling(20), tell=lambda *each: told.append(each)
    )
    assert [done for done, _, _ in told[:5]] == [0, 1, 2, 3, 4]
    assert {total for _, total, _ in told} == {5}
    assert told[0][2] == "looking at n=8"
    assert all("narrowing down at n=" in what for _, _, what in told[5:])
    assert bool(found.crossings) == (len(told) > 5)


def test_what_is_left_is_told_once_it_can_be_guessed(heard: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PLAIN_INTERVAL", 0.0)
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with progress.counting(False) as tell:
        now = 30.0
        tell(10, 40, "a value")
    assert heard.getvalue() == "separatrix: 0:30 10 of 40, about 1:30 left, a value\n"


def test_draws_are_told_after_a_second_and_each_mechanism_begins_anew(
    heard: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PLAIN_INTERVAL", 0.0)
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with progress.announced("verdict", "P", False), progress.drawing(False) as told:
        told(1, 400)
        assert heard.getvalue() == ""
        now = 45.0
        told(12, 400)
        told(400, 400)
        now = 60.0
        told(100, 400)
    assert heard.getvalue().splitlines() == [
        "verdict: P",
        "verdict: 0:45 12 of 400 draws, about 24:15 left",
        "verdict: 0:45 400 of 400 draws",
        "verdict: 1:00 100 of 400 draws, about 0:45 left",
    ]


@pytest.mark.parametrize("mechanism", ["delta", "softmax"])
def test_engines_that_draw_tell_how_far_they_are(mechanism: str) -> None:
    told: list[tuple[int, int]] = []
    sampling = Sampling(50, told=lambda *each: told.append(each))
    sx.verdict("recall", mechanism, n=64, m=4, engine="dense", sampling=sampling)
    assert told[-1] == (50, 50)
    assert told == sorted(told)
    assert sampling == Sampling(50)


def test_a_quick_verdict_is_not_announced(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "ANNOUNCE_AFTER", 60.0)  # other processes may run meanwhile
    for words in ("verdict recall delta n=16 --draws 5", "verdict spike softmax,linear"):
        assert typed(words.split()) == 0
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "words", ["spike softmax n=1234", "spike nowhere:attend", "spike softmax --delta 7", "spike softmax,x"]
)
def test_errors_that_are_known_at_once_come_without_an_announcement(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "ANNOUNCE_AFTER", 0.0)
    with pytest.raises(sx.UsageError):
        typed(["verdict", *words.split()])
    assert capsys.readouterr().err == ""


class Announced(Exception):
    """Raised in place of the work that is announced."""


@pytest.mark.parametrize(
    "words",
    [
        "verdict spike softmax",
        "prove spike softmax",
        "assess softmax",
        "assess softmax --quick",
        "readers spike linear",
        "choose n=64",
        "boundary spike softmax a1=0.5:1.5",
        "boundary spike softmax a1=0.5:1.5 --over n=1e3:1e6:3:log",
    ],
)
def test_announcements_fit_a_line(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def announce(command: str, text: str, quiet: bool) -> None:
        assert command == words.split()[0]
        assert len(f"{command}: {text}") <= 80
        raise Announced

    monkeypatch.setattr(progress, "Announcement", announce)
    with pytest.raises(Announced):
        typed(words.split())
