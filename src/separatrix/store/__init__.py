"""Where finished cells live: a SQLite file, or a PostgreSQL database that a team shares."""

from separatrix.store.addresses import DEFAULT, Address, store_address
from separatrix.store.damage import Damage
from separatrix.store.errors import DamageWarning, NoStore, StoreError
from separatrix.store.filters import Filter, read_filter
from separatrix.store.frame import frame, results
from separatrix.store.rows import Answer, Checkpoint, Environment, File, Result, Status, Sweep
from separatrix.store.selection import Selection, selected
from separatrix.store.store import Store
from separatrix.store.urls import open_store

__all__ = [
    "DEFAULT",
    "Address",
    "Answer",
    "Checkpoint",
    "Damage",
    "DamageWarning",
    "Environment",
    "File",
    "Filter",
    "NoStore",
    "Result",
    "Selection",
    "Status",
    "Store",
    "StoreError",
    "Sweep",
    "frame",
    "open_store",
    "read_filter",
    "results",
    "selected",
    "store_address",
]
