"""What a worker does with a batch: as much of it as fits into its time."""

from __future__ import annotations

import platform
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.metadata import version

from separatrix.core.parameters import SeparatrixError
from separatrix.core.tensors import torch
from separatrix.sweeps.store import Answer, Checkpoint, Environment, Result, Status
from separatrix.sweeps.work import Back, Checkpoints, Work, result

PACKAGES = ("separatrix", "torch", "numpy", "scipy", "python-flint")
MOST_DEATHS = 3
"""A cell over which so many workers died is not tried again."""

_reading = threading.Lock()
"""Python 3.11 cannot parse sources in two threads at once, and a worker of a cluster may have several."""


class OtherCode(SeparatrixError):
    """A worker has another version of the code than the plan was made with."""


def work(cells: Sequence[Work], seconds: float, checkpoints: Checkpoints | None = None) -> Back:
    """The results of the first cells, at least one, until the time is over; the rest is left to others.

    The last one may be a checkpoint, from which it can be gone on with.
    """
    return joined(finish(cells, seconds, checkpoints))


def finish(cells: Sequence[Work], seconds: float, checkpoints: Checkpoints | None = None) -> Iterator[Back]:
    """The results, some at a time; none at first, once it is sure that this worker can compute the cells."""
    torch.set_num_threads(cells[0].threads)
    start = time.monotonic()
    require_same_code(cells[0])
    yield []
    for some in cells[0].run(cells, environment(), checkpoints):
        yield some
        if time.monotonic() - start > seconds:
            break


def joined(parts: Iterable[Back]) -> Back:
    """What came some at a time; nothing is left of a checkpoint after which more came."""
    found: Back = []
    for part in parts:
        if part and found and isinstance(found[-1], Checkpoint):
            found.pop()
        found += part
    return found


def timed_out(limit: float) -> Result:
    """What is kept of a cell that took longer than the limit."""
    message = f"it took longer than {limit:g} s, the limit a cell"
    return result(Answer(status=Status.FAILED, message=message), limit, environment())


def died(times: int) -> Result:
    """What is kept of a cell over which worker after worker died."""
    message = f"its worker died {times} times; it may need more memory than there is"
    return result(Answer(status=Status.FAILED, message=message), 0.0, environment())


@cache
def environment() -> Environment:
    """This host, Python and the packages that the numbers depend on."""
    versions = {name: version(name) for name in PACKAGES}
    return Environment(platform.node(), {"python": platform.python_version(), **versions})


def require_same_code(cell: Work) -> None:
    """Refuse a cell that was planned with another version of the code than there is here."""
    with _reading:
        found = cell.code_here()
    if found != cell.code:
        here = environment()
        raise OtherCode(
            f"the worker on {here.host} has another version of the code for {cell} ({found}, not "
            f"{cell.code}; its separatrix is {here.versions['separatrix']}); install the same version "
            "everywhere"
        )
