"""A choice: mechanisms down, what they see across."""

from __future__ import annotations

from separatrix.reports import choice
from separatrix.reports.plots.drawing import Drawing

DRAWING = Drawing(
    lambda found, _, axes: choice.draw_on(axes, found),
    size=choice.size,
    files={".html": lambda found: choice.page(found).encode()},
)
