"""Standard output and error that can always be written to, and what happens when nobody reads them."""

from __future__ import annotations

import io
import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn, TextIO


def prepare() -> None:
    """Let closed streams lead nowhere, and spell characters that a stream cannot show.

    A file opened later would otherwise get the number of a closed stream, and be printed into.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def drop_output() -> None:
    """Let what is still to be written go nowhere, so that Python does not try again when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    with suppress(OSError):  # not every stream has a number
        os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def die_of_a_broken_pipe() -> NoReturn:
    """End as other programs do when their reader has read enough: `separatrix list claims | head -1`."""
    drop_output()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.raise_signal(signal.SIGPIPE)
    raise SystemExit(2)


_ANSWERS: list[TextIO] = []
"""Standard output, while it is kept for the one answer of a command."""


def keep_stdout(wanted: bool) -> bool:
    """Keep standard output for the answer, if wanted: what else is printed, also by a user's own code, goes
    to standard error."""
    if wanted:
        give_stdout_back()
        _ANSWERS.append(sys.stdout)
        sys.stdout = sys.stderr
    return wanted


def give_stdout_back() -> None:
    """Let all that is printed go to standard output again, unless that was changed since."""
    while _ANSWERS:
        kept = _ANSWERS.pop()
        sys.stdout = kept if sys.stdout is sys.stderr else sys.stdout


def answer_to() -> TextIO:
    """Where the answer goes."""
    return _ANSWERS[0] if _ANSWERS else sys.stdout


_AT_END: list[str] = []


def say_at_end(line: str) -> None:
    """Keep a line for stderr until the command has ended well: an error is told alone."""
    _AT_END.append(line)


def kept_lines() -> list[str]:
    """The lines that were kept, each once."""
    found = list(_AT_END)
    _AT_END.clear()
    return found
