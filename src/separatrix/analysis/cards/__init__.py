"""Report cards: what a mechanism can tell apart, and what it costs."""

from separatrix.analysis.cards.blindness import Blindness
from separatrix.analysis.cards.card import Card, assess
from separatrix.analysis.cards.likeness import Likeness, likenesses
from separatrix.analysis.cards.margin_growth import Growth
from separatrix.analysis.cards.standing import Standing, Unanswered, points, standings
from separatrix.mechanisms.calling import Calling

__all__ = [
    "Blindness",
    "Calling",
    "Card",
    "Growth",
    "Likeness",
    "Standing",
    "Unanswered",
    "assess",
    "likenesses",
    "points",
    "standings",
]
