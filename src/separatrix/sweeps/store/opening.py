"""Opening the store at an address."""

from __future__ import annotations

import shlex
import time
from collections.abc import Generator
from typing import Any

from sqlalchemy import Engine, create_engine, event

from separatrix.core.parameters import UsageError
from separatrix.core.secrets import Secret
from separatrix.sweeps.store.addresses import DEFAULT, Address, parse_address
from separatrix.sweeps.store.errors import DAMAGED, NoStore, StoreError
from separatrix.sweeps.store.reader import Reader
from separatrix.sweeps.store.schema import TABLES
from separatrix.sweeps.store.sqlite_file import open_file
from separatrix.sweeps.store.store import Store

CONNECT_TIMEOUT = 10
"""Seconds to wait for a PostgreSQL server to accept a connection."""
MIN_CONNECT_TIMEOUT = 2
"""The least that psycopg accepts."""

WaitSteps = Generator[Any, Any, Any]
"""What psycopg waits for: it yields a request for the socket, and receives whether the socket is ready."""


def open_store(
    url: str | Secret | Address = DEFAULT,
    create: bool = False,
    check: bool = False,
    timeout: float | None = None,
    read_only: bool = False,
) -> Store:
    """Open the store at an address.

    **Arguments:**

    - `create`: create it if there is none.
    - `check`: read all of it first, and raise an error if it is damaged.
    - `timeout`: seconds to wait for a store that does not respond. The default is a minute for a SQLite file
      that another program locks, and no limit for a connected PostgreSQL server.
    - `read_only`: let the database itself reject all changes.
    """
    address = parse_address(url)
    path = address.path
    if path is None:
        store = Store(_make_engine(address, timeout), address.shown)
        store.require_version(create)
    elif not create and not path.exists():
        location = shlex.quote(address.shown)
        raise NoStore(f"there is no store {path}; make one with: separatrix sweep plan.toml `store` {location}")
    else:
        store = open_file(path, create, check, timeout)
        if check:
            require_complete(store)
    if read_only:
        store.make_read_only()
    return store


def require_complete(store: Store) -> None:
    """Raise StoreError if a table has lost rows."""
    with store.reading() as connection:
        reader = Reader(store, connection)
        for table in TABLES:
            reader.check_count(table)
    if reader.damage:
        raise StoreError(f"the store {store.location} {DAMAGED}")


def _make_engine(address: Address, timeout: float | None) -> Engine:
    """The engine for PostgreSQL; passwords are added where it connects, and removed from its errors."""
    assert address.server is not None
    seconds = CONNECT_TIMEOUT
    if timeout is not None:
        seconds = round(min(CONNECT_TIMEOUT, max(MIN_CONNECT_TIMEOUT, timeout)))
    try:
        # A server that was restarted has closed the connections in the pool: each is tested before its use.
        engine = create_engine(address.server, pool_pre_ping=True)
    except ImportError:
        raise UsageError(
            "a store in PostgreSQL needs the package psycopg: pip install 'separatrix[postgres]'"
        ) from None

    @event.listens_for(engine, "do_connect")
    def connect(dialect: Any, _: object, words: list[Any], options: dict[str, Any]) -> Any:
        options = {"connect_timeout": seconds, **options, **address.settings}
        driver = dialect.loaded_dbapi
        try:
            if timeout is None:
                return dialect.connect(*words, **options)
            return _make_connection_class(driver, timeout).connect(*words, **options)
        except driver.Error as error:
            raise type(error)(address.hide_secrets(str(error))) from None

    return engine


def _make_connection_class(driver: Any, timeout: float) -> Any:
    """psycopg's connection with a limit for a silent server: a frozen one never reports an error."""

    class ImpatientConnection(driver.Connection):  # type: ignore[misc]
        def wait(self, steps: WaitSteps, *words: Any, **options: Any) -> Any:
            return super().wait(self._limit(steps), *words, **options)

        def _limit(self, steps: WaitSteps) -> WaitSteps:
            heard, is_ready = time.monotonic(), None
            while True:
                try:
                    request = steps.send(is_ready)
                except StopIteration as end:
                    return end.value
                is_ready = yield request
                if is_ready:
                    heard = time.monotonic()
                elif time.monotonic() - heard > timeout:
                    self.close()
                    raise driver.OperationalError(f"no answer for {timeout:g} s")

    return ImpatientConnection
