"""How many cells go to a worker together: many where they are cheap, one where they are not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from separatrix.sweeps.work import Batch, Work

AIM = 0.5
"""Seconds that a batch should take: the cost of sending it is then nothing."""
MOST_CELLS = 2000
GROWTH = 8
"""How much larger than the last batch of its cost key one may be."""
MEMORY = 0.5
"""The weight of the newest batch in what a cell is thought to cost."""

CostKey = tuple[str, ...]
Cells = tuple[Work, ...]
Take = Callable[[Cells, int], tuple[Cells, Cells]]
"""Takes at most so many of the cells: those, and what is left of the others."""


class Batcher:
    """Cuts cells into batches, and learns from those that come back."""

    def __init__(self) -> None:
        self._cost: dict[CostKey, float] = {}
        self._largest: dict[CostKey, int] = defaultdict(lambda: 1)

    def size(self, key: CostKey) -> int:
        """How many cells of one cost key the next batch should hold."""
        if key not in self._cost:
            return 1
        wanted = int(AIM / max(self._cost[key], 1e-9))
        return max(1, min(wanted, GROWTH * self._largest[key], MOST_CELLS))

    def learn(self, batch: Batch, seconds: Sequence[float]) -> None:
        """Take note of what the cells of a batch cost."""
        key, mean = batch.cells[0].cost_key, sum(seconds) / len(seconds)
        known = self._cost.get(key, mean)
        self._cost[key] = MEMORY * mean + (1 - MEMORY) * known
        self._largest[key] = max(self._largest[key], len(seconds))

    def batches(self, found: Iterable[Sequence[Work]], take: Take) -> Iterator[Batch | None]:
        """Cells in order, some at a time, in batches of one cost key; a size is settled when it is asked for.

        None stands for a time at which no cells were found.
        """
        for cells in found:
            if not cells:
                yield None
            for key, alike in groupby(cells, key=attrgetter("cost_key")):
                left = tuple(alike)
                while left:
                    mine, left = take(left, self.size(key))
                    if mine:
                        yield Batch(mine)
