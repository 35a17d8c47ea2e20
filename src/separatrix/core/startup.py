"""Starting other Python processes: they import nothing from the current folder, and leave signals to us.

Python puts the current folder before everything else for `python -c` and `python -m`, which is how
multiprocessing starts its helpers: a queue.py that lies there would be taken for Python's own.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.context import BaseContext
from typing import TypeVar

from separatrix.core.errors import SeparatrixError, one_line
from separatrix.core.interrupts import STOPPING

SAFE_PATH = "PYTHONSAFEPATH"
MAX_STARTS = 3
Started = TypeVar("Started")


@contextmanager
def safe_path() -> Iterator[None]:
    """Processes that are started meanwhile, and those they start, leave the current folder off their path."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before


@contextmanager
def signals_held_back() -> Iterator[None]:
    """Keep what stops a program from processes that are started meanwhile: who started them ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        resource_tracker.ensure_running()  # which lets some of them through again when it starts
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def process_context(preloaded: str) -> BaseContext:
    """How processes are started that work for this one, which ends them.

    Where the system can, they are forked from a server that has imported the module `preloaded`: they start
    at once, and share memory.
    """
    import multiprocessing
    from multiprocessing import forkserver

    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([preloaded])
    with safe_path(), signals_held_back():
        forkserver.ensure_running()
    return context


def start_process(start: Callable[[], Started], preloaded: str) -> Started:
    """Call `start`, which starts a process; where its server was killed, start the server again and repeat.

    Raises a SeparatrixError where that is of no use.
    """
    for attempt in range(MAX_STARTS):
        try:
            with safe_path():
                return start()
        except (EOFError, OSError) as error:
            reason = one_line(error) if str(error) else type(error).__name__
            time.sleep(0.1 * attempt)
            process_context(preloaded)
    raise SeparatrixError(
        f"no worker process can be started ({reason}): the process that workers are forked from is killed "
        "again and again; see whether there is enough memory, then give the same command again"
    )


def follow_parent() -> None:
    """What a process does first that works for another: leave signals to that one, and not outlive it."""
    import multiprocessing
    import threading

    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=leave_with, args=(parent.sentinel,), daemon=True).start()


def leave_with(sentinel: int) -> None:
    """Wait until the process behind a file descriptor is gone, and end this one."""
    from multiprocessing import connection

    connection.wait([sentinel])
    os._exit(1)
