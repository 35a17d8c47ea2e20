"""A card: the time of the mechanism and of those beside it, or, before that is known, its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from separatrix.analysis.cards.card import Card
from separatrix.analysis.costs.curves import CostCurve
from separatrix.pages import card
from separatrix.pages.plots.costs import draw_costs
from separatrix.pages.plots.drawing import SIZE, Drawing
from separatrix.pages.verdict_words import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OUTCOMES = {"broken": "#D55E00", "not tried": "#E69F00", "kept": "#0072B2", "does not apply": "#d9d9d9"}
"""Of checks, in Okabe and Ito's colours."""
ROW = 0.16
"""Inches."""


def _curves(found: Card) -> list[CostCurve]:
    costs = (found.cost, *(each.cost for each in found.against), found.softmax_cost)
    return [cost for cost in costs if isinstance(cost, CostCurve)]


def _rows(found: Card) -> list[tuple[str, str, str]]:
    """The name of each row, its word, and its colour: constructions, or the checks of the contract."""
    if found.constructions:
        return [(name, result.word, COLOURS[result.word]) for name, result in found.constructions.items()]
    return [(check["check"], check["outcome"], OUTCOMES[check["outcome"]]) for check in found.contract_rows()]


def _draw(found: Card, _: int, axes: Axes) -> None:
    if curves := _curves(found):
        draw_costs(axes, curves, "seconds")
        axes.legend()
        return
    rows = _rows(found)
    for place, (_name, word, colour) in enumerate(rows):
        axes.plot(0, place, "s", color=colour, markeredgecolor="#555555", markeredgewidth=0.5)
        axes.annotate(word, (0, place), (8, 0), textcoords="offset points", va="center", size=7)
    axes.set_yticks(range(len(rows)), [name for name, _, _ in rows], size=7)
    axes.set(xlim=(-0.2, 2), ylim=(len(rows) - 0.4, -0.6), xticks=[], title=found.mechanism.spelled)


def _size(found: Card) -> tuple[float, float]:
    return SIZE if _curves(found) else (SIZE[0], max(SIZE[1], 0.6 + ROW * len(_rows(found))))


DRAWING = Drawing(_draw, size=_size, files={".html": lambda found: card.page(found).encode()})
