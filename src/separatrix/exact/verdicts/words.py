"""The words of verdicts."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from separatrix.exact.engines.outcome import Outcome, fires_on_both, side_of

Word = Literal["distinguishes", "blind", "saturated", "partial", "undecided"]
FAILURES: tuple[Word, ...] = ("blind", "saturated")
"""The words for P <= delta: the reader does not tell D0 from D1."""


def word_for(outcome: Outcome, m: int, delta: Fraction) -> Word:
    """Return the verdict on an outcome with m sign vectors.

    - `distinguishes`: P >= 1 - delta;
    - `saturated`: P <= delta, and the reader fires on both D0 and D1 with probability 1/2 or more;
    - `blind`: P <= delta otherwise, so the reader rarely fires on D1;
    - `partial`: P lies between;
    - `undecided`: the evidence leaves it open.
    """
    # Ties belong to the stronger word: P = 1 - delta distinguishes, P = delta fails.
    upper, lower = side_of(outcome, m, 1 - delta), side_of(outcome, m, delta)
    if upper in (0, 1):
        return "distinguishes"
    if lower in (0, -1):
        return "saturated" if fires_on_both(outcome, m) else "blind"
    # `partial` claims both that P > delta and that P < 1 - delta: one of the two alone is not enough.
    return "partial" if (lower, upper) == (1, -1) else "undecided"


def separates(winner: str, loser: str) -> bool:
    """Whether the first of two words is `distinguishes` and the second a failure."""
    return winner == "distinguishes" and loser in FAILURES
