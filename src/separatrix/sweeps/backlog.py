"""What is still to be computed: cells that are not stored, not on their way, and not another sweep's."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import islice

from separatrix.sweeps.batches import Cells
from separatrix.sweeps.progress import Progress
from separatrix.sweeps.store import Status, Store
from separatrix.sweeps.store.claims import Claims
from separatrix.sweeps.store.rows import now
from separatrix.sweeps.work import Planned, Work

LOOKED_UP = 2000
"""Cells that are looked up in the store at once."""
GLANCE = 1.0
"""Seconds between two looks at what other sweeps have finished or left."""


class Backlog:
    """The cells of a plan that this run of it has to compute; it counts all others in its progress."""

    def __init__(self, plan: Planned, store: Store, retry_failed: bool, progress: Progress) -> None:
        self._plan, self._store, self._progress = plan, store, progress
        self._retry_failed, self._began = retry_failed, now()
        self._claims = Claims(store)
        self._flying: set[str] = set()
        """Cells that were taken, and are not yet stored."""
        self._failed: set[str] = set()
        """Cells that failed in this run: they are not tried twice."""
        self._elsewhere: dict[str, Work] = {}
        """Cells that another sweep computes."""
        self._looked = 0.0
        """When it was last seen what became of those."""
        self.waiting = False
        """Whether nothing is left but what another sweep computes."""

    def found(self) -> Iterator[Sequence[Work]]:
        """Cells that were free a moment ago, looked up shortly before they are needed.

        None at all stands for a look that found none. Those that other sweeps leave come last; it ends when
        every cell of the plan is stored or taken.
        """
        number = self._store.begin_sweep(self._plan.key, self._plan.name, self._plan.text)
        self._progress.sweep = number
        cells = iter(self._plan)
        while some := list(islice(cells, LOOKED_UP)):
            self._store.belong(number, [(cell.id, part) for part, cell in some])
            yield self._free([cell for _, cell in some])
            if self._elsewhere and self._is_time():
                yield self._left_by_others()
        self.waiting = True
        while self._elsewhere:
            yield self._left_by_others() if self._is_time() else ()

    def take(self, cells: Cells, most: int) -> tuple[Cells, Cells]:
        """Take at most so many of the cells: those, and what is left of the others."""
        taken = self._claims.take(
            [cell.id for cell in cells], most, self._began if self._retry_failed else ""
        )
        mine, left = list[Work](), list[Work]()
        for cell in cells:
            if cell.id in taken.mine:
                mine.append(cell)
            elif cell.id in taken.stored:
                self._count(taken.stored[cell.id], shared=True)
            elif cell.id in taken.held:
                self._elsewhere[cell.id] = cell
            else:
                left.append(cell)
        self._flying.update(taken.mine)
        self._progress.elsewhere = len(self._elsewhere)
        return tuple(mine), tuple(left)

    @property
    def flying(self) -> int:
        """How many cells were taken, and are not stored."""
        return len(self._flying)

    def land(self, cell: Work, status: Status) -> None:
        """Note that a cell was stored."""
        self._flying.discard(cell.id)
        if status is Status.FAILED:
            self._failed.add(cell.id)

    def renew(self) -> None:
        """Tell other sweeps that this one lives."""
        self._claims.renew()

    def release(self) -> None:
        """Leave to other sweeps what is not stored."""
        self._claims.release()

    def abandon(self) -> None:
        """Leave to other sweeps what is not stored, where the store does not answer."""
        self._claims.abandon()

    def _free(self, cells: Sequence[Work], shared: bool = False) -> list[Work]:
        stored = self._store.finished([cell.id for cell in cells])
        lacking = [cell.id for cell in cells if self._is_lacking(stored.get(cell.id))]
        held = self._claims.held(lacking) if lacking else set()
        found: dict[str, Work] = {}
        for cell in cells:
            if any(cell.id in known for known in (found, self._flying, self._failed, self._elsewhere)):
                self._progress.twice += 1
            elif not self._is_lacking(stored.get(cell.id)):
                self._count(stored[cell.id], shared)
            elif cell.id in held:
                self._elsewhere[cell.id] = cell
            else:
                found[cell.id] = cell
        self._progress.elsewhere = len(self._elsewhere)
        return list(found.values())

    def _left_by_others(self) -> list[Work]:
        """The cells that others had, that nobody has now, and that are not stored."""
        self._claims.bury()
        cells, self._elsewhere = list(self._elsewhere.values()), {}
        self._looked = time.monotonic()
        return self._free(cells, shared=True)

    def _is_time(self) -> bool:
        return time.monotonic() - self._looked > GLANCE

    def _is_lacking(self, status: Status | None) -> bool:
        return status is None or (status is Status.FAILED and self._retry_failed)

    def _count(self, status: Status, shared: bool) -> None:
        if status is Status.FAILED:
            self._progress.failed_before += 1
        elif shared:
            self._progress.shared += 1
        else:
            self._progress.kept += 1
