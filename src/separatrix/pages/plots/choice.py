"""A choice: mechanisms down, what they see across."""

from __future__ import annotations

from separatrix.pages import choice
from separatrix.pages.plots.drawing import Drawing

DRAWING = Drawing(
    lambda found, _, axes: choice.draw_on(axes, found),
    size=choice.size,
    files={".html": lambda found: choice.page(found).encode()},
)
