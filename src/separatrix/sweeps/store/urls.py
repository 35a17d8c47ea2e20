"""From the address of a store to an open store."""

from __future__ import annotations

import shlex
from typing import Any

from sqlalchemy import Engine, create_engine, event

from separatrix.core.parameters import UsageError
from separatrix.core.secrets import Secret
from separatrix.sweeps.store.addresses import DEFAULT, Address, store_address
from separatrix.sweeps.store.errors import NoStore
from separatrix.sweeps.store.patience import patient
from separatrix.sweeps.store.sqlite_file import open_file
from separatrix.sweeps.store.store import Store

ANSWER = 10
"""Seconds to wait for a PostgreSQL server to answer."""


def open_store(
    url: str | Secret | Address = DEFAULT,
    create: bool = False,
    check: bool = False,
    patience: float | None = None,
    read_only: bool = False,
) -> Store:
    """The store at `url`; with `create` it is made where there is none, with `check` read through first.

    With `read_only` the database itself refuses whatever would change it.

    After `patience` seconds without an answer it is given up. If it is not given, a SQLite file that another
    program locks has a minute, and a PostgreSQL server that is connected as long as it likes.
    """
    address = store_address(url)
    path = address.path
    if path is None:
        store = Store(_postgresql(address, patience), address.shown)
        store.require_known(create)
    elif not create and not path.exists():
        where = shlex.quote(address.shown)
        raise NoStore(f"there is no store {path}; make one with: separatrix sweep plan.toml `store` {where}")
    else:
        store = open_file(path, create, check, patience)
    if read_only:
        store.refuse_writing()
    return store


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
