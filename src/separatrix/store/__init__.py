"""Where finished cells live: a SQLite file, or a PostgreSQL database that a team shares."""

from separatrix.store.addresses import DEFAULT, Address, store_address
from separatrix.store.errors import NoStore, StoreError
from separatrix.store.filters import Filter, read_filter
from separatrix.store.frame import frame, results
from separatrix.store.rows import Environment, Result, Status
from separatrix.store.store import Store, Sweep
from separatrix.store.urls import open_store

__all__ = [
    "DEFAULT",
    "Address",
    "Environment",
    "Filter",
    "NoStore",
    "Result",
    "Status",
    "Store",
    "StoreError",
    "Sweep",
    "frame",
    "open_store",
    "read_filter",
    "results",
    "store_address",
]
