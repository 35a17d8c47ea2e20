"""How many cells go to a worker together: many where they are cheap, one where they are not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from separatrix.sweeps.verdict_cells import Cell
from separatrix.sweeps.worker import Batch

AIM = 0.5
"""Seconds that a batch should take: the cost of sending it is then nothing."""
MOST_CELLS = 2000
GROWTH = 8
"""How much larger than the last batch of its kind one may be."""
MEMORY = 0.5
"""The weight of the newest batch in what a cell is thought to cost."""

Kind = tuple[str, str, str]
Cells = tuple[Cell, ...]
Take = Callable[[Cells, int], tuple[Cells, Cells]]
"""Takes at most so many of the cells: those, and what is left of the others."""


class Batcher:
    """Cuts cells into batches, and learns from those that come back."""

    def __init__(self) -> None:
        self._cost: dict[Kind, float] = {}
        self._largest: dict[Kind, int] = defaultdict(lambda: 1)

    def size(self, kind: Kind) -> int:
        """How many cells of a kind the next batch should hold."""
        if kind not in self._cost:
            return 1
        wanted = int(AIM / max(self._cost[kind], 1e-9))
        return max(1, min(wanted, GROWTH * self._largest[kind], MOST_CELLS))

    def learn(self, batch: Batch, seconds: Sequence[float]) -> None:
        """Take note of what the cells of a batch cost."""
        kind, mean = batch.cells[0].kind, sum(seconds) / len(seconds)
        known = self._cost.get(kind, mean)
        self._cost[kind] = MEMORY * mean + (1 - MEMORY) * known
        self._largest[kind] = max(self._largest[kind], len(seconds))

    def batches(self, found: Iterable[Sequence[Cell]], take: Take) -> Iterator[Batch | None]:
        """Cells in order, some at a time, in batches of one kind; a size is settled when it is asked for.

        None stands for a time at which no cells were found.
        """
        for cells in found:
            if not cells:
                yield None
            for kind, alike in groupby(cells, key=attrgetter("kind")):
                left = tuple(alike)
                while left:
                    mine, left = take(left, self.size(kind))
                    if mine:
                        yield Batch(mine)
