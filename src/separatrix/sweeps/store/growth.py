"""How far sweeps are, for one who looks again and again: counts alone, no cell is read."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Select, func, join, literal, select

from separatrix.sweeps.store.claims import living_runs
from separatrix.sweeps.store.damage import Damage
from separatrix.sweeps.store.migrations import KINDS_KNOWN
from separatrix.sweeps.store.rows import Status, Sweep
from separatrix.sweeps.store.scan import UNINDEXED, Scan
from separatrix.sweeps.store.schema import VERDICT, cells, sweep_cells
from separatrix.sweeps.store.store import Store

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
    not_done: dict[str, int]
    """How many of the stored ones were refused or failed, where any were."""


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
    """How far every sweep of a store is.

    Members are looked for by their identity alone, and cells are gone through once: a row is looked up only
    of what was refused or failed.
    """
    with store.reading() as connection:
        scan = Scan(store, connection)
        known = scan.sweeps()
        kind = cells.c.kind if store.version >= KINDS_KNOWN else literal(VERDICT).label("kind")
        counted = (
            select(kind, cells.c.status, func.count()).select_from(cells).group_by("kind", cells.c.status)
        )
        ended = [(str(what), str(status), int(count)) for what, status, count in connection.execute(counted)]
        noted = _by_sweep(connection, select(sweep_cells.c.sweep, func.count()))
        present = select(sweep_cells.c.sweep, func.count()).join(cells, cells.c.id == sweep_cells.c.cell)
        stored = _by_sweep(connection, present)
        once = select(sweep_cells.c.sweep, func.count(func.distinct(sweep_cells.c.cell)))
        different = _by_sweep(connection, once.join(cells, cells.c.id == sweep_cells.c.cell))
        not_done = defaultdict[int, dict[str, int]](dict)
        if any(status != Status.DONE for _, status, _ in ended):
            asked = _not_done(scan.sqlite)
            for number, status, count in connection.execute(asked):
                not_done[number][str(status)] = int(count)
        total = sum(count for *_, count in ended)
        scan.compare("cells", "cells", total)
        running = living_runs(connection) if store.version >= CLAIMED else 0
    kinds = Counter[str]()
    for what, _, count in ended:
        kinds[what] += count
    found = tuple(
        SweepGrowth(
            replace(each, cells=different.get(each.id, 0)),
            noted.get(each.id, 0),
            stored.get(each.id, 0),
            not_done[each.id],
        )
        for each in known
    )
    return Growth(total, dict(kinds), running, found, scan.damage)


def _by_sweep(connection: Connection, counted: Select[Any]) -> dict[int, int]:
    return dict(connection.execute(counted.group_by(sweep_cells.c.sweep)).all())


def _not_done(sqlite: bool) -> Select[Any]:
    """Cells that were refused or failed, by sweep; SQLite is to look for these first."""
    member: Any = UNINDEXED if sqlite else cells.c.id
    both = join(cells, sweep_cells, sweep_cells.c.cell == member)
    asked = select(sweep_cells.c.sweep, cells.c.status, func.count()).select_from(both)
    return asked.where(cells.c.status != Status.DONE.value).group_by(sweep_cells.c.sweep, cells.c.status)
