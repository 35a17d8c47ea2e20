"""Report cards: what a mechanism can tell apart, and what it costs."""

from separatrix.assess.card import Card, assess
from separatrix.assess.cost import Cost, CostCurve, Disagreement, bench, measure
from separatrix.assess.likeness import Likeness, likenesses
from separatrix.assess.standing import POINTS, Growth, Standing, standings

__all__ = [
    "POINTS",
    "Card",
    "Cost",
    "CostCurve",
    "Disagreement",
    "Growth",
    "Likeness",
    "Standing",
    "assess",
    "bench",
    "likenesses",
    "measure",
    "standings",
]
