"""The sweeps of a store: listing them, finding one by name or number, and counting their cells."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, func, join, literal_column, select

from separatrix.core.documents import Document, Hidden, shown
from separatrix.core.parameters import UsageError, nearest
from separatrix.core.schemas._base import Whole
from separatrix.sweeps.store.errors import Damage, StoreError
from separatrix.sweeps.store.leases import count_living_runs
from separatrix.sweeps.store.reader import Reader
from separatrix.sweeps.store.rows import CellStatus, Sweep
from separatrix.sweeps.store.schema import cells, members
from separatrix.sweeps.store.store import Store

NAME_PREFIX = "name:"
"""Stands before the name of a sweep that is a number."""


def list_sweeps(store: Store) -> tuple[list[Sweep], Damage]:
    """Return every intact sweep with the number of its stored cells, oldest first, and the damage."""
    with store.reading() as connection:
        reader = Reader(store, connection)
        sweeps = reader.read_sweeps()
        counts = _count_members(connection, func.count(func.distinct(cells.c.id)))
        reader.check_count(cells, uses_index=True)
    return [replace(sweep, cells=counts.get(sweep.id, 0)) for sweep in sweeps], reader.damage


def find_sweep(store: Store, name: str) -> int:
    """Return the number of a sweep: `7` is number 7, any other name the newest sweep of that name.

    `name:7` finds a sweep whose name is a number.
    """
    with store.reading() as connection:
        reader = Reader(store, connection)
        sweeps = reader.read_sweeps()
    plain_name = name.removeprefix(NAME_PREFIX)
    if name == plain_name and name.isdecimal():
        numbers = [sweep.id for sweep in sweeps if sweep.id == int(name)]
    else:
        numbers = [sweep.id for sweep in sweeps if sweep.name == plain_name]
    if numbers:
        return numbers[-1]
    if reader.damage:
        raise StoreError(f"there is no sweep {name}, but {reader.damage.warning}")
    names = list(dict.fromkeys(sweep.name for sweep in sweeps))
    if name in names:
        raise UsageError(f"there is no sweep number {name}; the sweep of that name is {NAME_PREFIX}{name}")
    name_list = f"there are: {', '.join(names)}" if names else "there are none"
    raise UsageError(f"there is no sweep {plain_name} in {store.location}{nearest(plain_name, names)}; {name_list}")


@dataclass(frozen=True)
class GrowingSweep(Document):
    """A sweep, and the number of its cells that are computed."""

    id: int
    name: str
    started: str
    cells: Whole
    stored: Whole
    """Cells that are stored, each once for each part of the plan that names it."""
    planned: Whole
    """Cells of its plan, counted in the same way."""
    not_done: dict[str, int]
    """How many of the stored ones were refused or failed."""
    plan: Hidden[str]


@dataclass(frozen=True)
class StoreContents(Document):
    """The present content of the store."""

    store: str
    """Its address without passwords."""
    cells: Whole
    kinds: dict[str, int]
    running: Whole
    """Runs of sweeps that renewed their leases within the last minute."""
    sweeps: list[GrowingSweep]
    damage: Hidden[Damage]

    @shown
    def warning(self) -> str | None:
        """A description of the damage, if there is any."""
        return self.damage.warning if self.damage else None


def read_progress(store: Store) -> StoreContents:
    """Count the cells of every sweep, cheaply enough to be repeated every second: no cell is read.

    As `planned` it counts the members: a running sweep adds them shortly before it computes them.
    """
    with store.reading() as connection:
        reader = Reader(store, connection)
        sweeps = reader.read_sweeps()
        query = select(cells.c.kind, cells.c.status, func.count()).group_by(cells.c.kind, cells.c.status)
        statuses = [(str(kind), str(status), int(count)) for kind, status, count in connection.execute(query)]
        member_counts: dict[int, int] = dict(
            connection.execute(select(members.c.sweep, func.count()).group_by(members.c.sweep)).all()
        )
        stored_counts = _count_members(connection, func.count())
        cell_counts = _count_members(connection, func.count(func.distinct(members.c.cell)))
        unsuccessful = defaultdict[int, dict[str, int]](dict)
        if any(status != CellStatus.DONE for _, status, _ in statuses):
            for number, status, count in connection.execute(_count_unsuccessful(store)):
                unsuccessful[number][str(status)] = int(count)
        kinds = Counter[str]()
        for kind, _, count in statuses:
            kinds[kind] += count
        reader.compare_with_index(cells, kinds.total())
        running = count_living_runs(connection)
    progress = [
        GrowingSweep(
            *(sweep.id, sweep.name, sweep.started, cell_counts.get(sweep.id, 0)),
            *(stored_counts.get(sweep.id, 0), member_counts.get(sweep.id, 0), unsuccessful[sweep.id], sweep.plan),
        )
        for sweep in sweeps
    ]
    return StoreContents(store.location, kinds.total(), dict(kinds), running, progress, reader.damage)


def _count_members(connection: Connection, count: Any) -> dict[int, int]:
    """A count over the stored cells of each sweep."""
    query = select(members.c.sweep, count).join(cells, cells.c.id == members.c.cell)
    return dict(connection.execute(query.group_by(members.c.sweep)).all())


def _count_unsuccessful(store: Store) -> Any:
    # The plus sign keeps SQLite from looking up every member: it searches the few unsuccessful cells first.
    identity: Any = literal_column("+cells.id") if store.dialect == "sqlite" else cells.c.id
    cells_and_members = join(cells, members, members.c.cell == identity)
    query = select(members.c.sweep, cells.c.status, func.count()).select_from(cells_and_members)
    is_unsuccessful = cells.c.status != CellStatus.DONE.value
    return query.where(is_unsuccessful).group_by(members.c.sweep, cells.c.status)
