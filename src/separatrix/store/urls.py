"""From the address of a store to an open store."""

from __future__ import annotations

import os
import shlex
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.pool import NullPool

from separatrix.parameters import UsageError
from separatrix.parameters.secrets import Secret
from separatrix.store.addresses import DEFAULT, Address, store_address
from separatrix.store.errors import DAMAGED, NoStore, StoreError, told
from separatrix.store.patience import patient
from separatrix.store.ranges import FUNCTION, is_within
from separatrix.store.store import Store

PATIENCE = 60
"""Seconds to wait for another program that is writing to the same SQLite file."""
ANSWER = 10
"""Seconds to wait for a PostgreSQL server to answer."""
MAGIC = b"SQLite format 3\x00"
SECTOR = 512
"""Bytes of which a SQLite file is always a multiple."""


def open_store(
    url: str | Secret | Address = DEFAULT,
    create: bool = False,
    check: bool = False,
    patience: float | None = None,
) -> Store:
    """The store at `url`; with `create` it is made where there is none, with `check` read through first.

    After `patience` seconds without an answer it is given up. If it is not given, a SQLite file that another
    program locks has a minute, and a PostgreSQL server that is connected as long as it likes.
    """
    address = store_address(url)
    path = address.path
    if path is None:
        return _opened(_postgresql(address, patience), address.shown, create)
    if not path.exists():
        if not create:
            where = shlex.quote(address.shown)
            raise NoStore(
                f"there is no store {path}; make one with: separatrix sweep plan.toml --store {where}"
            )
        _create(path)
    _look(path, check)
    return _opened(_sqlite(path, PATIENCE if patience is None else patience), str(path), create)


def _postgresql(address: Address, patience: float | None) -> Engine:
    """The engine has an address without secrets; they are added, and hidden, where it connects."""
    assert address.server is not None
    answer = ANSWER if patience is None else round(min(ANSWER, max(2, patience)))  # psycopg takes no less
    try:
        engine = create_engine(address.server, pool_pre_ping=True)
    except ImportError:
        raise UsageError(
            "a store in PostgreSQL needs the package psycopg: pip install 'separatrix[postgres]'"
        ) from None

    @event.listens_for(engine, "do_connect")
    def connect(dialect: Any, _: object, words: list[Any], options: dict[str, Any]) -> Any:
        try:
            known = {"connect_timeout": answer, **options, **address.settings}
            if patience is None:
                return dialect.connect(*words, **known)
            return patient(dialect.loaded_dbapi, patience).connect(*words, **known)
        except dialect.loaded_dbapi.Error as error:
            raise type(error)(address.without_secrets(str(error))) from None

    return engine


def _sqlite(path: Path, patience: float = PATIENCE) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)), poolclass=NullPool, connect_args={"timeout": patience}
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
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is a device or a pipe, not a store; write for example {DEFAULT}")
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
