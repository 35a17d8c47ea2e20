"""The atlas: mechanisms down, constructions across, the verdict in each cell."""

from __future__ import annotations

from separatrix.pages import atlas
from separatrix.pages.plots.drawing import Drawing

DRAWING = Drawing(
    lambda found, _, axes: atlas.draw_on(axes, found),
    size=atlas.size,
    figure=atlas.draw,
    files={
        ".html": lambda found: atlas.page(found).encode(),
        ".png": lambda found: atlas.picture(found, "png"),
    },
)
