"""The sweeps of a store, and finding one by its name or its number."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import func, select

from separatrix.core.parameters import UsageError, nearest
from separatrix.sweeps.store.damage import Damage
from separatrix.sweeps.store.errors import StoreError
from separatrix.sweeps.store.rows import Sweep
from separatrix.sweeps.store.scan import Scan
from separatrix.sweeps.store.schema import cells, sweep_cells
from separatrix.sweeps.store.store import Store

BY_NAME = "name:"
"""Stands before the name of a sweep that would be taken for a number."""


def list_sweeps(store: Store) -> tuple[list[Sweep], Damage]:
    """Every intact sweep with how many of its cells are stored, oldest first; and what is damaged."""
    with store.reading() as connection:
        scan = Scan(store, connection)
        found = scan.sweeps()
        counted = (
            select(sweep_cells.c.sweep, func.count(func.distinct(cells.c.id)))
            .join(cells, cells.c.id == sweep_cells.c.cell)
            .group_by(sweep_cells.c.sweep)
        )
        stored: dict[int, int] = dict(connection.execute(counted).all())
        if scan.sqlite:  # the index that the cells were just found by
            there = connection.execute(select(func.count(cells.c.id))).scalar_one()
            scan.compare("cells", "cells", there)
    return [replace(each, cells=stored.get(each.id, 0)) for each in found], scan.damage


def find_sweep(store: Store, name: str) -> int:
    """The number of the sweep that a user names."""
    with store.reading() as connection:
        scan = Scan(store, connection)
        known = scan.sweeps()
    wanted = name.removeprefix(BY_NAME)
    if name == wanted and name.isdecimal():
        found = [each.id for each in known if each.id == int(name)]
    else:
        found = [each.id for each in known if each.name == wanted]
    if found:
        return found[-1]
    if scan.damage:
        raise StoreError(f"there is no sweep {name}, but {scan.damage.warning}")
    names = list(dict.fromkeys(each.name for each in known))
    if name in names:
        raise UsageError(f"there is no sweep number {name}; the sweep of that name is {BY_NAME}{name}")
    listed = f"there are: {', '.join(names)}" if names else "there are none"
    raise UsageError(f"there is no sweep {wanted} in {store.where}{nearest(wanted, names)}; {listed}")
