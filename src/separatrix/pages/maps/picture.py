"""A map on paper: PNG, PDF and SVG."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from separatrix.analysis.maps import Layer, Map
from separatrix.pages.drawing import INK, saved, static_style
from separatrix.pages.maps import captions, heatmap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure


def draw(found: Map, kind: str) -> bytes:
    """The map as PNG, PDF or SVG."""
    with static_style():
        return saved(figure(found), kind)


def panel(axes: Axes, found: Map, layer: Layer) -> tuple[QuadMesh, heatmap.ColourScale]:
    """One mechanism's values as colours with what they stand for, and the lines over them."""
    values, scale = heatmap.drawn(found, layer)
    image = axes.pcolormesh(
        found.x.floats,
        found.y.floats,
        scale.shade(values),
        vmin=scale.low,
        vmax=scale.high,
        cmap=scale.colours,
        shading="nearest",
        rasterized=True,
    )
    _finish(axes, found, layer)
    return image, scale


def figure(found: Map) -> Figure:
    """The panels side by side with one colour bar; to be drawn and saved in the static style."""
    from matplotlib.figure import Figure

    layers = found.panels
    columns = min(len(layers), 3)
    rows = -(-len(layers) // columns)
    drawn = Figure(figsize=(4.4 if columns == 1 else 7.2, 3.2 * rows + 0.3))
    panels = drawn.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes in panels.flat[len(layers) :]:
        axes.set_visible(False)
    images: dict[heatmap.ColourScale, tuple[Any, list[Axes]]] = {}
    for axes, layer in zip(panels.flat, layers, strict=False):
        image, scale = panel(axes, found, layer)
        images.setdefault(scale, (image, []))[1].append(axes)
    for axes in panels[:, 0]:
        axes.set_ylabel(heatmap.axis_label(found.y.name))
    for scale, (image, beside) in images.items():
        bar = drawn.colorbar(
            image, ax=beside if len(images) > 1 else panels, label=scale.label, aspect=28, pad=0.02
        )
        bar.outline.set_visible(False)
    named = {
        name: line
        for axes in panels.flat
        for line, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    if named:
        drawn.legend(
            named.values(), named.keys(), loc="outside lower center", ncols=len(named), handlelength=3
        )
    drawn.suptitle(captions.fixed_words(found), size=7, x=0.01, ha="left")
    return drawn


def _finish(axes: Axes, found: Map, layer: Layer) -> None:
    """Scales, title and lines of one panel."""
    from matplotlib.patheffects import withStroke

    axes.set(
        xscale="log" if found.x.log else "linear",
        yscale="log" if found.y.log else "linear",
        title=textwrap.fill(heatmap.panel_title(found, layer), 34),
        xlabel=heatmap.axis_label(found.x.name),
    )
    axes.grid(False)
    lines = heatmap.lines(found, layer)
    for name, pieces in lines.items():
        for i, (x, y) in enumerate(pieces):
            axes.plot(
                x,
                y,
                color="white",
                linestyle=(0, (1, 1.2)) if name.startswith("P =") else "-",
                linewidth=1.6,
                label=name if i == 0 and name not in heatmap.FORMAT_LINES else None,
                path_effects=[withStroke(linewidth=2.8, foreground=INK)],
            )
    for name, (x_at, y_at) in heatmap.written(lines).items():
        box = {"boxstyle": "round,pad=0.15", "facecolor": INK, "edgecolor": "none"}
        axes.text(x_at, y_at, name, color="white", size=6.5, ha="center", va="center", bbox=box, clip_on=True)
