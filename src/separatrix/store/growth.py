"""How far sweeps are, for one who looks again and again: counts alone, no cell is read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlalchemy import func, select

from separatrix.store.claims import living_runs
from separatrix.store.damage import Damage
from separatrix.store.migrations import KINDS_KNOWN
from separatrix.store.rows import Status, Sweep
from separatrix.store.scan import Scan
from separatrix.store.schema import VERDICT, cells, sweep_cells
from separatrix.store.store import Store

CLAIMED = 4
"""The version of a store since which runs give signs of life."""


@dataclass(frozen=True)
class SweepGrowth:
    """A sweep, and how many of its cells are there."""

    sweep: Sweep
    noted: int
    """Cells that are known to belong to it, each once for each part that names it; a sweep that runs notes
    them a little before it computes them."""
    stored: int
    """How many of these are stored."""
    ended: dict[str, int]
    """Those that are stored, by how they ended; a cell of several parts counts once."""


@dataclass(frozen=True)
class Growth:
    """What a store holds just now."""

    cells: int
    kinds: dict[str, int]
    """How many cells there are of each kind of work."""
    running: int
    """Runs of sweeps, on any machine, that gave a sign of life within the last minute."""
    sweeps: tuple[SweepGrowth, ...]
    damage: Damage


def growth(store: Store) -> Growth:
    """How far every sweep of a store is."""
    with store.reading() as connection:
        scan = Scan(store, connection)
        known = scan.sweeps()
        noted = select(sweep_cells.c.sweep, func.count()).group_by(sweep_cells.c.sweep)
        belongs: dict[int, int] = dict(connection.execute(noted).all())
        columns = (sweep_cells.c.sweep, cells.c.status)
        counted = (
            select(*columns, func.count(), func.count(func.distinct(cells.c.id)))
            .join(cells, cells.c.id == sweep_cells.c.cell)
            .group_by(*columns)
        )
        stored = connection.execute(counted).all()
        kind = cells.c.kind if store.version >= KINDS_KNOWN else func.coalesce(VERDICT)
        kinds = dict(connection.execute(select(kind, func.count()).select_from(cells).group_by(kind)).all())
        scan.compare("cells", "cells", sum(kinds.values()))
        running = living_runs(connection) if store.version >= CLAIMED else 0
    found = [
        SweepGrowth(
            sweep=replace(each, cells=sum(once for number, _, _, once in stored if number == each.id)),
            noted=belongs.get(each.id, 0),
            stored=sum(rows for number, _, rows, _ in stored if number == each.id),
            ended={_ended(status): once for number, status, _, once in stored if number == each.id},
        )
        for each in known
    ]
    return Growth(
        sum(kinds.values()), {str(x): y for x, y in kinds.items()}, running, tuple(found), scan.damage
    )


def _ended(status: object) -> str:
    return str(status) if status in list(Status) else "altered"
