"""What mechanisms cost against the length, on log axes, each with the look it has in every picture."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from separatrix.analysis.costs.curves import CostCurve
from separatrix.pages.drawing import looks, on_paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes

UNITS = {
    "seconds": ("time, ms", 1e3),
    "peak_bytes": ("peak memory, MiB", 2.0**-20),
    "state_bytes": ("state or cache, KiB", 2.0**-10),
}
"""What an axis says of each quantity, and what it is multiplied by."""


def draw_costs(axes: Axes, curves: Iterable[CostCurve], of: str) -> None:
    """One quantity of some curves, each mechanism once."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    label, unit = UNITS[of]
    named = {curve.mechanism: curve for curve in curves}
    known = looks(named)
    for name, curve in named.items():
        axes.plot(
            [cost.length for cost in curve.costs],
            [unit * getattr(cost, of) for cost in curve.costs],
            markersize=4,
            label=name,
            **on_paper(known[name]),
        )
    axes.set(xscale="log", yscale="log", xlabel="n, number of tokens", ylabel=label)
    axes.xaxis.set_major_locator(LogLocator(base=2, subs=(1,), numticks=5))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
