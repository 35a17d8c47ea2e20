"""Run a command in a child process, so that a mechanism that kills its process is reported.

A user's mechanism may call os._exit, crash in compiled code, run out of memory or never return. The process
forks before large packages are imported, which takes about a millisecond. The child runs the command and
sends lines of JSON over a pipe: its current step, the partial answer, and finally its exit code. The parent
waits, forwards signals, and reports how the child died if it did not send an exit code.

With --json, standard output is reserved for the answer: descriptor 1 of the child is stderr, so that output
of compiled code or os.write(1, ...) does not mix with the answer.
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
    ("assess", "atlas", "bench", "boundary", "choose", "map", "prove", "readers", "scaling", "search", "verdict")
)
"""Commands that call mechanisms in the process of the command."""
PATIENT = frozenset(("atlas", "search"))
"""Commands that shut down their own workers or logs; they are not killed after GRACE."""
GRACE = 3.0
"""Seconds between a signal and the kill of a command that has not ended."""
POLL = 0.2
FOUND = 1
"""Exit code for a broken mechanism."""
CAUSE = "HOW-THE-PROCESS-DIED"
"""Placeholder for the cause of death in answers prepared before a dangerous step."""
OWN = re.compile(r"(?:^|,)([^=:,]+:[A-Za-z_][\w.]*)(?=[:,]|$)")
"""Matches a user's mechanism among the words of a command, as in mine.py:attend."""

_channel: int | None = None
"""Descriptor of the pipe to the parent; None in an unsupervised process."""


@dataclass
class ChildState:
    """The last state that the child reported."""

    step: str = ""
    seconds: float | None = None
    """Time limit of the step; None for no limit."""
    since: float = field(default_factory=time.monotonic)
    """Start of the step (monotonic clock)."""
    if_interrupted: dict[str, Any] = field(default_factory=dict)
    """The partial answer and the file to write if the command is interrupted."""
    if_dead: dict[str, Any] = field(default_factory=dict)
    """The same, containing CAUSE, for the case that the process dies in this step."""
    code: int | None = None
    """The exit code, once the command has ended."""

    def update(self, line: bytes) -> None:
        """Update the state from a line of the pipe.

        Malformed lines are ignored, since user code may have written them.
        """
        try:
            fields = json.loads(line)
            for name in fields.keys() & {"step", "seconds", "if_interrupted", "if_dead", "code"}:
                setattr(self, name, fields[name])
        except (ValueError, AttributeError):
            return
        self.since = time.monotonic()

    @property
    def is_late(self) -> bool:
        """Whether the step exceeds its time limit."""
        return self.seconds is not None and time.monotonic() - self.since > self.seconds


def can_supervise(words: Sequence[str]) -> bool:
    """Whether this command runs in a child and a fork is safe (no torch, no threads)."""
    alone = threading.active_count() == 1 and "torch" not in sys.modules
    return bool(words) and words[0] in COMMANDS and hasattr(os, "fork") and alone


def start(words: Sequence[str]) -> None:
    """Fork. The child returns and continues with the command; the parent exits with the child's exit code."""
    reports, channel = os.pipe()
    parent_lives, parent_end = os.pipe()  # never written: it closes when the parent ends, however it does
    sys.stdout.flush()
    # Blocked until both processes have their handlers; a signal in between would end only one of them.
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
    if as_json:  # otherwise --certificate /dev/stdout must keep working
        os.dup2(2, 1)
    # Line buffering, so that no output is lost if the process dies.
    sys.stdout = open(answers, "w", 1, encoding=sys.stdout.encoding, errors="backslashreplace")  # noqa: PTH123, SIM115
    for number in STOPPING:
        handler = signal.getsignal(number)
        if callable(handler):
            signal.signal(number, _once(handler))
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    threading.Thread(target=leave_with, args=(parent_lives,), daemon=True).start()


def _once(handler: Any) -> Any:
    """Wrap a handler so that it runs for the first signal only.

    Ctrl-C reaches both processes, and the parent forwards it as well. On a second Ctrl-C the parent kills
    this process.
    """

    @stop_handler
    def handle(number: int, frame: FrameType | None) -> None:
        for stopping in STOPPING:
            signal.signal(stopping, signal.SIG_IGN)
        handler(number, frame)

    return handle


def is_child() -> bool:
    """Whether this process is a supervised child."""
    return _channel is not None


def report(**fields: Any) -> None:
    """Send fields of `ChildState` to the parent, if there is one."""
    if _channel is None:
        return
    line = json.dumps(fields).encode() + b"\n"
    with suppress(OSError):
        while line:
            line = line[os.write(_channel, line) :]


def _supervise(child: int, reports: int, words: Sequence[str], mask: set[Any]) -> NoReturn:
    """Wait for the child; exit with its code, or report how it died."""
    signals: list[tuple[int, float]] = []

    def pass_on(number: int, _: FrameType | None) -> None:
        signals.append((number, time.monotonic()))
        with suppress(ProcessLookupError):
            os.kill(child, number if len(signals) == 1 else signal.SIGKILL)

    for number in STOPPING:
        if callable(signal.getsignal(number)):
            signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    state, buffer, status, late = ChildState(), b"", None, False
    while status is None:
        ready, _, _ = select.select([reports], [], [], POLL)
        part = os.read(reports, 1 << 16) if ready else b""
        *lines, buffer = (buffer + part).split(b"\n")
        for line in lines:
            state.update(line)
        if not part:
            # An empty read means that the child closed the pipe, so it is ending; a timeout means nothing.
            process, exit_status = os.waitpid(child, 0 if ready else os.WNOHANG)
            status = exit_status if process else None
        patient = bool(words) and words[0] in PATIENT
        overdue = signals and not patient and time.monotonic() - signals[0][1] > GRACE
        late = late or (state.is_late and state.code is None and not signals)
        if status is None and (overdue or late):
            os.kill(child, signal.SIGKILL)
    _end(state, status, signals[0][0] if signals else None, late, words)


def _end(state: ChildState, status: int, signal_number: int | None, late: bool, words: Sequence[str]) -> NoReturn:
    code = os.waitstatus_to_exitcode(status)
    if state.code is not None:
        sys.exit(state.code)
    if -code == signal.SIGPIPE:
        streams.exit_by_broken_pipe()
    if signal_number is not None:
        _show(state.if_interrupted, "")
        if signal_number == signal.SIGINT and code < 0:  # a child that exited by itself has printed this
            print("separatrix: interrupted", file=sys.stderr, flush=True)
        sys.exit(BY_SIGNAL + signal_number)
    if -code in STOPPING:
        # Somebody stopped the child alone; the shell should see the same signal.
        signal.signal(-code, signal.SIG_DFL)
        signal.raise_signal(-code)
    cause, remedy = _cause(code, state.seconds if late else None)
    user_mechanisms = ", ".join(name for word in words for name in OWN.findall(word))
    location = state.step or " ".join(filter(None, (words[0], user_mechanisms)))
    _show(state.if_dead, cause)
    print(f"separatrix: {location}: it {cause}{remedy}", file=sys.stderr, flush=True)
    sys.exit(FOUND)


def _cause(code: int, seconds: float | None) -> tuple[str, str]:
    """Return how the child died and a remedy, as text that needs no escaping in JSON or HTML."""
    if seconds is not None:
        return f"took longer than {seconds:g} s", "; a larger --timeout waits longer"
    if code >= 0:
        return f"ended the process with exit status {code}", "; does your code call os._exit?"
    name = signal.Signals(-code).name if -code in {*signal.Signals} else f"signal {-code}"
    if name == "SIGKILL":
        return f"was killed by {name}", ", as the system does when memory runs out"
    return f"crashed with {name}", "; PYTHONFAULTHANDLER=1 shows the line"


def _show(answer_parts: dict[str, Any], cause: str) -> None:
    """Print the answer prepared by the child and write its file."""
    answer, content, path = (str(answer_parts.get(name) or "") for name in ("answer", "file", "path"))
    if path:
        from separatrix.core.files.writing import write_whole

        write_whole(Path(path), content.replace(CAUSE, cause).encode())
    sys.stdout.write(answer.replace(CAUSE, cause))
    sys.stdout.flush()
