"""Stores in SQLite files: creating, recognising and opening them."""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.pool import NullPool

from separatrix.core.interrupts import temporary_folder
from separatrix.core.parameters import UsageError
from separatrix.sweeps.store.errors import DAMAGED, StoreError, as_store_error
from separatrix.sweeps.store.filters import RANGE_FUNCTION, is_in_range
from separatrix.sweeps.store.store import Store

LOCK_TIMEOUT = 60
"""Seconds to wait for another program that writes to the same file."""
MAGIC = b"SQLite format 3\x00"
SECTOR_BYTES = 512
"""The size of a SQLite file is a multiple of this."""


def open_file(path: Path, create: bool = False, check: bool = False, timeout: float | None = None) -> Store:
    """Open the store in a file; `create` it if there is none, `check` all of it first."""
    if create and not path.exists():
        _create(path)
    require_sqlite_file(path)
    if check and (path.stat().st_size % SECTOR_BYTES or find_faults(path)):
        raise StoreError(f"the store {path} {DAMAGED}")
    store = Store(_make_engine(path, LOCK_TIMEOUT if timeout is None else timeout), str(path))
    store.require_version(create)
    return store


def _create(path: Path) -> None:
    try:
        with new_store(path) as target:
            enable_log(target)
            Store(_make_engine(target, LOCK_TIMEOUT), str(path)).require_version(create=True)
    except UsageError:
        if not path.exists():  # otherwise another sweep was faster
            raise


def enable_log(path: Path) -> None:
    """Set the write-ahead log of a file, with which readers and a writer do not wait for each other."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _make_uri(path: Path, options: str) -> str:
    """Return the URI of a file; where SQLite cannot write beside it, a file without a log counts as frozen."""
    log = path.with_name(f"{path.name}-wal")
    if not (_may_write(path.parent) or (log.exists() and log.stat().st_size)):
        options = "immutable=1"
    return f"{path.absolute().as_uri()}?{options}"


def _make_guard(path: Path) -> Callable[[], None]:
    """Return a function that raises StoreError if the file was deleted or replaced."""

    def read_identity() -> tuple[int, int]:
        status = path.stat()
        return status.st_dev, status.st_ino

    def require_same_file() -> None:
        try:
            is_same = read_identity() == identity
        except FileNotFoundError:
            raise StoreError(f"the store {path} was deleted while it was used") from None
        if not is_same:
            raise StoreError(f"the store {path} was replaced while it was used; repeat the command")

    identity = read_identity()
    # Held open so that no new file gets the same inode. O_PATH, because closing any other descriptor of the
    # file would drop SQLite's locks on it.
    if hasattr(os, "O_PATH"):
        weakref.finalize(require_same_file, os.close, os.open(path, os.O_PATH | os.O_CLOEXEC))
    return require_same_file


def _make_engine(path: Path, timeout: float) -> Engine:
    require_same_file = _make_guard(path)

    def open_connection() -> sqlite3.Connection:
        require_same_file()
        return sqlite3.connect(_make_uri(path, "mode=rw"), uri=True, timeout=timeout, check_same_thread=False)

    engine = create_engine("sqlite://", creator=open_connection, poolclass=NullPool)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        connection.isolation_level = None  # the handler below begins transactions
        # With a write-ahead log, NORMAL could lose committed results when the power fails.
        connection.execute("PRAGMA synchronous = FULL")
        # The schema of a file from elsewhere may not call functions that are registered here.
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.create_function(RANGE_FUNCTION, 3, is_in_range, deterministic=True)

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        is_reading = connection.get_execution_options().get("reading", False)
        connection.exec_driver_sql("BEGIN" if is_reading else "BEGIN IMMEDIATE")

    return engine


@contextmanager
def new_store(path: Path) -> Iterator[Path]:
    """Yield the place for a new store, which is moved to `path` when it is complete; never over a file."""
    exists = UsageError(f"{path} exists already and is left unchanged; name another file")
    log = path.with_name(f"{path.name}-wal")
    # The log is looked for first: if another program makes the store meanwhile, both are there.
    has_log = log.exists()
    if path.exists():
        raise exists
    if has_log:
        raise UsageError(f"{log} is the log of a store that was deleted; delete it, too")
    if not path.parent.is_dir():
        raise UsageError(f"cannot make the store {path}: there is no folder {path.parent}")
    try:
        with as_store_error(str(path)), temporary_folder(f".{path.name}.", path.parent) as folder:
            yield folder / "store.db"
            put_in_place(folder / "store.db", path)
    except FileExistsError:
        raise exists from None
    except PermissionError:
        raise UsageError(f"cannot make the store {path}: {path.parent} may not be written to") from None
    except OSError as error:
        raise StoreError(f"cannot make the store {path}: {(error.strerror or str(error)).lower()}") from None


def put_in_place(source: Path, path: Path) -> None:
    """Put a new store in its place: in one step where links are possible, never over a file."""
    try:
        os.link(source, path)
    except FileExistsError:
        raise
    except OSError:
        with path.open("xb") as file:
            file.write(source.read_bytes())


def require_sqlite_file(path: Path) -> None:
    """Raise an error unless this is a SQLite file; it is only read."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder, not a store; write for example results.db")
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is a device or a pipe, not a store; write for example results.db")
    try:
        with path.open("rb") as file:
            start = file.read(len(MAGIC))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    if start != MAGIC:
        raise StoreError(f"{path} is not a store, or its beginning was overwritten; it is left unchanged")


def find_faults(path: Path) -> list[str]:
    """Return what SQLite finds wrong with the pages and indexes of a file, at most a hundred lines."""
    with as_store_error(str(path)), connect(path) as connection:
        try:
            lines = [line for (line,) in connection.execute("PRAGMA integrity_check") if line != "ok"]
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if isinstance(error, sqlite3.OperationalError):  # locked, not damaged
                raise
            lines = [str(error)]
    return lines


def connect(path: Path) -> closing[sqlite3.Connection]:
    """Open a plain connection that leaves the files of a store as they are."""
    # A connection in mode rw deletes the log when it closes, one in mode ro leaves it.
    mode = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "mode=rw"
    return closing(sqlite3.connect(_make_uri(path, mode), uri=True, timeout=LOCK_TIMEOUT))
