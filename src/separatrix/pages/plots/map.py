"""A map: a panel for each mechanism, colours with their bar, and the lines over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from separatrix.analysis.maps import Map
from separatrix.pages.maps import heatmap, picture
from separatrix.pages.maps.page import map_page
from separatrix.pages.plots.drawing import Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _draw(found: Map, panel: int, axes: Axes) -> None:
    image, scale = picture.panel(axes, found, found.panels[panel])
    axes.set_ylabel(heatmap.axis_label(found.y.name))
    axes.get_figure(root=True).colorbar(image, ax=axes, label=scale.label)  # type: ignore[union-attr]
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper left", handlelength=3, facecolor="#777777", labelcolor="white", frameon=True)


DRAWING = Drawing(
    _draw,
    panels=lambda found: len(found.panels),
    size=lambda _: (4.6, 3.5),
    figure=picture.figure,
    files={".html": lambda found: map_page(found).encode(), ".npz": lambda found: found.to_npz()},
)
