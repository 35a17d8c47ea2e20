"""Looking a store over, saving what is intact, and copying it while it is used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import insert

from separatrix.core.parameters import UsageError
from separatrix.core.secrets import Secret
from separatrix.sweeps.store.addresses import Address, store_address
from separatrix.sweeps.store.damage import Damage
from separatrix.sweeps.store.errors import StoreError
from separatrix.sweeps.store.filters import Filter
from separatrix.sweeps.store.migrations import MIGRATIONS
from separatrix.sweeps.store.rows import Environment, Sweep
from separatrix.sweeps.store.scan import ENVIRONMENT, Scan
from separatrix.sweeps.store.schema import cells, files, members_of, sweeps
from separatrix.sweeps.store.seals import COLUMNS, seal_of_cell, sealed
from separatrix.sweeps.store.sqlite_file import complaints, copy_pages, new_store, open_file, require_file
from separatrix.sweeps.store.store import Store
from separatrix.sweeps.store.urls import open_store

LOST = Environment("lost", {})
"""Where a cell was computed whose environment was lost."""


@dataclass(frozen=True)
class Health:
    """What a store holds, and what of it is damaged."""

    store: str
    version: int
    cells: int
    sweeps: int
    members: int
    environments: int
    files: int
    """Intact rows."""
    damage: Damage
    pages: int
    """Complaints of SQLite about the pages and indexes of the file."""

    @property
    def sound(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damage and not self.pages

    def as_json(self) -> dict[str, Any]:
        """What `separatrix store check --json` prints."""
        names = ("store", "version", "cells", "sweeps", "members", "environments", "files", "pages")
        return {
            "sound": self.sound,
            **{name: getattr(self, name) for name in names},
            "newest_version": len(MIGRATIONS),
            "damaged": self.damage.as_json(),
        }


def check_store(url: str | Secret | Address) -> Health:
    """Read all of a store: every page, every row, every seal, every count. Nothing is changed."""
    path = store_address(url).path
    store = open_store(url)
    pages = 0 if path is None else _count(complaints(path))
    with _looking(store) as scan:
        found_cells = sum(map(len, scan.cells(Filter(kind=None))))
        known = scan.sweeps()
        members = sum(map(len, _members(scan, known)))
        places, beside = len(scan.environments()), sum(1 for _ in scan.files())
    return Health(
        *(store.where, store.version, found_cells, len(known), members, places, beside), scan.damage, pages
    )


def repair_store(url: str | Secret | Address, out: Path | None = None) -> tuple[Path, Health]:
    """Save what is intact into a new store; the damaged one is left as it is."""
    path = store_address(url).path
    if out is None and path is None:
        raise UsageError("say where to save it: `out` results.db")
    target = out if out is not None or path is None else path.with_name(f"{path.stem}.repaired{path.suffix}")
    assert target is not None
    return target, _copied(open_store(url), target)


def backup_store(url: str | Secret | Address, out: Path) -> Path:
    """A copy of a store as it is at one moment, also while a sweep fills it; PostgreSQL becomes a file."""
    path = store_address(url).path
    store = open_store(url)
    if path is None:
        copied = _copied(store, out)
        if not copied.sound:
            raise StoreError(f"the copy {out} holds what is intact: {copied.damage.warning}")
        return out
    require_file(path)
    with new_store(out) as made:
        copy_pages(path, made)
    return out


def upgrade_store(url: str | Secret | Address) -> tuple[int, int]:
    """Bring an older store up to date, all of it or nothing; its version before and after."""
    store = open_store(url)
    before = store.version
    if before < len(MIGRATIONS):
        health = check_store(url)
        if not health.sound:
            raise StoreError(
                f"the store {store.where} is damaged; save what is intact first: separatrix store repair"
            )
        store.upgrade()
    return before, store.version


@contextmanager
def _looking(store: Store) -> Iterator[Scan]:
    with store.reading() as connection:
        yield Scan(store, connection)


def _members(scan: Scan, known: list[Sweep]) -> Iterator[list[tuple[int, str, str]]]:
    """The members of every sweep; those of sweeps that are lost are lost with them."""
    for sweep in known:
        yield from scan.members(sweep.id)
    mine = {members_of(each.id) for each in known}
    gone = [rows for what, rows in scan.counted.items() if what.startswith("sweep ") and what not in mine]
    scan.damage.lost["members"] += sum(gone)


def _copied(store: Store, target: Path) -> Health:
    """Copy what is intact into a new file."""
    counts = {"cells": 0, "members": 0, "files": 0}
    with new_store(target) as made, _looking(store) as scan:
        copy = open_file(made, create=True, check=False)
        places = {id_: Environment(*place) for id_, place in scan.environments().items()}
        for chunk in scan.cells(Filter(kind=None)):
            rows = [_row(found.values, places) for found in chunk]
            if rows:
                copy.keep(rows, {row["environment"]: places.get(row["environment"], LOST) for row in rows})
            counts["cells"] += len(rows)
        known = scan.sweeps()
        with copy.writing() as connection:
            for sweep in known:
                row = {name: getattr(sweep, name) for name in ("id", "key", "name", "plan", "started")}
                connection.execute(insert(sweeps), [sealed(row, sweeps)])
                copy.count(connection, members_of(sweep.id), 0)
            copy.count(connection, sweeps.name, len(known))
        for members in _members(scan, known):
            for sweep_id in {sweep for sweep, _, _ in members}:
                copy.belong(sweep_id, [(cell, part) for sweep, cell, part in members if sweep == sweep_id])
            counts["members"] += len(members)
        for row in scan.files():
            with copy.writing() as connection:
                connection.execute(insert(files), [row])
                copy.count(connection, files.name, 1)
            counts["files"] += 1
        version = copy.version
    return Health(
        *(str(target), version, counts["cells"], len(known), counts["members"], len(places), counts["files"]),
        *(scan.damage, 0),
    )


def _row(values: tuple[Any, ...], places: dict[str, Environment]) -> dict[str, Any]:
    """A cell to store again, sealed; one whose environment is lost says so."""
    if values[ENVIRONMENT] not in places:
        values = (*values[:ENVIRONMENT], LOST.id, *values[ENVIRONMENT + 1 :])
    return {**dict(zip(COLUMNS, values, strict=True)), cells.c.seal.name: seal_of_cell(values)}


def _count(lines: Iterator[str]) -> int:
    """How many complaints there are; a file that cannot even be read through counts as one more."""
    found = 0
    try:
        for _ in lines:
            found += 1
    except StoreError:
        found += 1
    return found
