"""Report cards: what a mechanism can tell apart, and what it costs."""

import sys
from types import ModuleType
from typing import Any

from separatrix.assess.blindness import Blindness
from separatrix.assess.card import Card, assess
from separatrix.assess.cost import Bench, Cost, CostCurve, Disagreement, bench, crossover, measure
from separatrix.assess.growth import Growth
from separatrix.assess.likeness import Likeness, likenesses
from separatrix.assess.standing import Standing, Unanswered, points, standings

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


class _CallableRoom(ModuleType):
    """Once this room is imported, `separatrix.assess` is the room: it can be called like its function."""

    def __call__(self, *words: Any, **options: Any) -> Card:
        return assess(*words, **options)


sys.modules[__name__].__class__ = _CallableRoom
