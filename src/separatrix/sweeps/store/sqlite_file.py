"""A store in a SQLite file: making it, looking whether it is one, and opening it without changing it."""

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
from separatrix.sweeps.store.errors import DAMAGED, StoreError, told
from separatrix.sweeps.store.ranges import FUNCTION, is_within
from separatrix.sweeps.store.store import Store

PATIENCE = 60
"""Seconds to wait for another program that is writing to the same file."""
MAGIC = b"SQLite format 3\x00"
SECTOR = 512
"""Bytes of which a SQLite file is always a multiple."""
BESIDE = ("-wal", "-shm", "-journal")
"""How the files end that SQLite keeps beside a database."""
NO_LOCKS = {errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP}
"""What a folder says that cannot be locked, as on NFS."""


def open_file(path: Path, create: bool, check: bool, patience: float | None = None) -> Store:
    """The store in a file; with `create` it is made where there is none, with `check` read through first.

    Another program that locks it is waited for a minute, or for `patience` seconds.
    """
    if create and not path.exists():
        _make(path)
    require_file(path)
    if check:
        _read_through(path)
    store = _opened(path, str(path), create, patience)
    if check:
        store.require_complete()
    return store


def _opened(path: Path, where: str, create: bool, patience: float | None = None) -> Store:
    uri, source = _address(path)
    guard = _Guard(source, where, frozen="immutable" in uri)
    engine = _engine(uri, guard, PATIENCE if patience is None else patience)
    store = Store(engine, where, guard.require_unchanged)
    if source != path:
        weakref.finalize(store, shutil.rmtree, source.parent, ignore_errors=True)
    store.require_known(create)
    return store


def _address(path: Path) -> tuple[str, Path]:
    """How to open a file for SQLite, and which: what may not be written to is read all the same.

    SQLite writes beside a file to read it. Where it may not, it reads a file without a log as one that stays
    as it is, and one with a log through the log; where that fails as well, a copy of both is read.
    """
    if _may_write(path) and _may_write(path.parent):
        return _uri(path, "mode=rw"), path
    log = path.with_name(f"{path.name}-wal")
    if not (log.exists() and log.stat().st_size):
        return _uri(path, "immutable=1"), path
    try:
        with closing(sqlite3.connect(_uri(path, "mode=ro"), uri=True)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master")
        return _uri(path, "mode=ro"), path
    except sqlite3.Error:
        copy = Path(tempfile.mkdtemp(prefix="separatrix-")) / path.name
        for end in ("", "-wal"):
            shutil.copyfile(path.with_name(path.name + end), copy.with_name(copy.name + end))
        return _uri(copy, "mode=rw"), copy


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _uri(path: Path, how: str) -> str:
    return f"{path.absolute().as_uri()}?{how}"


class _Guard:
    """Notices that a store was deleted or replaced; or written to, where nobody was thought to."""

    def __init__(self, path: Path, where: str, frozen: bool) -> None:
        self.path, self.where, self.frozen = path, where, frozen
        self._seen = self._look()
        if hasattr(os, "O_PATH"):  # held, so that no new file gets its number; without its locks, too
            weakref.finalize(self, os.close, os.open(path, os.O_PATH | os.O_CLOEXEC))

    def _look(self) -> tuple[int, ...]:
        found = self.path.stat()
        here = (found.st_dev, found.st_ino)
        return (*here, found.st_size, found.st_mtime_ns) if self.frozen else here

    def require_there(self) -> None:
        """Before a connection is made: SQLite would go on with another file of the same name."""
        try:
            same = self._look()[:2] == self._seen[:2]
        except FileNotFoundError:
            raise StoreError(f"the store {self.where} was deleted while it was used; it stays so") from None
        if not same:
            raise StoreError(
                f"the store {self.where} was replaced while it was used; give the same command again"
            )

    def require_unchanged(self) -> None:
        """After a read from a file that was taken to stay as it is."""
        if self.frozen and self._look() != self._seen:
            raise StoreError(
                f"the store {self.where} was written to while it was read; give the same command again"
            )


def _engine(uri: str, guard: _Guard, patience: float) -> Engine:
    def connect() -> sqlite3.Connection:
        guard.require_there()
        return sqlite3.connect(uri, uri=True, timeout=patience, check_same_thread=False)

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)

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


def _make(path: Path) -> None:
    """Make a store beside and put it in place in one step: a file is never half a store."""
    try:
        with new_store(path) as made:
            with closing(sqlite3.connect(made)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
            _opened(made, str(path), create=True)
    except UsageError:
        if not path.exists():  # else another sweep was faster
            raise


def put(made: Path, path: Path) -> None:
    """Put a store in place, where links are known in one step; never over a file or beside an old log."""
    with _alone(path.parent):
        if not path.exists():
            for end in BESIDE:
                path.with_name(path.name + end).unlink(missing_ok=True)
        try:
            os.link(made, path)
        except FileExistsError:
            raise
        except OSError:
            with path.open("xb") as file:
                file.write(made.read_bytes())


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a folder, so that nobody else puts a store into it: its log must not be taken for a deleted one's.

    Whoever may read a folder may lock it, and for as long as they like: they are waited for as others are.
    """
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    here, until = os.open(folder, os.O_RDONLY), time.monotonic() + PATIENCE
    try:
        while True:
            try:
                fcntl.flock(here, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    raise UsageError(
                        f"another program keeps the folder {folder} locked; wait until it ends, or make the "
                        "store in another folder"
                    ) from None
                time.sleep(0.05)
                continue
            except OSError as error:
                if error.errno not in NO_LOCKS:
                    raise
            break
        yield
        os.fsync(here)
    finally:
        os.close(here)


def require_file(path: Path) -> None:
    """Refuse what is no SQLite file, and change nothing: the file is only read."""
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
        raise StoreError(f"{path} is not a store, or its beginning was overwritten; it is left as it is")


def _read_through(path: Path) -> None:
    """Read every page and every index; what stands in a row is checked whenever it is read."""
    if path.stat().st_size % SECTOR or any(complaints(path)):
        raise StoreError(f"the store {path} {DAMAGED}")


def complaints(path: Path) -> Iterator[str]:
    """What SQLite finds wrong with the pages of a file."""
    with told(str(path)), connected(path) as connection:
        for (line,) in connection.execute("PRAGMA integrity_check"):
            if line != "ok":
                yield line


def copy_pages(path: Path, made: Path) -> None:
    """A copy of a store as it is at one moment, though others write to it."""
    with (
        told(str(path)),
        connected(path) as connection,
        closing(sqlite3.connect(made)) as copy,
    ):
        connection.backup(copy)


@contextmanager
def connected(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to look through; ro leaves a log as it is, rw leaves none behind."""
    log = path.with_name(f"{path.name}-wal")
    left = log.exists() and _may_write(path.parent)
    uri, source = (_uri(path, "mode=ro"), path) if left else _address(path)
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=PATIENCE)) as connection:
            yield connection
    finally:
        if source != path:
            shutil.rmtree(source.parent, ignore_errors=True)


@contextmanager
def new_store(path: Path) -> Iterator[Path]:
    """Where to make a store that is put at `path` once it is whole; refused where there is a file."""
    if path.exists():
        raise UsageError(f"{path} is there already, and is left as it is; name another file")
    if not path.parent.is_dir():
        raise UsageError(f"cannot make the store {path}: there is no folder {path.parent}")
    try:
        with told(str(path)), temporary_folder(f".{path.name}.", path.parent) as beside:
            made = beside / "store.db"
            yield made
            put(made, path)
    except FileExistsError:
        raise UsageError(f"{path} is there already, and is left as it is; name another file") from None
    except PermissionError:
        raise UsageError(f"cannot make the store {path}: {path.parent} may not be written to") from None
    except OSError as error:
        raise StoreError(f"cannot make the store {path}: {(error.strerror or str(error)).lower()}") from None
