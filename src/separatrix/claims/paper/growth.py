"""How the margin of every mechanism grows with n."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from separatrix.analysis.laws.scaling import table
from separatrix.analysis.laws.scaling_result import ScalingRow
from separatrix.claims.paper.base import BASE

LENGTHS = "1e3:1e6:4:log"
PARAMETERS = {"n": LENGTHS, **{name: value for name, value in BASE.items() if name != "n"}}


def compute(
    tell: Callable[[str], None] = lambda _: None, mechanisms: Sequence[str] | None = None
) -> list[ScalingRow]:
    """One row for each of these mechanisms, or of all that are registered."""
    return table("spike", PARAMETERS, mechanisms, of="margin", tell=tell)
