"""A verdict: how likely the reader fires on each label, and tells them apart."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

from separatrix.core.numbers import format_exact
from separatrix.pages.drawing import FAINT, INK
from separatrix.pages.plots.drawing import Drawing
from separatrix.pages.verdict_words import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from separatrix.exact.verdicts import Verdict

WIDEST = 66
"""Characters of a line below the axes."""
NAMES = ("fires on D0", "fires on D1", "tells D0 from D1")


def _draw(found: Verdict, _: int, axes: Axes) -> None:
    outcome, delta = found.outcome, float(found.delta)
    low, high = outcome.interval
    chances = (outcome.fire_d0, outcome.fire_d1, outcome.distinguish)
    axes.barh(range(3), chances, height=0.6, color=(FAINT, FAINT, COLOURS[found.word]), edgecolor=INK, lw=0.6)
    if low < high:
        axes.plot([low, high], [2, 2], "|-", color=INK, ms=9, lw=1.4, label="interval")
    for row, chance in enumerate(chances):
        edge = max(chance, high) if row == 2 else chance
        axes.annotate(
            f"{chance:.4g}",
            (edge, row),
            (-4 if edge > 0.7 else 4, 8 if low < high and row == 2 else 0),
            textcoords="offset points",
            ha="right" if edge > 0.7 else "left",
            va="center",
            color="white" if edge > 0.7 and not (low < high and row == 2) else INK,
        )
    for at in (delta, 1 - delta):
        axes.axvline(at, color=INK, lw=0.8, ls=(0, (2, 2)))
    axes.set(xlim=(0, 1), ylim=(2.5, -0.5), yticks=range(3), yticklabels=NAMES)
    axes.set_xlabel(f"probability\n{point_and_delta(found)}", size=8)
    axes.grid(visible=False, axis="y")
    axes.set_title(f"{found.mechanism.spelled} on {found.construction.name}: {found.word}")


def point_and_delta(found: Verdict) -> str:
    """Where a verdict was asked for, and what the dotted lines of its picture are."""
    point = " ".join(f"{name}={value}" for name, value in found.construction.parameters.shown().items())
    return f"{fill(point, WIDEST)}\ndotted: delta = {format_exact(found.delta)}, and 1 - delta"


DRAWING = Drawing(_draw, size=lambda _: (4.6, 2.2))
