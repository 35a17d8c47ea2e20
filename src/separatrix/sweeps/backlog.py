"""The backlog of a sweep: cells that are neither stored nor computed by another sweep, cut into batches."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from operator import attrgetter

from separatrix.sweeps.progress import Progress
from separatrix.sweeps.store import CellStatus, Store
from separatrix.sweeps.store.leases import Leases
from separatrix.sweeps.store.rows import utc_now
from separatrix.sweeps.work import WorkBatch, WorkItem, WorkPlan

LOOKUP_SIZE = 2000
"""Cells that are looked up in the store at once."""
LOOK_SECONDS = 1.0
"""Seconds between two looks at what other sweeps have finished or left."""
TARGET_SECONDS = 0.5
"""The computing time of a batch; the cost of sending it is then negligible."""
MAX_BATCH = 2000
MAX_GROWTH = 8
"""The factor by which a batch may be larger than any earlier one of its cost key."""
NEW_WEIGHT = 0.5
"""The weight of the newest batch in the estimated cost of a cell."""

CostKey = tuple[str, ...]


class BatchSizes:
    """Chooses the sizes of batches by the cost of earlier ones."""

    def __init__(self) -> None:
        self._cost: dict[CostKey, float] = {}
        self._largest: dict[CostKey, int] = defaultdict(lambda: 1)

    def choose(self, key: CostKey) -> int:
        """Return the number of cells for the next batch of a cost key."""
        if key not in self._cost:
            return 1
        affordable = int(TARGET_SECONDS / max(self._cost[key], 1e-9))
        return max(1, min(affordable, MAX_GROWTH * self._largest[key], MAX_BATCH))

    def learn(self, batch: WorkBatch, seconds: Sequence[float]) -> None:
        """Include the computing times of the cells of a batch."""
        key, mean = batch.items[0].cost_key, sum(seconds) / len(seconds)
        self._cost[key] = NEW_WEIGHT * mean + (1 - NEW_WEIGHT) * self._cost.get(key, mean)
        self._largest[key] = max(self._largest[key], len(seconds))


class Backlog:
    """The cells of a plan that this run has to compute; all others are counted in its progress."""

    def __init__(self, plan: WorkPlan, store: Store, retry_failed: bool, progress: Progress) -> None:
        self._plan, self._store, self._progress = plan, store, progress
        self._retry_failed, self._began = retry_failed, utc_now()
        self.leases, self.sizes = Leases(store), BatchSizes()
        self._leased: set[str] = set()
        """Cells of this run that are not stored yet."""
        self._failed: set[str] = set()
        """Cells that failed in this run, which are not tried again."""
        self._elsewhere: dict[str, WorkItem] = {}
        """Cells that another sweep computes."""
        self._last_look = 0.0
        self.is_waiting = False
        """Whether only cells that another sweep computes are left."""

    def batches(self) -> Iterator[WorkBatch | None]:
        """Yield batches of leased cells with one cost key; None if a look at the store found no cells.

        Cells are looked up shortly before they are needed. Those that other sweeps leave come last. It ends
        when every cell of the plan is stored or leased.
        """
        for cells in self._find_cells():
            if not cells:
                yield None
            for key, group in groupby(cells, key=attrgetter("cost_key")):
                remaining = list(group)
                while remaining:
                    mine, remaining = self._lease(remaining, self.sizes.choose(key))
                    if mine:
                        yield WorkBatch(tuple(mine))

    def _find_cells(self) -> Iterator[Sequence[WorkItem]]:
        number = self._store.begin_sweep(self._plan.key, self._plan.name, self._plan.text)
        self._progress.number = number
        cells = iter(self._plan)
        while chunk := list(islice(cells, LOOKUP_SIZE)):
            self._store.add_members(number, [(cell.id, part) for part, cell in chunk])
            yield self._find_free([cell for _, cell in chunk])
            if self._elsewhere and self._is_time():
                yield self._find_left_by_others()
        self.is_waiting = True
        while self._elsewhere:
            yield self._find_left_by_others() if self._is_time() else ()

    def _lease(self, cells: Sequence[WorkItem], limit: int) -> tuple[list[WorkItem], list[WorkItem]]:
        """Lease at most so many cells; return them, and those that remain free."""
        since = self._began if self._retry_failed else ""
        leased_cells = self.leases.acquire([cell.id for cell in cells], limit, since)
        mine, remaining = list[WorkItem](), list[WorkItem]()
        for cell in cells:
            if cell.id in leased_cells.mine:
                mine.append(cell)
            elif cell.id in leased_cells.stored:
                self._count(leased_cells.stored[cell.id], by_others=True)
            elif cell.id in leased_cells.others:
                self._elsewhere[cell.id] = cell
            else:
                remaining.append(cell)
        self._leased.update(leased_cells.mine)
        self._progress.elsewhere = len(self._elsewhere)
        return mine, remaining

    @property
    def leased_count(self) -> int:
        """The number of cells of this run that are not stored yet."""
        return len(self._leased)

    def note_stored(self, cell: WorkItem, status: CellStatus) -> None:
        """Record that a cell was stored."""
        self._leased.discard(cell.id)
        if status is CellStatus.FAILED:
            self._failed.add(cell.id)

    def _find_free(self, cells: Sequence[WorkItem], by_others: bool = False) -> list[WorkItem]:
        statuses = self._store.find_statuses([cell.id for cell in cells])
        missing = [cell.id for cell in cells if self._is_missing(statuses.get(cell.id))]
        leased_elsewhere = self.leases.find_others(missing) if missing else set()
        free: dict[str, WorkItem] = {}
        for cell in cells:
            if any(cell.id in group for group in (free, self._leased, self._failed, self._elsewhere)):
                self._progress.twice += 1
            elif not self._is_missing(statuses.get(cell.id)):
                self._count(statuses[cell.id], by_others)
            elif cell.id in leased_elsewhere:
                self._elsewhere[cell.id] = cell
            else:
                free[cell.id] = cell
        self._progress.elsewhere = len(self._elsewhere)
        return list(free.values())

    def _find_left_by_others(self) -> list[WorkItem]:
        """The cells that other sweeps had leased, that none of them computes now, and that are not stored."""
        self.leases.release_dead_runs()
        cells, self._elsewhere = list(self._elsewhere.values()), {}
        self._last_look = time.monotonic()
        return self._find_free(cells, by_others=True)

    def _is_time(self) -> bool:
        return time.monotonic() - self._last_look > LOOK_SECONDS

    def _is_missing(self, status: CellStatus | None) -> bool:
        return status is None or (status is CellStatus.FAILED and self._retry_failed)

    def _count(self, status: CellStatus, by_others: bool) -> None:
        if status is CellStatus.FAILED:
            self._progress.failed_before += 1
        elif by_others:
            self._progress.shared += 1
        else:
            self._progress.kept += 1
