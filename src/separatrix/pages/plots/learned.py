"""What was learned: where scores lie between floor and ceiling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from separatrix.pages.drawing import INK
from separatrix.pages.learned import figures
from separatrix.pages.plots.drawing import Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from separatrix.analysis.evidence.training_result import TrainingResult


def _draw(found: TrainingResult, _: int, axes: Axes) -> None:
    figures.draw_bars(axes, found, figures.palette([found.as_part()]))
    for label, style in figures.MARKS:
        axes.plot([], [], ls="", color=INK, label=label, **style)  # type: ignore[arg-type]
    axes.legend(loc="best", fontsize=6.5)


DRAWING = Drawing(_draw, size=lambda found: (figures.WIDE, 0.5 + figures.bars_height(found)))
