"""The number of tokens from which on a mechanism is blind."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from separatrix.analysis.cards.outcomes import MAX_GROUPS, at_length, solve_quickly
from separatrix.constructions import Construction
from separatrix.core.documents import Document
from separatrix.exact.engines import ENGINES, EngineRefusal
from separatrix.exact.verdicts import DELTA, Verdict
from separatrix.exact.verdicts.words import FAILURES

MAX_LENGTH = 10**12
"""The search begins here; with literal tokens, which cost more, at the length of the verdict."""
GROUPED_STEP, LITERAL_STEP = 10, 4
"""The ratio of lengths on the way down: with token groups, and with literal tokens."""
SAMPLED_RATIO = 1.5
"""With token groups, sampled answers are narrowed down to this ratio; exact ones to neighbouring lengths."""


@dataclass(frozen=True)
class Blindness(Document):
    """The range of lengths at which a mechanism is blind or saturated.

    The search goes down a ladder of lengths until one is not blind and then bisects, except with literal
    tokens. Nothing is known between the lengths that were tried. An undecided verdict is not blind.
    """

    blind_from_n: int | None
    """The least length found from which on the verdict is blind; None if it is not where the search began."""
    blind_searched_to: int
    blind_from_n_is: Literal["exact", "sampled"]
    """`exact` if no answer on the way was sampled."""


def find_blindness(verdict: Verdict) -> Blindness:
    """Search downwards for the length from which on a mechanism is blind."""
    search, point = _BlindnessSearch(verdict), verdict.construction
    is_literal = ENGINES[verdict.outcome.engine].literal
    candidates = () if is_literal else _lengths_beyond(point)
    top = next((n for n in candidates if search.answer_at(n) is not None), point.n)
    if not search.is_blind(top):
        return Blindness(None, top, search.evidence)
    ratio = LITERAL_STEP if is_literal else GROUPED_STEP
    blind, below = top, search.next_below(top, ratio)
    while below is not None and search.is_blind(below):
        blind, below = below, search.next_below(below, ratio)
    if below is not None and not is_literal:
        blind = search.bisect(below, blind)
    return Blindness(blind, top, search.evidence)


def _lengths_beyond(point: Construction) -> Iterator[int]:
    """Yield the lengths at which the search may begin, the largest first."""
    n = MAX_LENGTH
    while n > point.n:
        candidate = at_length(point, n)
        if candidate is not None and candidate.group_count() <= MAX_GROUPS:
            yield candidate.n
        n //= GROUPED_STEP


class _BlindnessSearch:
    """Answers of the engines at several lengths, each computed once."""

    def __init__(self, verdict: Verdict) -> None:
        self.mechanism, self.point = verdict.mechanism, verdict.construction
        self.is_exact = not ENGINES[verdict.outcome.engine].draws
        self._answers: dict[int, bool | None] = {self.point.n: verdict.word in FAILURES}

    @property
    def evidence(self) -> Literal["exact", "sampled"]:
        return "exact" if self.is_exact else "sampled"

    def is_blind(self, n: int) -> bool:
        """Whether the verdict at n is blind or saturated; it is not where no engine answers."""
        return self.answer_at(n) is True

    def answer_at(self, n: int) -> bool | None:
        """Whether the verdict at n is blind or saturated; None where no engine answers."""
        if n not in self._answers:
            self._answers[n] = self._solve(n)
        return self._answers[n]

    def _solve(self, n: int) -> bool | None:
        point = at_length(self.point, n)
        assert point is not None
        try:
            outcome = solve_quickly(point, self.mechanism, (DELTA,))
        except EngineRefusal:
            return None
        self.is_exact = self.is_exact and not ENGINES[outcome.engine].draws
        return Verdict(point, self.mechanism, outcome, DELTA).word in FAILURES

    def next_below(self, n: int, ratio: int) -> int | None:
        """Return the next length of the ladder below n, if there is one."""
        # Sampling far out is expensive and decides little: go straight to the length of the verdict.
        skips = not self.is_exact and n > self.point.n
        point = self.point if skips else at_length(self.point, max(1, n // ratio))
        return None if point is None or point.n >= n else point.n

    def bisect(self, below: int, blind: int) -> int:
        """Return the least blind length above `below`, by bisection on a log scale."""
        # Admissible lengths are multiples of the step; a geometric middle suits a range of many decades.
        step = self.point.step
        low, high = below // step, blind // step
        while high - low > 1 and (self.is_exact or high > SAMPLED_RATIO * low):
            middle = max(low + 1, math.isqrt(low * high))
            low, high = (low, middle) if self.is_blind(middle * step) else (middle, high)
        return high * step
