"""Where the line runs as n grows, for three mechanisms."""

from __future__ import annotations

from separatrix.analysis import maps
from separatrix.claims.paper.base import BASE

MECHANISMS = ("softmax", "power:beta=12", "linear")
A1, N = "0.5:1.5", "1e3:1e18"


def compute(side: int) -> maps.Map:
    """P(tells apart) over a1 and n in closed form, at so many values of each."""
    axes = {"a1": f"{A1}:{side}", "n": f"{N}:{side}:log"}
    fixed = {name: value for name, value in BASE.items() if name not in axes}
    return maps.map("spike", MECHANISMS, {**axes, **fixed})
