"""Stores in SQLite files: creating them whole, recognising them, and opening them without a change."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import tempfile
import time
import weakref
from collections.abc import Iterator
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
COMPANIONS = ("-wal", "-shm", "-journal")
"""Endings of the files that SQLite keeps beside a database."""
LOCKS_UNSUPPORTED = {errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP}
"""Errors of folders that cannot be locked, for example on NFS."""


def open_file(path: Path, create: bool = False, check: bool = False, timeout: float | None = None) -> Store:
    """Open the store in a file; `create` it if there is none, `check` all of it first."""
    if create and not path.exists():
        _create(path)
    require_sqlite_file(path)
    if check and (path.stat().st_size % SECTOR_BYTES or find_faults(path)):
        raise StoreError(f"the store {path} {DAMAGED}")
    store = _open_at(path, str(path), create, LOCK_TIMEOUT if timeout is None else timeout)
    if check:
        store.require_complete()
    return store


def _open_at(path: Path, location: str, create: bool, timeout: float) -> Store:
    uri, source = _choose_uri(path)
    guard = _Guard(source, location, is_frozen="immutable" in uri)
    store = Store(_make_engine(uri, guard, timeout), location, guard.require_unchanged)
    if source != path:
        weakref.finalize(store, shutil.rmtree, source.parent, ignore_errors=True)
    store.require_version(create)
    return store


def _choose_uri(path: Path) -> tuple[str, Path]:
    """The URI by which SQLite can read a file, and the file: itself or a temporary copy."""
    if _may_write(path) and _may_write(path.parent):
        return _make_uri(path, "mode=rw"), path
    # SQLite writes beside a file even to read it. Where it may not, a file without a log is opened as one
    # that never changes. A file with a log can be read if its shared memory file exists, else as a copy.
    log = path.with_name(f"{path.name}-wal")
    if not (log.exists() and log.stat().st_size):
        return _make_uri(path, "immutable=1"), path
    try:
        with closing(sqlite3.connect(_make_uri(path, "mode=ro"), uri=True)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master")
        return _make_uri(path, "mode=ro"), path
    except sqlite3.Error:
        copy = Path(tempfile.mkdtemp(prefix="separatrix-")) / path.name
        for end in ("", "-wal"):
            shutil.copyfile(path.with_name(path.name + end), copy.with_name(copy.name + end))
        return _make_uri(copy, "mode=rw"), copy


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _make_uri(path: Path, options: str) -> str:
    return f"{path.absolute().as_uri()}?{options}"


class _Guard:
    """Notices that a store was deleted or replaced, or that a file changed which was opened as frozen."""

    def __init__(self, path: Path, location: str, is_frozen: bool) -> None:
        self.path, self.location, self.is_frozen = path, location, is_frozen
        self._state = self._read_state()
        # Held open so that no new file gets the same inode. O_PATH, because closing any other descriptor of
        # the file would drop SQLite's locks on it.
        if hasattr(os, "O_PATH"):
            weakref.finalize(self, os.close, os.open(path, os.O_PATH | os.O_CLOEXEC))

    def _read_state(self) -> tuple[int, ...]:
        status = self.path.stat()
        identity = (status.st_dev, status.st_ino)
        return (*identity, status.st_size, status.st_mtime_ns) if self.is_frozen else identity

    def require_same_file(self) -> None:
        """Raise StoreError before SQLite connects to another file of the same name."""
        try:
            is_same = self._read_state()[:2] == self._state[:2]
        except FileNotFoundError:
            raise StoreError(f"the store {self.location} was deleted while it was used") from None
        if not is_same:
            raise StoreError(f"the store {self.location} was replaced while it was used; repeat the command")

    def require_unchanged(self) -> None:
        """Raise StoreError if a frozen file changed while it was read."""
        if self.is_frozen and self._read_state() != self._state:
            raise StoreError(f"the store {self.location} was written to while it was read; repeat the command")


def _make_engine(uri: str, guard: _Guard, timeout: float) -> Engine:
    def open_connection() -> sqlite3.Connection:
        guard.require_same_file()
        return sqlite3.connect(uri, uri=True, timeout=timeout, check_same_thread=False)

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


def _create(path: Path) -> None:
    try:
        with new_store(path) as target:
            enable_log(target)
            _open_at(target, str(path), True, LOCK_TIMEOUT)
    except UsageError:
        if not path.exists():  # otherwise another sweep was faster
            raise


def enable_log(path: Path) -> None:
    """Set the write-ahead log of a file, with which readers and a writer do not wait for each other."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")


@contextmanager
def new_store(path: Path) -> Iterator[Path]:
    """Yield the place for a new store, which is moved to `path` when it is complete; never over a file."""
    exists = UsageError(f"{path} exists already and is left unchanged; name another file")
    if path.exists():
        raise exists
    if not path.parent.is_dir():
        raise UsageError(f"cannot make the store {path}: there is no folder {path.parent}")
    try:
        with as_store_error(str(path)), temporary_folder(f".{path.name}.", path.parent) as folder:
            target = folder / "store.db"
            yield target
            put_in_place(target, path)
    except FileExistsError:
        raise exists from None
    except PermissionError:
        raise UsageError(f"cannot make the store {path}: {path.parent} may not be written to") from None
    except OSError as error:
        raise StoreError(f"cannot make the store {path}: {(error.strerror or str(error)).lower()}") from None


def put_in_place(source: Path, path: Path) -> None:
    """Put a new store in its place: in one step where links are possible, never over a file."""
    with _lock_folder(path.parent):
        if not path.exists():
            # A deleted store may have left its log, which must not be applied to the new one.
            for end in COMPANIONS:
                path.with_name(path.name + end).unlink(missing_ok=True)
        try:
            os.link(source, path)
        except FileExistsError:
            raise
        except OSError:
            with path.open("xb") as file:
                file.write(source.read_bytes())


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder, so that no other program puts a store into it at the same time."""
    try:
        import fcntl
    except ImportError:  # on Windows
        yield
        return
    descriptor, end = os.open(folder, os.O_RDONLY), time.monotonic() + LOCK_TIMEOUT
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    raise UsageError(
                        f"another program keeps the folder {folder} locked; wait until it ends, or make the "
                        "store in another folder"
                    ) from None
                time.sleep(0.05)
                continue
            except OSError as error:
                if error.errno not in LOCKS_UNSUPPORTED:
                    raise
            break
        yield
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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


@contextmanager
def connect(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a plain connection that leaves the files of a store as they are."""
    # A connection in mode rw deletes the log when it closes, one in mode ro leaves it.
    has_log = path.with_name(f"{path.name}-wal").exists() and _may_write(path.parent)
    uri, source = (_make_uri(path, "mode=ro"), path) if has_log else _choose_uri(path)
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=LOCK_TIMEOUT)) as connection:
            yield connection
    finally:
        if source != path:
            shutil.rmtree(source.parent, ignore_errors=True)
