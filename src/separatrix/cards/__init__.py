"""Report cards: what a mechanism can tell apart, and what it costs."""

from separatrix.cards.blindness import Blindness
from separatrix.cards.card import Card, assess
from separatrix.cards.cost import Bench, Cost, CostCurve, Disagreement, bench, crossover, measure
from separatrix.cards.growth import Growth
from separatrix.cards.likeness import Likeness, likenesses
from separatrix.cards.standing import Standing, Unanswered, points, standings

__all__ = [
    "Bench",
    "Blindness",
    "Card",
    "Cost",
    "CostCurve",
    "Disagreement",
    "Growth",
    "Likeness",
    "Standing",
    "Unanswered",
    "assess",
    "bench",
    "crossover",
    "likenesses",
    "measure",
    "points",
    "standings",
]
