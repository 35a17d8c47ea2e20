"""What a worker does with a batch: as much of it as fits into its time."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

import torch

from separatrix.constructions import construction_named
from separatrix.parameters import SeparatrixError
from separatrix.store import Environment, Result
from separatrix.sweeps.cell import Cell
from separatrix.sweeps.code import code_version
from separatrix.sweeps.evaluate import evaluate, named

PACKAGES = ("separatrix", "torch", "numpy", "scipy", "python-flint")


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
    torch.set_num_threads(1)
    start, here = time.monotonic(), environment()
    _require_same_code(cells[0], here.host)
    results: list[Result] = []
    for some in evaluate(cells, here):
        results += some
        if time.monotonic() - start > seconds:
            break
    return results


@cache
def environment() -> Environment:
    """This host, Python and the packages that the numbers depend on."""
    versions = {name: version(name) for name in PACKAGES}
    return Environment(platform.node(), {"python": platform.python_version(), **versions})


def _require_same_code(cell: Cell, host: str) -> None:
    found = code_version(construction_named(cell.construction), named(cell.mechanism))
    if found != cell.code:
        raise OtherCode(
            f"the worker on {host} has another version of the code for {cell.mechanism} on "
            f"{cell.construction} ({found}, not {cell.code}); install the same version everywhere"
        )
