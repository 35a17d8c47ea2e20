"""Verdicts side by side: how likely the reader tells the labels apart, with each mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING

from separatrix.pages.drawing import FAINT, INK
from separatrix.pages.plots.drawing import Drawing
from separatrix.pages.plots.verdict import point_and_delta
from separatrix.pages.verdict_words import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from separatrix.exact.verdicts import Verdicts

ROOM = 0.28
"""Inches for each mechanism."""


def _draw(found: Verdicts, _: int, axes: Axes) -> None:
    answers, names = found.answers, [str(row["mechanism"]) for row in found.rows()]
    for row, name in enumerate(names):
        one = next((answer for answer in answers if answer.mechanism.spelled == name), None)
        if one is None:
            axes.annotate("not computed", (0.01, row), va="center", color=FAINT, style="italic", size=7.5)
            continue
        low, high = one.outcome.interval
        chance = one.outcome.distinguish
        axes.barh(row, chance, height=0.66, color=COLOURS[one.word], edgecolor=INK, lw=0.6)
        if low < high:
            axes.plot([low, high], [row, row], "|-", color=INK, ms=7, lw=1.2)
        said = f"{chance:.4g}, {one.word}"
        inside = max(chance, high) > 0.6
        axes.annotate(
            said,
            (max(chance, high), row),
            (-4 if inside else 4, 0),
            textcoords="offset points",
            ha="right" if inside else "left",
            va="center",
            color="white" if inside else INK,
            size=7.5,
        )
    delta = float(answers[0].delta)
    for at in (delta, 1 - delta):
        axes.axvline(at, color=INK, lw=0.8, ls=(0, (2, 2)))
    axes.set(xlim=(0, 1), ylim=(len(names) - 0.5, -0.5), yticks=range(len(names)), yticklabels=names)
    axes.set_xlabel(f"P(tells apart)\n{point_and_delta(answers[0])}", size=8)
    axes.grid(visible=False, axis="y")
    axes.set_title(answers[0].construction.name)


DRAWING = Drawing(_draw, size=lambda found: (5.0, 1.3 + ROOM * len(found)))
