"""A sweep from Python: `sx.sweep("plan.toml", store="sqlite:///results.db")`."""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType

from separatrix.core.interrupts import STOPPING, stop_handler
from separatrix.core.parameters import UsageError, nearest
from separatrix.sweeps.executors import Executor
from separatrix.sweeps.local import LocalExecutor
from separatrix.sweeps.plan import Plan, load_plan
from separatrix.sweeps.progress import Progress, Tell
from separatrix.sweeps.run import run
from separatrix.sweeps.store import DEFAULT, Address, open_store
from separatrix.sweeps.work import Planned

SHIPPED = Path(__file__).parent / "plans"
MOST_WORKERS = 1024
GRACE_SECONDS = 1.5
"""Seconds that workers have to finish after SIGTERM or SIGHUP; of Ctrl-C there can be a second one."""
STORE_TIMEOUT = 60.0
"""Seconds without an answer after which a store is given up."""


def shipped_plans() -> dict[str, Path]:
    """The plans that come with separatrix, by name."""
    return {file.stem: file for file in sorted(SHIPPED.glob("*.toml"))}


def find_plan(name: str, allow: Collection[str] = (), device: str | None = None) -> Plan:
    """A plan from a file, or one that comes with separatrix, all of whose cells are known before it runs."""
    found = plan_named(name, allow, device)
    if found.stages:
        raise UsageError(
            f"the learning rates of {name} are chosen by pilot runs; write: separatrix learn --plan {name}"
        )
    return found


def plan_named(name: str, allow: Collection[str] = (), device: str | None = None) -> Plan:
    """A plan from a file, or one that comes with separatrix."""
    file, shipped = Path(name), shipped_plans()
    is_there = file.exists() and not (name in shipped and file.is_dir())
    if is_there or name in shipped:
        return load_plan(file if is_there else shipped[name], allow, device)
    near, known = nearest(name, list(shipped)), ", ".join(shipped)
    raise UsageError(f"there is no plan {name}{near}; give a TOML file, or one of: {known}")


def executor_for(
    workers: int | None, scheduler: str | None, cell_timeout: float | None = None, threads: int = 1
) -> Executor:
    """Worker processes here, or a Dask cluster.

    Unless a number is given there are as many as have cores for `threads` threads each.
    """
    if cell_timeout is not None:
        _require_limit(cell_timeout)
    if scheduler is not None:
        if workers is not None:
            raise UsageError("a cluster has its own workers; give `workers` or `scheduler`, not both")
        from separatrix.sweeps.cluster import DaskExecutor

        return DaskExecutor(scheduler, cell_timeout)
    count = max(1, cores() // threads) if workers is None else workers
    if not 1 <= count <= MOST_WORKERS:
        raise UsageError(f"workers={count} is out of range; it must be 1 to {MOST_WORKERS}")
    return LocalExecutor(count, cell_timeout=cell_timeout)


def _require_limit(seconds: float) -> None:
    if not 0 < seconds < math.inf:
        raise UsageError(f"a limit of {seconds:g} s is none; it must be more than 0 seconds")


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if "sched_getaffinity" in dir(os) else os.cpu_count() or 1


def sweep(
    plan: str | Path | Planned,
    store: str | Address = DEFAULT,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    retry_failed: bool = False,
    cell_timeout: float | None = None,
    store_timeout: float = STORE_TIMEOUT,
    allow: Collection[str] = (),
    device: str | None = None,
    tell: Tell = lambda _: None,
    hear: Callable[[], None] = lambda: None,
) -> Progress:
    """Compute every cell of a plan that is not in the store yet, and keep it: `sx.sweep("plan.toml")`.

    A script that calls this needs `if __name__ == "__main__":` around it, since workers import it.

    **Arguments:**

    - `plan`: a TOML file, the name of one that comes with separatrix, a plan that was read, or a
      `WorkList`.
    - `store`: where cells are kept: a URL or a file.
    - `workers`, `scheduler`: how many processes here, or the address of a Dask cluster.
    - `retry_failed`: also compute cells that failed before.
    - `cell_timeout`: seconds after which a cell has failed.
    - `store_timeout`: seconds without an answer of the store after which the sweep ends.
    - `allow`: mechanisms of your own, `module:attribute`, that the plan may load.
    - `device`: where training runs are made, as torch names it; no test here is run on any but `cpu`.
    - `tell`, `hear`: called with the progress, and when a signal asks to stop.
    """
    read = find_plan(str(plan), allow, device) if isinstance(plan, str | Path) else plan
    _require_limit(store_timeout)
    with (
        stop_on_signals(hear) as stop,  # also while workers start: half a worker ends with a traceback
        closing(executor_for(workers, scheduler, cell_timeout, read.threads)) as executor,
    ):
        opened = open_store(store, create=True, check=True, patience=store_timeout)
        return run(read, opened, executor, retry_failed=retry_failed, tell=tell, stop=stop)


@contextmanager
def stop_on_signals(hear: Callable[[], None] = lambda: None) -> Iterator[Callable[[], bool]]:
    """Yield a function that says whether to stop; `hear` is told of the first signal, the second interrupts.

    So Ctrl-C once finishes the cells that are being computed; twice, it drops them. SIGTERM and SIGHUP come
    once, from a program that soon sends SIGKILL: they drop the cells after `GRACE_SECONDS`. What was stored
    stays, and training goes on from its last checkpoint.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return

    timers: list[threading.Timer] = []

    @stop_handler
    def handle(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        if number != signal.SIGINT:
            timers.append(threading.Timer(GRACE_SECONDS, os.kill, (os.getpid(), number)))
            timers[0].daemon = True
            timers[0].start()
        hear()

    before = {number: signal.signal(number, handle) for number in STOPPING}
    try:
        yield asked.is_set
    finally:
        for timer in timers:
            timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
