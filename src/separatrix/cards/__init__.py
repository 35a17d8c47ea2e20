"""Report cards: what a mechanism can tell apart, and what it costs."""

from separatrix.cards.blindness import Blindness
from separatrix.cards.card import Card, assess
from separatrix.cards.likeness import Likeness, likenesses
from separatrix.cards.margin_growth import Growth
from separatrix.cards.standing import Standing, Unanswered, points, standings
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
