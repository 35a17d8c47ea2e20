"""Maps and boundary curves as static pages."""

from __future__ import annotations

from separatrix.analysis.maps import BoundaryCurve, Map
from separatrix.pages.charts import chart_page
from separatrix.pages.maps import captions
from separatrix.pages.maps import curve as curves
from separatrix.pages.maps.figure import map_figure
from separatrix.pages.maps.picture import bar_label, draw_map, draw_panel
from separatrix.pages.pages import render_page
from separatrix.pages.paper import Axes, Figure, paper_style, save_small_png


def draw_result(result: Map) -> Figure:
    """Return the picture of a map, with the fixed parameters above it."""
    with paper_style():
        return draw_map(map_figure(result), captions.join_words(captions.fixed_values(result)))


def draw_map_panel(panel: tuple[Map, int], axes: Axes) -> None:
    """Draw one panel of a map, given by its number, with its colour bar."""
    result, number = panel
    figure = map_figure(result)
    image = draw_panel(axes, figure, figure.panels[number])
    label = bar_label(figure.panels[number].scale)
    axes.get_figure(root=True).colorbar(image, ax=axes, label=label)  # type: ignore[union-attr]
    if axes.get_legend_handles_labels()[0]:
        # Lines over maps are white or bright, and would not be seen on white.
        axes.legend(loc="upper left", handlelength=3, facecolor="#777777", labelcolor="white", frameon=True)


def map_page(result: Map) -> str:
    """Return the page of a map: its panels, and the command of the cell that is pointed at."""
    return render_page(
        "map.html.j2",
        ("map",),
        title=captions.finding(result),
        description=captions.describe(result),
        sentences=captions.sentences(result),
        image=save_small_png(draw_result(result)),
        figure=map_figure(result),
        made_by=captions.made_by(result),
    )


def curve_page(result: BoundaryCurve) -> str:
    """Return the page of a boundary curve: a chart, and its numbers."""
    return chart_page(
        curves.chart(result),
        title=curves.finding(result),
        description=curves.title(result),
        sentences=curves.sentences(result),
        columns=curves.columns(result),
        rows=curves.rows(result),
        made_by=curves.made_by(result),
    )
