"""Overhead of a Dask cluster over the computation."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import dask
from distributed import LocalCluster

from benchmarks._base import Measurement, at_most, require
from separatrix.sweeps.cluster import DaskExecutor
from separatrix.sweeps.dask_setup import settings
from separatrix.sweeps.plan import Plan, read_plan
from separatrix.sweeps.run import run
from separatrix.sweeps.store import CellResult, Store, frame, open_store
from separatrix.sweeps.worker import get_environment

WORKERS = 2
PLAN = """
[[sweep]]
construction = "spike"
mechanisms = ["softmax", "linear"]
engine = "closed"
[sweep.parameters]
a1 = "0.5:1.5:{count}"
n = "1e3:1e12:10:log"
d = 102
m = 12
a0 = 0.01
b = 0.2
c = 0.1
"""


def measure() -> Iterator[Measurement]:
    """Yield the measurements of this file. A small sweep first makes every worker load the code."""
    before, warm, plan = dict(os.environ), read_plan(PLAN.format(count=20)), read_plan(PLAN.format(count=250))
    options = {"n_workers": WORKERS, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        tempfile.TemporaryDirectory() as folder,
        dask.config.set(settings()),
        LocalCluster(host="127.0.0.1", silence_logs="CRITICAL", **options) as cluster,
    ):
        time_sweep(warm, open_store(str(Path(folder) / "warm.db"), create=True), cluster)
        store = open_store(str(Path(folder) / "timed.db"), create=True)
        taken = time_sweep(plan, store, cluster)
        check_against_cells(plan, store)
        computing = float(frame(store)["seconds"].sum()) / WORKERS
    os.environ.clear()  # Dask's nannies set thread variables in this process
    os.environ.update(before)
    overhead = 1000 * (taken - computing) / plan.count
    yield at_most(f"overhead of a Dask cluster, {plan.count:,} exact cells", overhead, "ms/cell", 5.0)


def time_sweep(plan: Plan, store: Store, cluster: LocalCluster) -> float:
    """Return the seconds of a sweep after it is connected, including storage."""
    with closing(DaskExecutor(cluster.scheduler_address)) as executor:
        start = time.perf_counter()
        done = run(plan, store, executor)
        taken = time.perf_counter() - start
    require(done.done == plan.count, "the sweep on a cluster: some cells are missing")
    return taken


def check_against_cells(plan: Plan, store: Store) -> None:
    """Compare every fiftieth cell with a computation in this process."""
    stored = dict(frame(store).select("id", "distinguish").iter_rows())
    for _, cell in list(plan)[::50]:
        ((result,),) = cell.run([cell], get_environment())
        assert isinstance(result, CellResult)
        agrees = stored[cell.id] == result.findings["distinguish"]
        require(agrees, f"the sweep on a cluster at {cell.id}")
