"""The tables of a store, and the checksum that every row carries."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any
from zlib import crc32

import sqlalchemy as sa

from separatrix.sweeps.store.errors import StoreError

VERSION = 1
"""The version of the tables. There are no migrations: other versions are rejected."""
VERDICT = "verdict"
"""The kind of work whose findings have columns of their own; others keep them in `findings`."""
TRAINING = "training"
"""The kind of training runs."""
FLOOR = "floor"
"""The kind of the scores that shortcuts reach on the test samples of training runs."""

Condition = sa.ColumnElement[bool]
metadata = sa.MetaData()


def _columns(kind: Any, names: str, **options: Any) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, **options) for name in names.split()]


def _table(name: str, *columns: sa.Column[Any]) -> sa.Table:
    """A table whose rows carry a checksum of their other columns."""
    return sa.Table(name, metadata, *columns, sa.Column("checksum", sa.BigInteger, nullable=False))


version = sa.Table("separatrix_store", metadata, sa.Column("version", sa.Integer, nullable=False))
environments = _table(
    "environments",
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("versions", sa.JSON, nullable=False),
)
# There is no index beside the key: filters scan the whole table, because a query through a damaged index
# would miss rows without any sign. Columns that filters read come first, which makes the scan faster.
cells = _table(
    "cells",
    sa.Column("id", sa.String(32), primary_key=True),
    *_columns(sa.Text, "kind construction mechanism status", nullable=False),
    *_columns(sa.Text, "verdict engine"),
    *_columns(sa.Text, "asked delta", nullable=False),
    sa.Column("draws", sa.Integer),
    sa.Column("seed", sa.BigInteger),
    sa.Column("confidence", sa.Double),
    sa.Column("dtype", sa.Text),
    sa.Column("until_decided", sa.Integer),  # 1 if drawing stopped once the verdict was clear, else 0
    sa.Column("code", sa.String(32), nullable=False),
    sa.Column("parameters", sa.JSON, nullable=False),  # exact values as text, by name
    *_columns(sa.Text, "message evidence p0 p1 q"),
    *_columns(sa.Double, "distinguish low high fire_d0 fire_d1 margin bits"),
    sa.Column("findings", sa.JSON),  # of kinds other than verdicts: texts by name
    sa.Column("seconds", sa.Double, nullable=False),
    sa.Column("finished", sa.Text, nullable=False),
    sa.Column("environment", sa.String(32), nullable=False),
)
sweeps = _table(
    "sweeps",
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("key", sa.String(32), nullable=False, unique=True),
    *_columns(sa.Text, "name plan started", nullable=False),
)
members = _table(
    "members",
    sa.Column("sweep", sa.Integer, primary_key=True),
    sa.Column("cell", sa.String(32), primary_key=True),
    sa.Column("part", sa.Text, primary_key=True),
)
files = _table(
    "files",
    sa.Column("cell", sa.String(32), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("media_type", sa.Text, nullable=False),
    sa.Column("seconds", sa.Double, nullable=False),  # computing time of a checkpoint; 0 for other files
    sa.Column("data", sa.LargeBinary, nullable=False),
)
TABLES = (environments, cells, sweeps, members, files)
"""The tables with results, in the order in which they are copied."""

# Work that is running now. This table holds no results, so it needs no checksums.
leases = sa.Table(
    "separatrix_leases",
    metadata,
    sa.Column("cell", sa.String(32), primary_key=True),
    sa.Column("run", sa.String(32), nullable=False),
    sa.Column("process", sa.Text, nullable=False),  # machine and process, for other runs on the same machine
    sa.Column("until", sa.Double, nullable=False),  # end of the lease, by the clock of the database
    sqlite_with_rowid=False,
)


def create_tables(connection: sa.Connection, location: str) -> None:
    """Create the tables in an empty database."""
    if not read_version(connection, location):
        metadata.create_all(connection)
        connection.execute(version.insert().values(version=VERSION))


def read_version(connection: sa.Connection, location: str) -> int:
    """Return the version of the store, 0 for an empty database; raise StoreError for any other content."""
    names = set(sa.inspect(connection).get_table_names())
    if version.name not in names:
        if names & metadata.tables.keys() or (names and connection.dialect.name == "sqlite"):
            raise StoreError(f"the store {location} is a database of another program; give another store")
        return 0
    versions = connection.execute(sa.select(version.c.version).limit(2)).scalars().all()
    if versions != [VERSION]:
        version_text = f"version {versions[0]}" if len(versions) == 1 else "no clear version"
        raise StoreError(
            f"the store {location} has {version_text}, and this separatrix reads version {VERSION} only; use "
            "the separatrix that wrote it, or give another store"
        )
    # Triggers and views would run with the rights of the reader. A store holds only data.
    programs = sa.text("SELECT name FROM sqlite_master WHERE type IN ('trigger', 'view')")
    if connection.dialect.name == "sqlite" and connection.execute(programs).first():
        raise StoreError(f"the store {location} has triggers or views, which no store has; give another store")
    return VERSION


def is_among(column: sa.ColumnElement[Any], values: Collection[str], dialect: str) -> Condition:
    """A condition for any number of values, which are sent as one JSON list."""
    value_list = sa.cast(sa.literal(json.dumps(sorted(values))), sa.Text)
    if dialect == "postgresql":
        return column.in_(sa.select(sa.func.json_array_elements_text(sa.cast(value_list, sa.JSON)).column_valued()))
    return column.in_(sa.select(sa.func.json_each(value_list).table_valued("value").c.value))


KINDS: dict[type, Callable[[Any], Any]] = {
    bytes: bytes,
    int: int,
    # Databases disagree about -0.0 and NaN.
    float: lambda x: float(x) + 0.0 if x == x else None,
    # No database takes a lone surrogate, and PostgreSQL takes no zero character.
    str: lambda x: str(x).encode(errors="replace").decode().replace("\0", "?"),
}
CONVERTERS = {
    table.name: {
        c.name: json.dumps if isinstance(c.type, sa.JSON) else KINDS[c.type.python_type] for c in list(table.c)[:-1]
    }
    for table in TABLES
}
"""Functions that make plain values, by table and column."""


def make_row(table: sa.Table, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of plain values, which every database gives back unchanged, with its checksum."""
    row = {
        name: None if values[name] is None else convert(values[name])
        for name, convert in CONVERTERS[table.name].items()
    }
    return {**row, "checksum": checksum(tuple(row.values()))}


def checksum(values: tuple[Any, ...]) -> int:
    """Return a checksum of the values of a row, the same for every database and Python version.

    >>> checksum(("softmax", '{"n": "1000"}', 0.5, None))
    3611375772
    """
    if type(values[-1]) is bytes:
        return crc32(values[-1], checksum(values[:-1]))
    return crc32(ascii(values).encode())
