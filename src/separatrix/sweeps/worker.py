"""What a worker does with a batch: as much of it as fits into its time."""

from __future__ import annotations

import platform
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

from separatrix.constructions import construction_named
from separatrix.parameters import SeparatrixError
from separatrix.store import Environment, Result, Status
from separatrix.store.rows import now
from separatrix.sweeps.code import code_version
from separatrix.sweeps.evaluate import evaluate, named
from separatrix.sweeps.verdict_cells import Cell
from separatrix.tensors import torch

PACKAGES = ("separatrix", "torch", "numpy", "scipy", "python-flint")

_reading = threading.Lock()
"""Python 3.11 cannot parse sources in two threads at once, and a worker of a cluster may have several."""


class OtherCode(SeparatrixError):
    """A worker has another version of the code than the plan was made with."""


@dataclass(frozen=True)
class Batch:
    """Cells of one kind that go to a worker together."""

    cells: tuple[Cell, ...]
    losses: int = 0
    """How often a worker died over it."""


def work(cells: Sequence[Cell], seconds: float) -> list[Result]:
    """The results of the first cells, at least one, until the time is over; the rest is left to others."""
    return [result for some in finish(cells, seconds) for result in some]


def finish(cells: Sequence[Cell], seconds: float) -> Iterator[list[Result]]:
    """The results, some at a time; none at first, once it is sure that this worker can compute the cells."""
    torch.set_num_threads(1)
    start = time.monotonic()
    require_same_code(cells[0])
    yield []
    for some in evaluate(cells, environment()):
        yield some
        if time.monotonic() - start > seconds:
            break


def timed_out(limit: float) -> Result:
    """What is kept of a cell that took longer than the limit."""
    message = f"it took longer than {limit:g} s, the limit a cell"
    return Result(Status.FAILED, limit, now(), environment(), message)


def died(times: int) -> Result:
    """What is kept of a cell over which worker after worker died."""
    message = f"its worker died {times} times; it may need more memory than there is"
    return Result(Status.FAILED, 0.0, now(), environment(), message)


@cache
def environment() -> Environment:
    """This host, Python and the packages that the numbers depend on."""
    versions = {name: version(name) for name in PACKAGES}
    return Environment(platform.node(), {"python": platform.python_version(), **versions})


def require_same_code(cell: Cell) -> None:
    """Refuse a cell that was planned with another version of the code than there is here."""
    with _reading:
        found = code_version(construction_named(cell.construction), named(cell.mechanism))
    if found != cell.code:
        here = environment()
        raise OtherCode(
            f"the worker on {here.host} has another version of the code for {cell.mechanism} on "
            f"{cell.construction} ({found}, not {cell.code}; its separatrix is "
            f"{here.versions['separatrix']}); install the same version everywhere"
        )
