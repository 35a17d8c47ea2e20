"""Run a command in a child process, so that a mechanism that kills its process does not end in silence.

A mechanism of the user's own may call os._exit, crash in compiled code, run out of memory or loop for ever.
The process is forked before anything heavy is imported, which costs a millisecond. The child runs the command
and reports over a pipe, as lines of JSON: the step it is at, the answer as far as it is known, and its exit
code as the last thing. The parent waits, passes signals on, and says how the child died if it did not report
an exit code.

With --json standard output belongs to the answer: file descriptor 1 of the child is standard error, so that
what compiled code or os.write(1, ...) prints is not among the answer.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from separatrix.cli import streams
from separatrix.core.interrupts import BY_SIGNAL, STOPPING, stop_handler
from separatrix.core.startup import leave_with

COMMANDS = frozenset(
    ("assess", "atlas", "bench", "boundary", "choose", "map", "readers", "scaling", "search", "verdict")
)
"""Commands that call mechanisms in their own process."""
PATIENT = frozenset(("atlas", "search"))
"""Commands with processes or logs of their own, which they end in good order: not killed after GRACE."""
GRACE = 3.0
"""Seconds a command has to end after a signal before it is killed."""
POLL = 0.2
FOUND = 1
"""The exit code for a mechanism that is broken."""
CAUSE = "HOW-THE-PROCESS-DIED"
"""Stands for the cause in answers that are prepared in case the process dies in the next step."""
OWN = re.compile(r"(?:^|,)([^=:,]+:[A-Za-z_][\w.]*)(?=[:,]|$)")
"""A mechanism of the user's own among what was typed: mine.py:attend."""

_channel: int | None = None
"""Where the child reports; None in a process that nobody supervises."""


@dataclass
class Report:
    """The state of the child, as it reported it."""

    step: str = ""
    seconds: float | None = None
    """The longest that a step may take; None for no limit."""
    since: float = field(default_factory=time.monotonic)
    """When the step began."""
    known: dict[str, Any] = field(default_factory=dict)
    """The answer as far as it is known, and the file to write: shown if the command is interrupted."""
    if_dead: dict[str, Any] = field(default_factory=dict)
    """The same with CAUSE in it: shown if the process dies in this step."""
    code: int | None = None
    """The exit code, once the command is done."""

    def update(self, line: bytes) -> None:
        """Take a line that the child wrote; the user's code may have written it, so nothing is relied on."""
        try:
            given = json.loads(line)
            for name in given.keys() & {"step", "seconds", "known", "if_dead", "code"}:
                setattr(self, name, given[name])
        except (ValueError, AttributeError):
            return
        self.since = time.monotonic()

    @property
    def is_late(self) -> bool:
        """Whether the step takes longer than it may."""
        return self.seconds is not None and time.monotonic() - self.since > self.seconds


def can_supervise(words: Sequence[str]) -> bool:
    """Whether this command is to run in a child, and a fork is safe: no torch, no threads."""
    alone = threading.active_count() == 1 and "torch" not in sys.modules
    return bool(words) and words[0] in COMMANDS and hasattr(os, "fork") and alone


def start(words: Sequence[str]) -> None:
    """Fork. The child returns, and goes on as if it were the command; the parent ends with its exit code."""
    reports, channel = os.pipe()
    parent_lives, parent_end = os.pipe()
    sys.stdout.flush()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    child = os.fork()
    if child:
        os.close(channel)
        os.close(parent_lives)
        _supervise(child, reports, words, before)
    os.close(reports)
    os.close(parent_end)
    _become_child(channel, parent_lives, before, "--json" in words)


def _become_child(channel: int, parent_lives: int, mask: set[Any], as_json: bool) -> None:
    global _channel
    _channel = channel
    answers = os.dup(1)
    if as_json:  # else /dev/stdout, as in --certificate /dev/stdout, has to stay what it is
        os.dup2(2, 1)
    # Line by line, so that nothing is lost in a buffer if the process dies.
    sys.stdout = open(answers, "w", 1, encoding=sys.stdout.encoding, errors="backslashreplace")  # noqa: PTH123, SIM115
    for number in STOPPING:
        handler = signal.getsignal(number)
        if callable(handler):
            signal.signal(number, _once(handler))
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    threading.Thread(target=leave_with, args=(parent_lives,), daemon=True).start()


def _once(handler: Any) -> Any:
    """A handler for the first signal, after which all are ignored: Ctrl-C reaches both processes, and the
    parent passes it on as well. A second Ctrl-C makes the parent kill this process."""

    @stop_handler
    def handle(number: int, frame: FrameType | None) -> None:
        for stopping in STOPPING:
            signal.signal(stopping, signal.SIG_IGN)
        handler(number, frame)

    return handle


def is_child() -> bool:
    """Whether this process reports to a parent."""
    return _channel is not None


def report(**what: Any) -> None:
    """Report to the parent, if there is one: fields of Report."""
    if _channel is None:
        return
    line = json.dumps(what).encode() + b"\n"
    with suppress(OSError):
        while line:
            line = line[os.write(_channel, line) :]


def _supervise(child: int, reports: int, words: Sequence[str], mask: set[Any]) -> NoReturn:
    """Wait for the child and end as it does, or say how it died."""
    stopped: list[tuple[int, float]] = []

    def pass_on(number: int, _: FrameType | None) -> None:
        stopped.append((number, time.monotonic()))
        with suppress(ProcessLookupError):
            os.kill(child, number if len(stopped) == 1 else signal.SIGKILL)

    for number in STOPPING:
        if callable(signal.getsignal(number)):
            signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    state, buffer, status, late = Report(), b"", None, False
    while status is None:
        ready, _, _ = select.select([reports], [], [], POLL)
        part = os.read(reports, 1 << 16) if ready else b""
        *lines, buffer = (buffer + part).split(b"\n")
        for line in lines:
            state.update(line)
        if not part:
            done, found = os.waitpid(child, 0 if ready else os.WNOHANG)
            status = found if done else None
        patient = bool(words) and words[0] in PATIENT
        overdue = stopped and not patient and time.monotonic() - stopped[0][1] > GRACE
        late = late or (state.is_late and state.code is None and not stopped)
        if status is None and (overdue or late):
            os.kill(child, signal.SIGKILL)
    _end(state, status, stopped[0][0] if stopped else None, late, words)


def _end(state: Report, status: int, stopped: int | None, late: bool, words: Sequence[str]) -> NoReturn:
    code = os.waitstatus_to_exitcode(status)
    if state.code is not None:
        sys.exit(state.code)
    if -code == signal.SIGPIPE:
        streams.die_of_a_broken_pipe()
    if stopped is not None:
        _show(state.known, "")
        if stopped == signal.SIGINT and code < 0:  # a child that ended by itself has said so
            print("separatrix: interrupted", file=sys.stderr, flush=True)
        sys.exit(BY_SIGNAL + stopped)
    if -code in STOPPING:
        signal.signal(-code, signal.SIG_DFL)
        signal.raise_signal(-code)
    what, remedy = _cause(code, state.seconds if late else None)
    own = ", ".join(name for word in words for name in OWN.findall(word))
    where = state.step or " ".join(filter(None, (words[0], own)))
    _show(state.if_dead, what)
    print(f"separatrix: {where}: it {what}{remedy}", file=sys.stderr, flush=True)
    sys.exit(FOUND)


def _cause(code: int, seconds: float | None) -> tuple[str, str]:
    """How the child died, and what to do: plain words, which need no escaping in JSON or HTML."""
    if seconds is not None:
        return f"took longer than {seconds:g} s", "; a larger --timeout waits longer"
    if code >= 0:
        return f"ended the process with exit status {code}", "; does your code call os._exit?"
    name = signal.Signals(-code).name if -code in {*signal.Signals} else f"signal {-code}"
    if name == "SIGKILL":
        return f"was killed by {name}", ", as the system does when memory runs out"
    return f"crashed with {name}", "; PYTHONFAULTHANDLER=1 shows the line"


def _show(prepared: dict[str, Any], cause: str) -> None:
    """Print an answer that the child had prepared, and write its file."""
    answer, content, path = (str(prepared.get(name) or "") for name in ("answer", "file", "path"))
    if path:
        from separatrix.core.files.writing import write_whole

        write_whole(Path(path), content.replace(CAUSE, cause).encode())
    sys.stdout.write(answer.replace(CAUSE, cause))
    sys.stdout.flush()
