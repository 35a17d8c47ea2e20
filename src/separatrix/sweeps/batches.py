"""How many cells go to a worker together: many where they are cheap, one where they are not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from separatrix.sweeps.cell import Cell
from separatrix.sweeps.work import Batch

AIM = 0.5
"""Seconds that a batch should take: the cost of sending it is then nothing."""
MOST_CELLS = 2000
GROWTH = 8
"""How much larger than the last batch of its kind one may be."""
MEMORY = 0.5
"""The weight of the newest batch in what a cell is thought to cost."""

Kind = tuple[str, str, str]


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

    def batches(self, cells: Iterator[Cell | None]) -> Iterator[Batch | None]:
        """The cells in order, each batch of one kind; its size is settled when it is asked for.

        None among the cells says that none came for a while; it is passed on after what was held back.
        """
        held: list[Cell] = []
        for cell in cells:
            full = held and (cell is None or cell.kind != held[0].kind or len(held) >= self.size(cell.kind))
            if full:
                yield Batch(tuple(held))
                held = []
            if cell is None:
                yield None
            else:
                held.append(cell)
        if held:
            yield Batch(tuple(held))
