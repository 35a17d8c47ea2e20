"""The number of tokens from which on a mechanism is blind."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from separatrix.analysis.cards.outcomes import MOST_GROUPS, at_length, quickly_found_at
from separatrix.constructions import Construction
from separatrix.exact.engines import ENGINES, EngineRefusal
from separatrix.exact.verdicts import DELTA, Verdict
from separatrix.exact.verdicts.words import FAILURES

FARTHEST = 10**12
"""Where the search begins; with literal tokens, which cost more, it begins at the verdict's own length."""
FAR_STEP, NEAR_STEP = 10, 4
"""By how much a length is divided on the way down: with token groups, and with literal tokens."""
CLOSE = 1.5
"""With token groups, sampled answers are narrowed down to this ratio; exact ones to neighbouring lengths."""


@dataclass(frozen=True)
class Blindness:
    """The least length found from which on the verdict is `blind`; None if it is not where the search began.

    The search goes down a ladder of lengths until one is not blind and then bisects, except with literal
    tokens. Between the lengths it tried, nothing is known. An undecided verdict is not blind.
    """

    start: int | None
    searched_to: int
    exact: bool
    """Whether no answer on the way was sampled."""


def blindness(verdict: Verdict) -> Blindness:
    """The length from which on it is blind, searched from far down, or literally from the verdict's own."""
    search, point = _Search(verdict), verdict.construction
    literal = ENGINES[verdict.outcome.engine].literal
    beyond = () if literal else _beyond(point)
    top = next((n for n in beyond if search.answers(n)), point.n)
    if not search.blind(top):
        return Blindness(None, top, search.exact)
    ratio = NEAR_STEP if literal else FAR_STEP
    good, below = top, search.down(top, ratio)
    while below is not None and search.blind(below):
        good, below = below, search.down(below, ratio)
    if below is not None and not literal:
        good = search.between(below, good)
    return Blindness(good, top, search.exact)


def _beyond(point: Construction) -> Iterator[int]:
    """Lengths at which the search may begin, the farthest first."""
    n = FARTHEST
    while n > point.n:
        there = at_length(point, n)
        if there is not None and there.group_count() <= MOST_GROUPS:
            yield there.n
        n //= FAR_STEP


class _Search:
    """Whether lengths are blind, each asked once."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict, self.point = verdict, verdict.construction
        self.exact = not ENGINES[verdict.outcome.engine].draws
        self._known: dict[int, bool | None] = {self.point.n: verdict.word in FAILURES}

    def answers(self, n: int) -> bool:
        """Whether some engine answers there."""
        return self._ask(n) is not None

    def blind(self, n: int) -> bool:
        """Whether the verdict there is `blind`; where no engine answers, it is not."""
        return self._ask(n) is True

    def _ask(self, n: int) -> bool | None:
        if n not in self._known:
            self._known[n] = self._find(n)
        return self._known[n]

    def _find(self, n: int) -> bool | None:
        there = at_length(self.point, n)
        assert there is not None
        try:
            outcome = quickly_found_at(there, self.verdict.mechanism, (DELTA,))
        except EngineRefusal:
            return None
        self.exact = self.exact and not ENGINES[outcome.engine].draws
        return Verdict(there, self.verdict.mechanism, outcome, DELTA).word in FAILURES

    def down(self, n: int, ratio: int) -> int | None:
        """The next length of the ladder below n, if there is one; sampled, the verdict's own comes next."""
        sampled = not self.exact and n > self.point.n
        there = self.point if sampled else at_length(self.point, max(1, n // ratio))
        return None if there is None or there.n >= n else there.n

    def between(self, below: int, good: int) -> int:
        """The least blind length above `below`, by bisection on log axes."""
        step = self.point.step
        low, high = below // step, good // step
        while high - low > 1 and (self.exact or high > CLOSE * low):
            middle = max(low + 1, math.isqrt(low * high))
            low, high = (low, middle) if self.blind(middle * step) else (middle, high)
        return high * step
