"""The tables, and how a store of an older version is brought up to this one.

A store is made by running every migration, so a new store and a migrated one are the same.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Connection,
    Double,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    inspect,
    select,
    text,
)

from separatrix.store.errors import StoreError

PROGRAMS = text("SELECT name FROM sqlite_master WHERE type IN ('trigger', 'view')")
"""What would be executed: a store is only data."""

metadata = MetaData()

version = Table("separatrix_store", metadata, Column("version", Integer, nullable=False))

environments = Table(
    "environments",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("host", Text, nullable=False),
    Column("versions", JSON, nullable=False),
)

# No index beside the key: where it finds more than a few rows, SQLite is slower with one than without.
cells = Table(
    "cells",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("construction", Text, nullable=False),
    Column("mechanism", Text, nullable=False),
    Column("parameters", JSON, nullable=False),  # exact values as text, by name
    Column("n", Double),  # the number of tokens as a float, to find cells by
    Column("asked", Text, nullable=False),  # the engine that the plan names
    Column("delta", Text, nullable=False),
    Column("draws", Integer),
    Column("seed", BigInteger),
    Column("confidence", Double),
    Column("dtype", Text),
    Column("until_decided", Integer),  # whether drawing stopped once the verdict was clear: 1 or 0
    Column("code", String(32), nullable=False),
    Column("status", Text, nullable=False),
    Column("message", Text),
    Column("verdict", Text),
    Column("engine", Text),
    Column("evidence", Text),
    Column("p0", Text),
    Column("p1", Text),
    Column("q", Text),
    Column("distinguish", Double),
    Column("low", Double),
    Column("high", Double),
    Column("fire_d0", Double),
    Column("fire_d1", Double),
    Column("margin", Double),
    Column("bits", Double),
    Column("seconds", Double, nullable=False),
    Column("finished", Text, nullable=False),
    Column("environment", String(32), ForeignKey("environments.id"), nullable=False),
    Column("seal", BigInteger, system=True),  # a checksum of the others, since version 2: see _seals
)

sweeps = Table(
    "sweeps",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", String(32), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("plan", Text, nullable=False),
    Column("started", Text, nullable=False),
)

sweep_cells = Table(
    "sweep_cells",
    metadata,
    Column("sweep", Integer, ForeignKey("sweeps.id"), primary_key=True),
    Column("cell", String(32), primary_key=True),
    Column("part", Text, primary_key=True),
    sqlite_with_rowid=False,
)


def _tables(connection: Connection) -> None:
    metadata.create_all(connection, [environments, cells, sweeps, sweep_cells])


def _seals(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE cells ADD COLUMN seal BIGINT"))


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_tables, _seals)
"""Number i brings a store from version i to i + 1. Never changed once released, only added to."""


def migrate(connection: Connection, where: str) -> None:
    """Bring a store up to date, or refuse one that is newer or not ours; within one transaction."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(7367)"))  # one creator at a time
    found = found_version(connection, where)
    if found == len(MIGRATIONS):
        return
    for step in MIGRATIONS[found:]:
        step(connection)
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
