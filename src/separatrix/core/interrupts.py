"""Termination by signals: exit codes, and removal of unfinished files.

Python runs a signal handler between two of its own instructions, and a call into torch can take many seconds
in between. `watch_signals` starts a thread that the system notifies of a signal. If no handler has run after
`GRACE_SECONDS`, it removes unfinished files and ends the process. Stores and checkpoints are written so that
they survive this.
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
from typing import NoReturn

Handler = Callable[[int, FrameType | None], None]
STOPPING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that stop a program; Windows has no SIGHUP."""
GRACE_SECONDS = 1.0
"""Seconds after which a signal that Python has not handled ends the process."""
POLL_SECONDS = 0.02
"""The polling interval of the watching thread."""
BY_SIGNAL = 128
"""Added to the number of a signal to give the exit code: 130 for Ctrl-C."""
SHOW_CURSOR = b"\x1b[?25h"
"""A progress bar hides the cursor of a terminal."""

_handled = False
"""Set by a handler, cleared by the watching thread. Not a threading.Event: a second signal, handled within
the handler of the first, would wait forever for its lock."""
_unfinished: set[Path] = set()
_stopped_by = signal.SIGINT


def stop_handler(handle: Handler) -> Handler:
    """Wrap a signal handler so that it records the signal first.

    The watching thread ends the process only for signals with such a handler.
    """

    @wraps(handle)
    def noting(number: int, frame: FrameType | None) -> None:
        global _handled, _stopped_by
        _stopped_by = signal.Signals(number)
        _handled = True
        handle(number, frame)

    # An attribute, not an entry in a WeakSet: Python ignores an interrupt that arrives within the callback
    # of a weak reference.
    noting.records_signal = True  # type: ignore[attr-defined]
    return noting


def stop_signal() -> signal.Signals:
    """Return the signal that stopped the program last, or SIGINT."""
    return _stopped_by


def exit_code() -> int:
    """Return the exit code of a program that a signal stopped: 130, 143 for SIGTERM, 129 for SIGHUP."""
    return BY_SIGNAL + stop_signal()


@contextmanager
def mark_unfinished(path: Path) -> Iterator[Path]:
    """Mark a file or folder for removal if the process ends within the block."""
    _unfinished.add(path)
    try:
        yield path
    finally:
        _unfinished.discard(path)


@contextmanager
def temporary_folder(prefix: str = "separatrix-", parent: Path | None = None) -> Iterator[Path]:
    """Create a folder that is removed at the end of the block, or if the process ends before."""
    with mark_unfinished(Path(mkdtemp(prefix=prefix, dir=parent))) as folder:
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def remove_unfinished() -> None:
    """Remove all files and folders marked as unfinished."""
    for path in list(_unfinished):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()


def exit_now(number: int) -> NoReturn:
    """End the process immediately and remove unfinished files."""
    with suppress(Exception):
        remove_unfinished()
    with suppress(OSError):
        if os.isatty(2):
            os.write(2, SHOW_CURSOR)
        if number == signal.SIGINT:
            os.write(2, b"separatrix: interrupted\n")
    os._exit(BY_SIGNAL + number)


def watch_signals() -> None:
    """End the process if a `stop_handler` does not run within the grace period.

    Call it at program start; it has no effect outside the main thread.
    """
    global _stopped_by
    _stopped_by = signal.SIGINT
    if threading.current_thread() is not threading.main_thread() or sys.platform == "win32":
        return
    before = signal.set_wakeup_fd(-1)
    if before != -1:  # a thread or an event loop is already watching
        signal.set_wakeup_fd(before, warn_on_full_buffer=False)
        return
    read_end, write_end = socket.socketpair()
    write_end.setblocking(False)
    signal.set_wakeup_fd(write_end.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(read_end, write_end), name="signals", daemon=True).start()


def _watch(read_end: socket.socket, write_end: socket.socket) -> None:
    global _handled
    # `write_end` is an argument to keep it open: the system writes the number of each signal to it.
    while numbers := read_end.recv(1):
        number = numbers[0]
        if number not in STOPPING or not getattr(signal.getsignal(number), "records_signal", False):
            continue
        end = time.monotonic() + GRACE_SECONDS
        while not _handled:
            if time.monotonic() > end:
                exit_now(number)
            time.sleep(POLL_SECONDS)
        _handled = False
