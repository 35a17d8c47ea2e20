"""The store of finished cells: a SQLite file, or a PostgreSQL database that a team shares."""

from separatrix.sweeps.store.addresses import DEFAULT, Address, parse_address
from separatrix.sweeps.store.errors import Damage, DamageWarning, NoStore, StoreError
from separatrix.sweeps.store.filters import Filter, read_filter
from separatrix.sweeps.store.frame import frame, results
from separatrix.sweeps.store.opening import open_store
from separatrix.sweeps.store.rows import Answer, CellResult, CellStatus, Checkpoint, Environment, File, Sweep
from separatrix.sweeps.store.selection import Selection, select_cells
from separatrix.sweeps.store.store import Store

__all__ = [
    "DEFAULT",
    "Address",
    "Answer",
    "CellResult",
    "CellStatus",
    "Checkpoint",
    "Damage",
    "DamageWarning",
    "Environment",
    "File",
    "Filter",
    "NoStore",
    "Selection",
    "Store",
    "StoreError",
    "Sweep",
    "frame",
    "open_store",
    "parse_address",
    "read_filter",
    "results",
    "select_cells",
]
