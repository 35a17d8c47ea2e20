"""A quantity against the parameter that grows, for several mechanisms, on two log axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from separatrix.pages.plots.drawing import Drawing
from separatrix.pages.scaling import draw_on

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from separatrix.analysis.laws import Scalings


def _draw(found: Scalings, _: int, axes: Axes) -> None:
    draw_on(axes, [answer.as_json() for answer in found.scalings])


DRAWING = Drawing(_draw, panels=lambda found: 1 if found.scalings else 0)
