"""The tables. Columns that a later version added are marked `system`: its migration makes them."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

metadata = MetaData()
VERDICT = "verdict"
"""The kind of work whose answers have columns of their own; others are found under `found`."""
TRAINING = "training"
"""The kind of training runs."""
FLOOR = "floor"
"""The kind of what shortcuts score on the test samples of training runs."""

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
    Column("seal", BigInteger, system=True),  # a checksum of the others, since version 2
    Column("kind", Text, nullable=False, server_default=VERDICT, system=True),  # since version 5
    Column("found", JSON, system=True),  # the answer of another kind: texts by name, since version 5
)

sweeps = Table(
    "sweeps",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", String(32), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("plan", Text, nullable=False),
    Column("started", Text, nullable=False),
    Column("seal", BigInteger, system=True),  # since version 3
)

sweep_cells = Table(
    "sweep_cells",
    metadata,
    Column("sweep", Integer, ForeignKey("sweeps.id"), primary_key=True),
    Column("cell", String(32), primary_key=True),
    Column("part", Text, primary_key=True),
    Column("seal", BigInteger, system=True),  # since version 3
    sqlite_with_rowid=False,
)

# Bytes beside a row, or the checkpoint of work that has no row yet, since version 5.
files = Table(
    "files",
    metadata,
    Column("cell", String(32), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("media_type", Text, nullable=False),
    Column("seconds", Double, nullable=False),  # that a checkpoint took; 0 of other files
    Column("digest", String(64), nullable=False),
    Column("seal", BigInteger, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

counts = Table(
    "separatrix_counts",
    metadata,
    Column("what", String(32), primary_key=True),  # a table's name, or "sweep 7" for the members of one
    Column("rows", BigInteger, nullable=False),
)
"""How many rows there are, since version 3: rows that are lost with a page of the file are missed."""

# Who computes what just now: no results, so nothing is lost with them.
runs = Table(
    "separatrix_runs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("process", Text, nullable=False),  # where it runs, for others on the same machine
    Column("until", Double, nullable=False),  # by the database's clock, how long it is taken to be alive
)

claims = Table(
    "separatrix_claims",
    metadata,
    Column("cell", String(32), primary_key=True),
    Column("run", String(32), nullable=False),
    sqlite_with_rowid=False,
)


def members_of(sweep: int) -> str:
    """What the members of a sweep are counted under."""
    return f"sweep {sweep}"
