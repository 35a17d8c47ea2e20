"""A map on paper: PNG, PDF and SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from separatrix.maps import Layer, Map
from separatrix.reports.drawing import INK, saved, static_style
from separatrix.reports.maps import captions, heatmap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure


def draw(found: Map, kind: str) -> bytes:
    """The map as PNG, PDF or SVG."""
    with static_style():
        return saved(figure(found), kind)


def panel(axes: Axes, found: Map, layer: Layer) -> QuadMesh:
    """One mechanism's values as colours, and the lines over them."""
    scale = heatmap.scale(found)
    image = axes.pcolormesh(
        found.x.floats,
        found.y.floats,
        scale.shade(layer.values),
        vmin=scale.low,
        vmax=scale.high,
        cmap=scale.colours,
        shading="nearest",
        rasterized=True,
    )
    _finish(axes, found, layer)
    return image


def figure(found: Map) -> Figure:
    """The panels side by side with one colour bar; to be drawn and saved in the static style."""
    from matplotlib.figure import Figure

    layers, scale = found.shown, heatmap.scale(found)
    columns = min(len(layers), 3)
    rows = -(-len(layers) // columns)
    drawn = Figure(figsize=(4.4 if columns == 1 else 7.2, 3.2 * rows + 0.3))
    panels = drawn.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes in panels.flat[len(layers) :]:
        axes.set_visible(False)
    for axes, layer in zip(panels.flat, layers, strict=False):
        image = panel(axes, found, layer)
    for axes in panels[:, 0]:
        axes.set_ylabel(heatmap.axis_label(found.y.name))
    bar = drawn.colorbar(image, ax=panels, label=scale.label, aspect=28, pad=0.02)
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
        title=layer.mechanism,
        xlabel=heatmap.axis_label(found.x.name),
    )
    axes.grid(False)
    for name, pieces in heatmap.lines(found, layer).items():
        for i, (x, y) in enumerate(pieces):
            axes.plot(
                x,
                y,
                color="white",
                linestyle=(0, (1, 1.2)) if name.startswith("P =") else "-",
                linewidth=1.6,
                label=name if i == 0 else None,
                path_effects=[withStroke(linewidth=2.8, foreground=INK)],
            )
