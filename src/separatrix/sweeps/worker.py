"""The part of a sweep that runs in worker processes: computing a batch for a limited time."""

from __future__ import annotations

import platform
import threading
import time
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version

from separatrix.core.parameters import SeparatrixError
from separatrix.core.tensors import torch
from separatrix.sweeps.store import Answer, CellResult, CellStatus, Checkpoint, Environment
from separatrix.sweeps.work import BatchResults, Checkpoints, WorkItem, make_result

PACKAGES = ("separatrix", "torch", "numpy", "scipy", "python-flint")
MAX_DEATHS = 3
"""The number of workers that may die over an item before it is given up."""

_code_lock = threading.Lock()
"""A worker of a cluster may have several threads, which would all read the sources at once."""


class OtherCode(SeparatrixError):
    """A worker has another version of the code than the one the plan was made with."""


def work(items: Sequence[WorkItem], seconds: float, checkpoints: Checkpoints | None = None) -> BatchResults:
    """Return the results of the first items, at least one, until the time is over.

    The last result may be a checkpoint, from which the item can be continued.
    """
    torch.set_num_threads(items[0].threads)
    start, all_results = time.monotonic(), list[CellResult | Checkpoint]()
    require_same_code(items[0])
    for results in items[0].run(items, get_environment(), checkpoints):
        # A checkpoint is of use only until the next output of its item.
        if all_results and isinstance(all_results[-1], Checkpoint):
            all_results.pop()
        all_results += results
        if time.monotonic() - start > seconds:
            break
    return all_results


def make_failure(message: str, seconds: float = 0.0) -> CellResult:
    """Return the result of a cell that no worker could compute."""
    return make_result(Answer(status=CellStatus.FAILED, message=message), seconds, get_environment())


@cache
def get_environment() -> Environment:
    """Return this host, Python, and the packages that the numbers depend on."""
    versions = {name: version(name) for name in PACKAGES}
    return Environment(platform.node(), {"python": platform.python_version(), **versions})


def require_same_code(item: WorkItem) -> None:
    """Raise OtherCode for an item that was planned with another version of the code."""
    with _code_lock:
        code = item.current_code()
    if code != item.code:
        environment = get_environment()
        raise OtherCode(
            f"the worker on {environment.host} has another version of the code for {item} ({code}, not "
            f"{item.code}; its separatrix is {environment.versions['separatrix']}); install the same version "
            "everywhere"
        )
