"""Long commands say what they do, about how long it takes, and how far they are; quick ones say nothing."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from separatrix.cli import progress


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What is said where nobody looks at a terminal."""
    written = io.StringIO()
    monkeypatch.setattr(
        progress, "on_stderr", lambda quiet=False: Console(file=written, quiet=quiet, width=80)
    )
    return written


def test_work_is_announced_once_and_plain_lines_follow_now_and_then(
    heard: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    with progress.announced("assess", "the contract, about 10 s", False), progress.working(False) as tell:
        assert heard.getvalue() == ""
        tell("softmax: contract")
        tell("softmax: [cost]")
        assert heard.getvalue() == "assess: the contract, about 10 s\n"
        monkeypatch.setattr(progress, "QUIET", 0.0)
        tell("softmax: [cost]")
    assert heard.getvalue().splitlines()[1:] == ["assess: 0:00 softmax: [cost]"]


def test_what_takes_a_second_to_begin_is_announced(
    heard: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SOON", 0.01)
    with progress.announced("atlas", "minutes", False):
        deadline = time.monotonic() + 10
        while not heard.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert heard.getvalue() == "atlas: minutes\n"


def test_what_is_refused_at_once_is_not_announced(heard: io.StringIO) -> None:
    with pytest.raises(ValueError, match="no"), progress.announced("atlas", "minutes", False):
        raise ValueError("no")
    assert heard.getvalue() == ""


def test_nothing_is_said_with_json(heard: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "QUIET", 0.0)
    with progress.announced("search", "trying", True), progress.counting(True) as tell:
        tell(1, 2, "a trial")
    assert heard.getvalue() == ""


def test_counts_are_told_plainly(heard: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "QUIET", 0.0)
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
