"""How much a run computes: the full report, or less of the same for a quick look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True)
class Effort:
    """The sizes that decide how long a run takes. What is computed at a point does not depend on them."""

    plan: str = "paper"
    """The plan of the six sweeps."""
    thin: int = 1
    """Of the margins and of Hoeffding's bounds every `thin`-th is computed."""
    map_side: int = 241
    """Points along each axis of the phase map."""

    def thinned(self, values: Sequence[Item]) -> tuple[Item, ...]:
        """Every `thin`-th value, and the last.

        >>> Effort(thin=3).thinned([1, 2, 3, 4, 5, 6])
        (1, 4, 6)
        """
        kept = values[:: self.thin]
        return (*kept, *values[-1:]) if (len(values) - 1) % self.thin else tuple(kept)


FULL = Effort()
