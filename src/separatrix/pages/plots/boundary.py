"""Drawing of a boundary: on which side of the level P lies along the range."""

from __future__ import annotations

from itertools import pairwise

from separatrix.analysis.maps import Boundary
from separatrix.core.numbers import format_exact
from separatrix.pages.looks import BLUE, FAINT, INK, PRINTED
from separatrix.pages.maps.scales import axis_label
from separatrix.pages.paper import Axes


def draw_boundary(result: Boundary, axes: Axes) -> None:
    """Draw crossings, the formula where one is known, and the computed points."""
    ink, (start, stop) = PRINTED[INK], result.ends
    places = [float(start.value), *(crossing.middle for crossing in result.crossings), float(stop.value)]
    is_above = not result.crossings[0].rises if result.crossings else start.side == 1
    for low, high in pairwise(places):
        axes.axvspan(low, high, ymin=0, ymax=1, color=BLUE, alpha=0.18 if is_above else 0.0, lw=0)
        is_above = not is_above
    axes.axhline(float(result.at), color=PRINTED[FAINT], lw=1, ls=(0, (2, 2)), label=f"P = {format_exact(result.at)}")
    for i, crossing in enumerate(result.crossings):
        name = f"crossing{', certified' if crossing.is_certified else ''}" if i == 0 else None
        axes.axvline(crossing.middle, color=BLUE, lw=1.8, label=name)
        text = f" {crossing.middle:.6g}, {'up' if crossing.rises else 'down'}"
        axes.annotate(text, (crossing.middle, 0.04), color=ink, size=8, rotation=90)
    formula = None if result.analytic is None else result.analytic.formula
    for i, at in enumerate(result.analytic_values):
        name = f"{formula.formula} {formula.tag}" if formula and i == 0 else None
        axes.axvline(at, color=ink, lw=1.2, ls=(0, (5, 2)), label=name)
    ends = [start, *(end for crossing in result.crossings for end in (crossing.lo, crossing.hi)), stop]
    x, y = [float(end.value) for end in ends], [end.p for end in ends]
    axes.plot(x, y, "o", ms=4, color=ink, label="P, as computed", clip_on=False, zorder=5)
    axes.set(xscale="log" if result.span.log else "linear", xlim=(places[0], places[-1]), ylim=(-0.03, 1.03))
    title = f"{result.question.label} on {result.question.construction}"
    axes.set(xlabel=axis_label(result.span.name), ylabel="P(tells apart)", title=title)
    axes.legend()
