"""From the URL a user gives to an open store."""

from __future__ import annotations

import os
import re
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool

from separatrix.parameters import UsageError
from separatrix.store.errors import DAMAGED, NoStore, StoreError, told
from separatrix.store.ranges import FUNCTION, is_within
from separatrix.store.store import Store

DEFAULT = "sqlite:///results.db"
PATIENCE = 60
"""Seconds to wait for another program that is writing to the same SQLite file."""
ANSWER = 10
"""Seconds to wait for a PostgreSQL server to answer."""
MAGIC = b"SQLite format 3\x00"
SECTOR = 512
"""Bytes of which a SQLite file is always a multiple."""
FORMS = "sqlite:///results.db or postgresql+psycopg://user@host/database"


def open_store(url: str = DEFAULT, create: bool = False, check: bool = False) -> Store:
    """The store at `url`; with `create` it is made where there is none, with `check` read through first."""
    read = _read(url)
    if read.get_backend_name() == "postgresql":
        return _opened(_postgresql(read), read.set(query={}).render_as_string(hide_password=True), create)
    path = Path(read.database or "")
    if not path.exists():
        if not create:
            raise NoStore(
                f"there is no store {path}; make one with: separatrix sweep plan.toml --store {url}"
            )
        _create(path)
    _look(path, check)
    return _opened(_sqlite(path), str(path), create)


def _read(url: str) -> URL:
    if "://" not in url:
        url = f"sqlite:///{url}"
    try:
        read = make_url(url)
        backend = read.get_backend_name()
    except (ArgumentError, ValueError):
        shown = re.sub(r"://.*@", "://***@", url)  # it may hold a password
        raise UsageError(f"{shown} is no store; write for example {FORMS}") from None
    if backend not in ("sqlite", "postgresql"):
        raise UsageError(f"a store cannot be kept in {backend}; write for example {FORMS}")
    if backend == "sqlite" and read.database in (None, "", ":memory:"):
        raise UsageError(f"{url} names no file; write for example {DEFAULT}")
    return read.set(drivername="postgresql+psycopg") if backend == "postgresql" else read


def _postgresql(url: URL) -> Engine:
    patient = {"connect_timeout": ANSWER, **url.query}
    try:
        return create_engine(url.set(query={}), pool_pre_ping=True, connect_args=patient)
    except ImportError:
        raise UsageError(
            "a store in PostgreSQL needs the package psycopg: pip install 'separatrix[postgres]'"
        ) from None


def _sqlite(path: Path) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)), poolclass=NullPool, connect_args={"timeout": PATIENCE}
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        connection.isolation_level = None  # transactions begin where SQLAlchemy says, below
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.create_function(FUNCTION, 3, is_within, deterministic=True)

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        reading = connection.get_execution_options().get("reading", False)
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

    return engine


def _opened(engine: Engine, where: str, create: bool) -> Store:
    store = Store(engine, where)
    store.require_known(create)
    return store


def _create(path: Path) -> None:
    """Make a store beside and put it in place in one step: a file is never half a store."""
    folder = path.parent
    if not folder.is_dir():
        raise UsageError(f"cannot make the store {path}: there is no folder {folder}")
    try:
        with told(str(path)), tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=folder) as beside:
            made = Path(beside) / "store.db"
            with closing(sqlite3.connect(made)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
            _opened(_sqlite(made), str(path), create=True)
            _put(made, path)
    except FileExistsError:
        return  # another sweep was faster
    except PermissionError:
        raise UsageError(f"cannot make the store {path}: {folder} may not be written to") from None
    except OSError as error:
        raise StoreError(f"cannot make the store {path}: {(error.strerror or str(error)).lower()}") from None


def _put(made: Path, path: Path) -> None:
    """In one step where links are known; and never over a file that is there."""
    try:
        os.link(made, path)
    except FileExistsError:
        raise
    except OSError:
        with path.open("xb") as file:
            file.write(made.read_bytes())


def _look(path: Path, thoroughly: bool) -> None:
    """Refuse what is no sound SQLite file, and change nothing: the file is only read."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder, not a store; write for example {DEFAULT}")
    try:
        with path.open("rb") as file:
            start, size = file.read(len(MAGIC)), os.fstat(file.fileno()).st_size
    except OSError as error:
        raise UsageError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    if start != MAGIC:
        raise StoreError(f"{path} is not a store, or its beginning was overwritten; it is left as it is")
    if size % SECTOR:
        raise StoreError(f"the store {path} {DAMAGED}")
    if thoroughly:
        _read_through(path)


def _read_through(path: Path) -> None:
    """Every page and every index; what stands in a row is checked whenever it is read."""
    log = path.with_name(f"{path.name}-wal")
    mode = "ro" if log.exists() else "rw"  # ro leaves a log as it is, and rw leaves none where none was
    source = f"{path.absolute().as_uri()}?mode={mode}"
    with told(str(path)), closing(sqlite3.connect(source, uri=True, timeout=PATIENCE)) as connection:
        found = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if found != ("ok",):
        raise StoreError(f"the store {path} {DAMAGED}")
