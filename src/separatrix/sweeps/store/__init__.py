"""Where finished cells live: a SQLite file, or a PostgreSQL database that a team shares."""

from separatrix.sweeps.store.addresses import DEFAULT, Address, store_address
from separatrix.sweeps.store.damage import Damage
from separatrix.sweeps.store.errors import DamageWarning, NoStore, StoreError
from separatrix.sweeps.store.filters import Filter, read_filter
from separatrix.sweeps.store.frame import frame, results
from separatrix.sweeps.store.rows import Answer, Checkpoint, Environment, File, Result, Status, Sweep
from separatrix.sweeps.store.selection import Selection, selected
from separatrix.sweeps.store.store import Store
from separatrix.sweeps.store.urls import open_store

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
