"""Sweeps from Python: `sx.sweep("plan.toml", store="sqlite:///results.db")`."""

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
from separatrix.sweeps.executors import Executor, LocalExecutor
from separatrix.sweeps.plan import Plan, load_plan
from separatrix.sweeps.progress import Progress, Tell
from separatrix.sweeps.run import run
from separatrix.sweeps.store import DEFAULT, Address, open_store
from separatrix.sweeps.work import WorkPlan

SHIPPED_PLANS = Path(__file__).parent / "plans"
MAX_WORKERS = 1024
GRACE_SECONDS = 1.5
"""Seconds that workers have to finish after SIGTERM or SIGHUP, which come once; Ctrl-C can be repeated."""
STORE_TIMEOUT = 60.0
"""Seconds after which a store that does not respond is given up."""


def shipped_plans() -> dict[str, Path]:
    """Return the plans that come with separatrix, by name."""
    return {file.stem: file for file in sorted(SHIPPED_PLANS.glob("*.toml"))}


def find_plan(name: str, allow: Collection[str] = (), device: str | None = None) -> Plan:
    """Return a plan from a file or a shipped one, all of whose cells are known before it runs."""
    plan = plan_named(name, allow, device)
    if plan.has_stages:
        raise UsageError(f"pilot runs choose the learning rates of {name}; write: separatrix learn --plan {name}")
    return plan


def plan_named(name: str, allow: Collection[str] = (), device: str | None = None) -> Plan:
    """Return a plan from a file, or one that comes with separatrix."""
    file, shipped_files = Path(name), shipped_plans()
    is_file = file.exists() and not (name in shipped_files and file.is_dir())
    if is_file or name in shipped_files:
        return load_plan(file if is_file else shipped_files[name], allow, device)
    raise UsageError(
        f"there is no plan {name}{nearest(name, list(shipped_files))}; give a TOML file, or one of: "
        f"{', '.join(shipped_files)}"
    )


def executor_for(
    workers: int | None, scheduler: str | None, cell_timeout: float | None = None, threads: int = 1
) -> Executor:
    """Return worker processes on this machine, or a Dask cluster.

    The default number of workers leaves a core for each of the `threads` of every worker.
    """
    if cell_timeout is not None:
        _require_limit(cell_timeout)
    if scheduler is not None:
        if workers is not None:
            raise UsageError("a cluster has its own workers; give `workers` or `scheduler`, not both")
        from separatrix.sweeps.cluster import DaskExecutor

        return DaskExecutor(scheduler, cell_timeout)
    count = max(1, count_cores() // threads) if workers is None else workers
    if not 1 <= count <= MAX_WORKERS:
        raise UsageError(f"workers={count} is out of range; it must be 1 to {MAX_WORKERS}")
    return LocalExecutor(count, cell_timeout=cell_timeout)


def _require_limit(seconds: float) -> None:
    if not 0 < seconds < math.inf:
        raise UsageError(f"{seconds:g} s is not a time limit; it must be more than 0 seconds")


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    # A container or `taskset` may allow fewer cores than the machine has.
    return len(os.sched_getaffinity(0)) if "sched_getaffinity" in dir(os) else os.cpu_count() or 1


def sweep(
    plan: str | Path | WorkPlan,
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
    """Compute every cell of a plan that is not in the store yet, and store it: `sx.sweep("plan.toml")`.

    A script that calls this needs `if __name__ == "__main__":` around it, since workers import it.

    **Arguments:**

    - `plan`: a TOML file, the name of a plan that comes with separatrix, a `Plan`, or a `WorkList`.
    - `store`: the URL or the file of the store.
    - `workers`, `scheduler`: the number of processes here, or the address of a Dask cluster.
    - `retry_failed`: also compute cells that failed before.
    - `cell_timeout`: seconds after which a cell has failed.
    - `store_timeout`: seconds after which the sweep gives up a store that does not respond.
    - `allow`: mechanisms of your own, `module:attribute`, that the plan may load.
    - `device`: the device of training runs, as torch names it; tests run on `cpu` only.
    - `tell`, `hear`: called with the progress, and when a signal requests a stop.
    """
    work = find_plan(str(plan), allow, device) if isinstance(plan, str | Path) else plan
    _require_limit(store_timeout)
    with (
        # Signals are handled before workers start: one that is interrupted then ends with a traceback.
        stop_on_signals(hear) as stop,
        closing(executor_for(workers, scheduler, cell_timeout, work.threads)) as executor,
    ):
        target = open_store(store, create=True, check=True, timeout=store_timeout)
        return run(work, target, executor, retry_failed=retry_failed, tell=tell, stop=stop)


@contextmanager
def stop_on_signals(hear: Callable[[], None] = lambda: None) -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether to stop; the first signal calls `hear`, the second interrupts.

    One Ctrl-C thus finishes the cells that are being computed, and a second one drops them. SIGTERM and
    SIGHUP come once, from a program that soon sends SIGKILL: they drop the cells after `GRACE_SECONDS`.
    Stored results are kept, and training continues from its last checkpoint.
    """
    stop_request = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop_request.is_set
        return
    timers: list[threading.Timer] = []

    @stop_handler
    def handle(number: int, frame: FrameType | None) -> None:
        if stop_request.is_set():
            raise KeyboardInterrupt
        stop_request.set()
        if number != signal.SIGINT:
            timers.append(threading.Timer(GRACE_SECONDS, os.kill, (os.getpid(), number)))
            timers[0].daemon = True
            timers[0].start()
        hear()

    before = {number: signal.signal(number, handle) for number in STOPPING}
    try:
        yield stop_request.is_set
    finally:
        for timer in timers:
            timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
