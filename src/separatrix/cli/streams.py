"""Make standard output and error safe to write to, and handle closed pipes."""

from __future__ import annotations

import io
import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn, TextIO


def prepare() -> None:
    """Redirect closed streams to the null device, and escape characters that a stream cannot encode.

    Otherwise a file opened later could get the descriptor of a closed stream, and output would go into it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # `open` takes the lowest free descriptor, which is `number`; children need it as well.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def drop_output() -> None:
    """Discard buffered output, so that Python does not try to write it again at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    with suppress(OSError):  # not every stream has a file descriptor
        os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def exit_by_broken_pipe() -> NoReturn:
    """End by SIGPIPE, as other programs do in `separatrix list claims | head -1`."""
    drop_output()
    # Python ignores SIGPIPE from its start; with the default action the shell sees the usual status 141.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.raise_signal(signal.SIGPIPE)
    raise SystemExit(2)


_RESERVED: list[TextIO] = []
"""The original standard output while it is reserved for the JSON answer."""


def reserve_stdout(reserve: bool) -> bool:
    """Reserve standard output for the answer; all other output, also of user code, goes to stderr."""
    if reserve:
        restore_stdout()
        _RESERVED.append(sys.stdout)
        sys.stdout = sys.stderr
    return reserve


def restore_stdout() -> None:
    """Restore standard output, unless it was replaced in the meantime."""
    while _RESERVED:
        stdout = _RESERVED.pop()
        sys.stdout = stdout if sys.stdout is sys.stderr else sys.stdout


def answer_stream() -> TextIO:
    """Return the stream for the answer."""
    return _RESERVED[0] if _RESERVED else sys.stdout


def notify(message: str) -> None:
    """Print a line of the program itself on stderr."""
    print(f"separatrix: {message}", file=sys.stderr, flush=True)


_QUEUED: list[str] = []


def queue_line(line: str) -> None:
    """Queue a line for stderr; it is printed if the command succeeds, so that an error stands alone."""
    _QUEUED.append(line)


def take_queued_lines() -> list[str]:
    """Return the queued lines and clear the queue."""
    lines = list(_QUEUED)
    _QUEUED.clear()
    return lines
