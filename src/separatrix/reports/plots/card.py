"""A card: the time of the mechanism and of those beside it; its page has the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from separatrix.cards import Card
from separatrix.costs import CostCurve
from separatrix.reports import card
from separatrix.reports.plots.costs import draw_costs
from separatrix.reports.plots.drawing import Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _curves(found: Card) -> list[CostCurve]:
    costs = (found.cost, *(each.cost for each in found.against), found.softmax_cost)
    return [each for each in costs if isinstance(each, CostCurve)]


def _draw(found: Card, _: int, axes: Axes) -> None:
    draw_costs(axes, _curves(found), "seconds")
    axes.legend()


DRAWING = Drawing(
    _draw,
    panels=lambda found: 1 if _curves(found) else 0,
    files={".html": lambda found: card.page(found).encode()},
)
