"""How a store of an older version is brought up to this one.

A store is made by running every migration, so a new store and a migrated one are the same.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import (
    Connection,
    Select,
    Table,
    bindparam,
    func,
    insert,
    inspect,
    literal,
    select,
    text,
    tuple_,
    update,
)

from separatrix.sweeps.store.errors import DAMAGED, StoreError
from separatrix.sweeps.store.schema import (
    VERDICT,
    cells,
    claims,
    counts,
    environments,
    files,
    members_of,
    metadata,
    runs,
    sweep_cells,
    sweeps,
    version,
)
from separatrix.sweeps.store.seals import seal, sealed_names

PROGRAMS = text("SELECT name FROM sqlite_master WHERE type IN ('trigger', 'view')")
"""What would be executed: a store is only data."""
AT_ONCE = 5000
"""Rows that are sealed at once."""


def _tables(connection: Connection) -> None:
    metadata.create_all(connection, [environments, cells, sweeps, sweep_cells])


def _seals(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE cells ADD COLUMN seal BIGINT"))


def _seals_and_counts(connection: Connection) -> None:
    """Seal every row as it stands; from here on, a row without a seal is a damaged one."""
    for table in (sweeps, sweep_cells):
        connection.execute(text(f"ALTER TABLE {table.name} ADD COLUMN seal BIGINT"))
    for table in (cells, sweeps, sweep_cells):
        _seal_all(connection, table)
    counts.create(connection)
    for table in (cells, environments, sweeps):
        _count(connection, table.name, select(func.count()).select_from(table))
    for (sweep,) in connection.execute(select(sweeps.c.id)).all():
        own = select(func.count()).select_from(sweep_cells).where(sweep_cells.c.sweep == sweep)
        _count(connection, members_of(sweep), own)


def _count(connection: Connection, what: str, counted: Select[int]) -> None:
    rows = connection.execute(counted).scalar_one()
    connection.execute(insert(counts).values(what=what, rows=rows))


def _seal_all(connection: Connection, table: Table) -> None:
    """Go through the rows that have no seal, in the order of their keys."""
    names = sealed_names(table)
    keys = [column.name for column in table.primary_key]
    place = tuple_(*table.primary_key)
    unsealed = select(*(table.c[name] for name in names)).where(table.c.seal.is_(None))
    unsealed = unsealed.order_by(*table.primary_key)
    this = [table.c[name] == bindparam(f"its_{name}") for name in keys]
    change = update(table).where(*this).values(seal=bindparam("its_seal"))
    last: list[object] | None = None
    while True:
        after = literal(True) if last is None else place > tuple_(*last)
        rows = connection.execute(unsealed.where(after).limit(AT_ONCE)).all()
        if not rows:
            return
        connection.execute(
            change,
            [
                {f"its_{name}": row._mapping[name] for name in keys} | {"its_seal": seal(tuple(row))}
                for row in rows
            ],
        )
        last = [rows[-1]._mapping[name] for name in keys]


def _claims(connection: Connection) -> None:
    metadata.create_all(connection, [runs, claims])


def _kinds(connection: Connection) -> None:
    """All that was stored are verdicts, whose seals stay as they are."""
    connection.execute(text(f"ALTER TABLE cells ADD COLUMN kind TEXT NOT NULL DEFAULT '{VERDICT}'"))
    connection.execute(text("ALTER TABLE cells ADD COLUMN found JSON"))
    files.create(connection)
    connection.execute(insert(counts).values(what=files.name, rows=0))


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_tables, _seals, _seals_and_counts, _claims, _kinds)
"""Number i brings a store from version i to i + 1. Never changed once released, only added to."""
SEALED_CELLS, SEALED_ALL, KINDS_KNOWN = 2, 3, 5
"""The versions since which cells have seals, every row has one and is counted, and cells have kinds."""


def migrate(connection: Connection, where: str) -> None:
    """Bring a store up to date, or refuse one that is newer or not ours; within one transaction."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(7367)"))  # one creator at a time
    found = found_version(connection, where)
    if found == len(MIGRATIONS):
        return
    try:
        for step in MIGRATIONS[found:]:
            step(connection)
    except (ValueError, RecursionError):  # of what stands in a column of JSON
        raise StoreError(f"the store {where} {DAMAGED}") from None
    if found == 0:
        version.create(connection)
        connection.execute(version.insert().values(version=len(MIGRATIONS)))
    else:
        connection.execute(version.update().values(version=len(MIGRATIONS)))


def found_version(connection: Connection, where: str) -> int:
    """The version of the store; 0 where the database is empty."""
    names = set(inspect(connection).get_table_names())
    if version.name not in names:
        if names & metadata.tables.keys() or (names and connection.dialect.name == "sqlite"):
            raise StoreError(f"the store {where} is a database of something else; give another")
        return 0
    stated = connection.execute(select(version.c.version).limit(2)).scalars().all()
    found = stated[0] if len(stated) == 1 else None
    if not isinstance(found, int) or found < 1:
        raise StoreError(f"the store {where} does not say which version it has; it is left as it is")
    if found > len(MIGRATIONS):
        raise StoreError(
            f"the store {where} was written by a newer separatrix (version {found} of the store, this one "
            f"knows {len(MIGRATIONS)}); upgrade separatrix, or give another store"
        )
    if connection.dialect.name == "sqlite" and connection.execute(PROGRAMS).first():
        raise StoreError(f"the store {where} has triggers or views, which no store has; it is not used")
    return found
