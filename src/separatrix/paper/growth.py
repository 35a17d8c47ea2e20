"""How the margin of every mechanism grows with n."""

from __future__ import annotations

from collections.abc import Callable

from separatrix.laws.scaling import table
from separatrix.laws.scaling_result import ScalingRow
from separatrix.paper.base import BASE

LENGTHS = "1e3:1e6:4:log"
PARAMETERS = {"n": LENGTHS, **{name: value for name, value in BASE.items() if name != "n"}}


def compute(tell: Callable[[str], None] = lambda _: None) -> list[ScalingRow]:
    """One row for each registered mechanism."""
    return table("spike", PARAMETERS, of="margin", tell=tell)
