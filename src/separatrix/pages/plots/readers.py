"""Readers of growing freedom: P with the threshold as it is, and with the best one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from separatrix.pages.drawing import COLOURS, FAINT, INK
from separatrix.pages.plots.drawing import Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from separatrix.exact.verdicts import Readers


def _draw(found: Readers, _: int, axes: Axes) -> None:
    shown = [("this threshold", found.fixed.outcome)]
    if found.threshold is not None:
        shown.append((f"best threshold, tau = {float(found.threshold.tau):.4g}", found.threshold.outcome))
    for row, (_name, outcome) in enumerate(shown):
        low, high = outcome.interval
        axes.plot([low, high], [row, row], color=COLOURS[0], lw=3)
        axes.plot([outcome.distinguish], [row], "o", ms=7, color=COLOURS[0])
        axes.annotate(
            f"P = {outcome.distinguish:.4g}", (outcome.distinguish, row), (0, 8), textcoords="offset points",
            ha="left" if outcome.distinguish < 0.5 else "right", size=8,
        )  # fmt: skip
    last = len(shown)
    verified = found.linear is not None and found.linear.verified
    said = "can, weights are given" if verified else "equal: none can" if found.outputs.same else "open"
    axes.text(0.5, last, said, ha="center", va="center", color=INK, size=8, style="italic")
    names = [*(name for name, _outcome in shown), "a linear reader of one row"]
    axes.set(xlim=(-0.03, 1.03), ylim=(last + 0.5, -0.6), yticks=range(last + 1), yticklabels=names)
    axes.set(xlabel="P(tells apart)")
    axes.grid(visible=True, axis="x", color=FAINT, alpha=0.25)
    axes.set_title(f"{found.mechanism.spelled} on {found.construction.name}: {found.verdict.word}")


DRAWING = Drawing(_draw, size=lambda _: (5.4, 2.1))
