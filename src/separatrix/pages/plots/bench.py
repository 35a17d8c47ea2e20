"""A bench: the time of each mechanism, and softmax's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from separatrix.analysis.costs.curves import Bench, CostCurve
from separatrix.pages.plots.costs import draw_costs
from separatrix.pages.plots.drawing import Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _draw(found: Bench, _: int, axes: Axes) -> None:
    draw_costs(
        axes, [each for each in (found.softmax, *found.costs) if isinstance(each, CostCurve)], "seconds"
    )
    if axes.lines:
        axes.legend()


DRAWING = Drawing(_draw)
