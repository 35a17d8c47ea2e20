"""Maps on paper."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from separatrix.pages.looks import INK, print_colour
from separatrix.pages.maps.figure import MapFigure, MapPanel, PlaneAxis
from separatrix.pages.maps.scales import FORMAT_LEVELS, Array, ColourScale
from separatrix.pages.paper import Axes, Figure, colour_map, new_figure

WHITE = "#ffffff"
DASHES = ((1, 1.2), (4, 2), (6, 2, 1, 2), ())
"""Of the lines at levels, in pictures."""


def draw_panel(axes: Axes, figure: MapFigure, panel: MapPanel) -> Any:
    """Draw a panel on matplotlib axes: the cells, whose image is returned, and the lines over them."""
    x, y, scale = figure.x, figure.y, panel.scale
    # Rasterized: one image in PDF and SVG files, instead of a path for each cell.
    style: Any = {"vmin": scale.low, "vmax": scale.high, "shading": "nearest", "rasterized": True}
    shades = scale.shade(panel.coloured_numbers)
    image = axes.pcolormesh(x.values, y.values, shades, cmap=colour_map(scale.ramp), **style)
    axes.set(xscale=x.scale, yscale=y.scale, title=textwrap.fill(panel.title, 34), xlabel=x.label, ylabel=y.label)
    axes.grid(visible=False)
    levels = figure.levels if panel.coloured == "values" else {}
    for dash, (name, level) in zip(DASHES, levels.items(), strict=False):
        _draw_contour(axes, figure, panel.coloured_numbers - level, name, dash, is_labelled=len(levels) > 1)
    if panel.formula is not None:
        name = f"{panel.formula['formula']} {panel.formula['tag']}"
        _draw_contour(axes, figure, panel.numbers["formula"], name, ())
    for line in panel.lines:
        dashes = [0.5 * part for part in line.look.dash]
        _draw_line(axes, line.x, line.y, line.look.label, dashes, line.look.colour)
    axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())
    return image


def _draw_contour(
    axes: Axes, figure: MapFigure, values: Array, name: str, dash: Sequence[float], is_labelled: bool = False
) -> None:
    """Draw the zeros of `values`, which lie between cells."""
    pieces = zero_lines(figure.x, figure.y, values)
    for place, (x, y) in enumerate(pieces):
        _draw_line(axes, x, y, "" if place else name, dash)
    if is_labelled and pieces:
        x, y = max(pieces, key=lambda piece: len(piece[0]))
        box = {"boxstyle": "round,pad=0.15", "facecolor": print_colour(INK), "edgecolor": "none"}
        style: dict[str, Any] = {"color": "white", "size": 6.5, "ha": "center", "va": "center", "bbox": box}
        axes.text(x[len(x) // 2], y[len(y) // 2], name.partition(",")[0], clip_on=True, **style)


def _draw_line(axes: Axes, x: Array, y: Array, name: str, dash: Sequence[float], colour: str = WHITE) -> None:
    from matplotlib.patheffects import withStroke

    rim = withStroke(linewidth=2.8, foreground=print_colour(INK))
    style: Any = (0, tuple(dash)) if dash else "-"
    effects = [rim] if colour == WHITE else []
    axes.plot(x, y, color=colour, linestyle=style, linewidth=1.6, label=name or None, path_effects=effects)


def zero_lines(x: PlaneAxis, y: PlaneAxis, values: Array) -> list[tuple[Array, Array]]:
    """Return the lines on which `values` is zero, in pieces."""
    values = np.where(np.isfinite(values), values, np.nan)
    # Without a change of sign there is no line, and matplotlib would warn.
    if not (np.nanmin(values, initial=0) < 0 < np.nanmax(values, initial=0)):
        return []
    # Contours are interpolated on the axes as they are drawn, evenly in the logarithm.
    across, up = (np.log10(axis.values) if axis.log else axis.values for axis in (x, y))
    contours = new_figure(1, 1).subplots().contour(across, up, np.ma.masked_invalid(values), levels=[0])
    pieces = [np.asarray(piece).T for piece in contours.allsegs[0] if len(piece) > 1]
    return [(10**places if x.log else places, 10**heights if y.log else heights) for places, heights in pieces]


def draw_map(figure: MapFigure, caption: str = "") -> Figure:
    """Return the panels side by side with their colour bars, in the style of paper."""
    columns = min(len(figure.panels), 3)
    rows = -(-len(figure.panels) // columns)
    drawing = new_figure(4.4 if columns == 1 else 7.2, 3.2 * rows + 0.3)
    grid = drawing.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes in grid.flat[len(figure.panels) :]:
        axes.set_visible(False)
    # Panels with equal scales share one colour bar.
    images: dict[ColourScale, tuple[Any, list[Axes]]] = {}
    for axes, panel in zip(grid.flat, figure.panels, strict=False):
        image = draw_panel(axes, figure, panel)
        images.setdefault(panel.scale, (image, []))[1].append(axes)
    for axes in grid[:, 1:].flat:
        axes.set_ylabel("")
    for scale, (image, panel_axes) in images.items():
        bar_axes = panel_axes if len(images) > 1 else grid
        bar = drawing.colorbar(image, ax=bar_axes, label=bar_label(scale), aspect=28, pad=0.02)
        bar.outline.set_visible(False)
    lines = [pair for axes in grid.flat for pair in zip(*axes.get_legend_handles_labels(), strict=True)]
    # Lines of number formats have their names written on them.
    if entries := {label: line for line, label in lines if label not in FORMAT_LEVELS}:
        place: Any = {"loc": "outside lower center", "ncols": len(entries), "handlelength": 3}
        drawing.legend(entries.values(), list(entries), **place)
    drawing.suptitle(caption, size=7, x=0.01, ha="left")
    return drawing


def bar_label(scale: ColourScale) -> str:
    """Return the label of a colour bar in a picture, whose ticks are logarithms where the scale is."""
    return f"log₁₀ of the {scale.label}" if scale.log else scale.label
