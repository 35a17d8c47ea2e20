"""A boundary: on which side of the level P lies along the range, and what was read of it."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from separatrix.analysis.maps import Boundary
from separatrix.core.numbers import format_exact
from separatrix.pages.drawing import COLOURS, FAINT, INK
from separatrix.pages.maps.heatmap import axis_label
from separatrix.pages.plots.drawing import Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE = COLOURS[0]


def _draw(found: Boundary, _: int, axes: Axes) -> None:
    level, (start, stop) = float(found.at), found.ends
    places = [float(start.value), *(crossing.middle for crossing in found.crossings), float(stop.value)]
    above = not found.crossings[0].rises if found.crossings else start.side == 1
    for low, high in pairwise(places):
        axes.axvspan(low, high, ymin=0, ymax=1, color=BLUE, alpha=0.18 if above else 0.0, lw=0)
        above = not above
    axes.axhline(level, color=FAINT, lw=1, ls=(0, (2, 2)), label=f"P = {format_exact(found.at)}")
    for i, each in enumerate(found.crossings):
        label = f"crossing{', certified' if each.is_certified else ''}" if i == 0 else None
        axes.axvline(each.middle, color=BLUE, lw=1.8, label=label)
        way = "up" if each.rises else "down"
        axes.annotate(f" {each.middle:.6g}, {way}", (each.middle, 0.04), color=INK, size=8, rotation=90)
    for i, at in enumerate(found.analytic_values):
        name = f"{found.analytic.formula.formula} {found.analytic.formula.tag}" if found.analytic else ""
        axes.axvline(at, color=INK, lw=1.2, ls=(0, (5, 2)), label=name if i == 0 else None)
    read = [start, *(end for crossing in found.crossings for end in (crossing.lo, crossing.hi)), stop]
    x, y = [float(each.value) for each in read], [each.p for each in read]
    axes.plot(x, y, "o", ms=4, color=INK, label="P, as computed", clip_on=False, zorder=5)
    axes.set(
        xscale="log" if found.span.log else "linear",
        xlim=(places[0], places[-1]),
        ylim=(-0.03, 1.03),
        xlabel=axis_label(found.span.name),
        ylabel="P(tells apart)",
    )
    axes.set_title(f"{found.question.label} on {found.question.construction}")
    axes.legend()


DRAWING = Drawing(_draw)
