"""What a program does when a signal stops it: the exit code, and files that are only half written.

Python runs a signal handler between two of its own instructions; a call into torch can take many seconds in
between. `watch_signals` starts a thread that is told of a signal by the system at once. If no handler has run
after `GRACE_SECONDS`, it removes unfinished files and ends the process. Stores and checkpoints are written so
that they survive this.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from tempfile import mkdtemp
from types import FrameType
from typing import Any, NoReturn
from weakref import WeakSet

Handler = Callable[[int, FrameType | None], None]
STOPPING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that stop a program; there is no SIGHUP on Windows."""
GRACE_SECONDS = 1.0
"""Seconds after which a signal that Python has not handled ends the process."""
POLL_SECONDS = 0.02
"""How often the watching thread looks whether a handler has run."""
BY_SIGNAL = 128
"""The exit code of a program that a signal stopped is this and the number of the signal: 130 for Ctrl-C."""
SHOW_CURSOR = b"\x1b[?25h"
"""A progress bar hides the cursor of a terminal."""

_handled = False
"""Set by a handler; cleared by the watching thread. No threading.Event, whose lock a second signal, handled
within the handler of the first, would wait for without end."""
_handlers: WeakSet[Any] = WeakSet()
_unfinished: set[Path] = set()
_stopped_by = signal.SIGINT


def stop_handler(handle: Handler) -> Handler:
    """Make a signal handler that notes the signal before it does anything else.

    The watching thread ends the process only for signals that have such a handler.
    """

    @wraps(handle)
    def noting(number: int, frame: FrameType | None) -> None:
        global _handled, _stopped_by
        _stopped_by = signal.Signals(number)
        _handled = True
        handle(number, frame)

    _handlers.add(noting)
    return noting


def stop_signal() -> signal.Signals:
    """Return the signal that stopped the program last; SIGINT where none did."""
    return _stopped_by


def exit_code() -> int:
    """Return the exit code of a program that a signal stopped: 130, 143 for SIGTERM, 129 for SIGHUP."""
    return BY_SIGNAL + stop_signal()


@contextmanager
def unfinished(path: Path) -> Iterator[Path]:
    """Mark a file or folder as one to be removed if the process is ended meanwhile."""
    _unfinished.add(path)
    try:
        yield path
    finally:
        _unfinished.discard(path)


@contextmanager
def temporary_folder(prefix: str = "separatrix-", parent: Path | None = None) -> Iterator[Path]:
    """Make a folder that is removed at the end of the block, or when the process is ended before."""
    with unfinished(Path(mkdtemp(prefix=prefix, dir=parent))) as folder:
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def remove_unfinished() -> None:
    """Remove everything that is marked as unfinished."""
    for path in list(_unfinished):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()


def exit_now(number: int) -> NoReturn:
    """End the process at once, whatever its main thread does; unfinished files are removed."""
    with suppress(Exception):
        remove_unfinished()
    with suppress(OSError):
        if os.isatty(2):
            os.write(2, SHOW_CURSOR)
        if number == signal.SIGINT:
            os.write(2, b"separatrix: interrupted\n")
    os._exit(BY_SIGNAL + number)


def watch_signals() -> None:
    """End the process when a `stop_handler` does not get to run within the grace period.

    Called when a program begins; has no effect outside the main thread.
    """
    global _stopped_by
    _stopped_by = signal.SIGINT
    if threading.current_thread() is not threading.main_thread() or sys.platform == "win32":
        return
    before = signal.set_wakeup_fd(-1)
    if before != -1:  # a thread, or an event loop, watches already
        signal.set_wakeup_fd(before, warn_on_full_buffer=False)
        return
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(ours, theirs), name="signals", daemon=True).start()


def _watch(ours: socket.socket, theirs: socket.socket) -> None:
    global _handled
    # `theirs` is an argument to keep it open: the system writes the number of each signal to it.
    while numbers := ours.recv(1):
        number = numbers[0]
        if number not in STOPPING or signal.getsignal(number) not in _handlers:
            continue
        end = time.monotonic() + GRACE_SECONDS
        while not _handled:
            if time.monotonic() > end:
                exit_now(number)
            time.sleep(POLL_SECONDS)
        _handled = False
