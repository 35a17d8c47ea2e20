"""Checking a store, copying its intact rows, and backing it up while it is used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import sqlalchemy as sa

from separatrix.core.documents import Document, shown
from separatrix.core.parameters import UsageError
from separatrix.core.secrets import Secret
from separatrix.sweeps.store.addresses import Address, parse_address
from separatrix.sweeps.store.errors import READ_ERRORS, Damage, StoreError, as_store_error, is_damage
from separatrix.sweeps.store.opening import open_store
from separatrix.sweeps.store.reader import CHUNK, Reader, Values
from separatrix.sweeps.store.schema import TABLES, VERSION, checksum, files, members, sweeps
from separatrix.sweeps.store.sqlite_file import connect, enable_log, find_faults, new_store, open_file
from separatrix.sweeps.store.store import Store


@dataclass(frozen=True)
class StoreHealth(Document):
    """The number of intact rows of a store, and its damage."""

    store: str
    cells: int
    sweeps: int
    members: int
    environments: int
    files: int
    damaged: Damage
    pages: int = 0
    """Faults that SQLite finds in the pages and indexes of the file."""
    version: int = VERSION

    @shown
    def sound(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damaged and not self.pages


@dataclass(frozen=True)
class UnreadableStore(Document):
    """A store that cannot be read."""

    error: str
    sound: Literal[False] = False


@dataclass(frozen=True)
class StoreCopy(Document):
    """The place of a copy."""

    copy: Path


def check_store(url: str | Secret | Address) -> StoreHealth:
    """Read every page, row and checksum of a store; change nothing."""
    path = parse_address(url).path
    store = open_store(url)
    faults = 0 if path is None else len(find_faults(path))
    return _process_rows(store, store.location, None, faults)


def repair_store(url: str | Secret | Address, out: Path | None = None) -> StoreHealth:
    """Copy the intact rows into a new store; the damaged one is left unchanged."""
    path = parse_address(url).path
    if out is None:
        if path is None:
            raise UsageError("name the new store: `out` results.db")
        out = path.with_name(f"{path.stem}.repaired{path.suffix}")
    return _copy_rows(open_store(url), out)


def backup_store(url: str | Secret | Address, out: Path) -> StoreCopy:
    """Copy a store as it is at one moment, also while sweeps fill it; PostgreSQL becomes a SQLite file."""
    path = parse_address(url).path
    store = open_store(url)
    if path is None:
        health = _copy_rows(store, out)
        if not health.sound:
            raise StoreError(f"the copy {out} holds only the intact rows: {health.damaged.warning}")
        return StoreCopy(out)
    with new_store(out) as target, as_store_error(str(path)), connect(path) as connection:
        connection.execute("VACUUM INTO ?", (str(target),))
        enable_log(target)
    return StoreCopy(out)


def _copy_rows(store: Store, out: Path) -> StoreHealth:
    with new_store(out) as target:
        return _process_rows(store, str(out), open_file(target, create=True))


def _process_rows(store: Store, location: str, copy: Store | None, faults: int = 0) -> StoreHealth:
    """Read all rows of a store, and write the intact ones to a copy if there is one."""
    counts: dict[str, int] = {}
    with store.reading() as connection:
        reader = Reader(store, connection)
        known_sweeps: set[int] = set()
        for table in TABLES:
            counts[table.name] = 0
            for intact in _read_around_damage(reader, table):
                rows = intact
                if table is sweeps:
                    known_sweeps.update(row[0] for row in rows)
                if table is members:  # those of a lost sweep are of no use
                    rows = [row for row in rows if row[0] in known_sweeps]
                    reader.damage.add("lost", members.name, len(intact) - len(rows))
                counts[table.name] += len(rows)
                if copy is not None:
                    names = table.c.keys()
                    with copy.writing() as output:
                        new = [dict(zip(names, (*row, checksum(row)), strict=True)) for row in rows]
                        copy.insert(output, table, new)
    return StoreHealth(location, **counts, damaged=reader.damage, pages=faults)


def _read_around_damage(reader: Reader, table: sa.Table) -> Iterator[list[Values]]:
    """Yield the intact rows in chunks, from both ends of a table as far as its pages can be read.

    Rows between two damaged pages are lost with them; a sweep on the new store computes them again.
    """
    if reader.store.dialect != "sqlite":
        yield from reader.read(table)
        return
    number, last, count = sa.literal_column("rowid", sa.Integer), -1, 0
    size = 1 if table is files else CHUNK
    for order in (number, number.desc()):
        query = reader.select(table).add_columns(number).where(number > last).order_by(order)
        rows, is_complete = list[Values](), False
        try:
            for *values, place in reader.connection.execute(query):
                rows.append(tuple(values))
                last = place if order is number else last
                if len(rows) == size:
                    count += len(set(rows))
                    yield reader.verify(table, rows)
                    rows.clear()
            is_complete = True
        except READ_ERRORS as error:
            if not is_damage(error):
                raise
        count += len(set(rows))
        yield reader.verify(table, rows)
        if is_complete:
            break
    try:
        reader.compare_with_index(table, count)
    except READ_ERRORS:  # the number of lost rows is unknown
        reader.damage.add("altered", "tables", 1)
