"""Starting child processes that import nothing from the current folder and ignore stop signals.

Python puts the current folder first on the path for `python -c` and `python -m`, which multiprocessing uses
to start its helpers: a queue.py there would shadow Python's own module.
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
    """Keep the current folder off the path of processes started within the block, and of their children."""
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
    """Block SIGINT, SIGTERM and SIGHUP in processes started within the block; the parent ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        resource_tracker.ensure_running()  # starting it unblocks some signals
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def process_context(preload_module: str) -> BaseContext:
    """Return the multiprocessing context for worker processes.

    If the platform supports it, workers are forked from a server that has imported `preload_module`, so that
    they start quickly and share memory.
    """
    import multiprocessing
    from multiprocessing import forkserver

    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([preload_module])
    with safe_path(), signals_held_back():
        forkserver.ensure_running()
    return context


def start_process(start: Callable[[], Started], preload_module: str) -> Started:
    """Call `start`, which starts a process; if the fork server was killed, restart it and try again.

    Raise a SeparatrixError if that fails repeatedly.
    """
    for attempt in range(MAX_STARTS):
        try:
            with safe_path():
                return start()
        except (EOFError, OSError) as error:
            reason = one_line(error) if str(error) else type(error).__name__
            # The first retry is immediate: a killed fork server is gone, and a new one starts at once.
            time.sleep(0.1 * attempt)
            process_context(preload_module)
    raise SeparatrixError(
        f"no worker process can be started ({reason}): the process that workers are forked from is killed "
        "again and again; see whether there is enough memory, then give the same command again"
    )


def follow_parent() -> None:
    """Initialise a worker process: ignore stop signals, and exit with the parent."""
    import multiprocessing
    import threading

    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=leave_with, args=(parent.sentinel,), daemon=True).start()


def leave_with(sentinel: int) -> None:
    """Wait until the process behind a file descriptor ends, and end this one."""
    from multiprocessing import connection

    connection.wait([sentinel])
    os._exit(1)
