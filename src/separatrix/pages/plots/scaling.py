"""A quantity against the parameter that grows, on two log axes."""

from __future__ import annotations

from separatrix.pages.plots.drawing import Drawing
from separatrix.pages.scaling import draw_on

DRAWING = Drawing(lambda found, _, axes: draw_on(axes, [found.as_json()]))
