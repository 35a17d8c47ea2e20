"""A boundary against a second parameter."""

from __future__ import annotations

from separatrix.pages.maps import curve
from separatrix.pages.maps.page import curve_page
from separatrix.pages.plots.drawing import Drawing

DRAWING = Drawing(
    lambda found, _, axes: curve.draw_on(axes, found),
    size=lambda _: curve.SIZE,
    files={".csv": curve.as_csv, ".html": lambda found: curve_page(found).encode()},
)
