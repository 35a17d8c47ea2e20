"""Files beside a row: curves, weights, and the checkpoints of work that is not finished.

They are rows of a table in either database: a store stays one file, one backup, one transaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Select, delete, func, select, type_coerce
from sqlalchemy.types import NullType

from separatrix.core.parameters.model import require_known
from separatrix.sweeps.store.errors import DAMAGED, StoreError
from separatrix.sweeps.store.rows import Checkpoint, File, Status
from separatrix.sweeps.store.schema import cells, files
from separatrix.sweeps.store.seals import seal, sealed, sealed_names

if TYPE_CHECKING:
    import polars as pl

    from separatrix.sweeps.store.store import Store

CHECKPOINT = ".checkpoint"
"""What no file of a result can be called."""
CURVES = "curves.parquet"
AT_ONCE = 500
"""Cells in one query."""
ROWS: Select[Any] = select(
    *(
        column if column.name != "data" else type_coerce(column, NullType()).label("data")
        for column in files.c
    )
)
"""Rows as they stand: where SQLite has a number for the bytes, so many bytes would be made of it."""


def curves_file(rows: Iterable[tuple[int, str, float]]) -> File:
    """Learning curves as a file: Parquet, a row for each `(step, name, value)`."""
    import polars as pl

    schema, made = {"step": pl.Int64, "name": pl.String, "value": pl.Float64}, BytesIO()
    pl.DataFrame(list(rows), schema=schema, orient="row").write_parquet(made)
    return File(CURVES, made.getvalue(), "application/vnd.apache.parquet")


def read_curves(store: Store, cell: str) -> pl.DataFrame:
    """The learning curves of a cell, with columns `step`, `name` and `value`."""
    import polars as pl

    return pl.read_parquet(BytesIO(read_file(store, cell, CURVES)))


def file_names(store: Store, cell: str) -> list[str]:
    """What is kept beside a cell, but for its checkpoint."""
    asked = select(files.c.name).where(files.c.cell == cell, files.c.name != CHECKPOINT)
    return [name for (name,) in store.select(asked.order_by(files.c.name))]


def read_file(store: Store, cell: str, name: str) -> bytes:
    """The bytes of a file beside a cell."""
    found = _read(store, [cell], name).get(cell)
    if found is None:
        require_known("file", name, file_names(store, cell) or ["none"])
        raise StoreError(f"the store {store.where} {DAMAGED}")
    data: bytes = found["data"]
    return data


def checkpoints(store: Store, ids: Sequence[str]) -> dict[str, Checkpoint]:
    """From where those of the cells can be gone on with that an earlier run began."""
    found = _read(store, ids, CHECKPOINT)
    return {cell: Checkpoint(row["data"], row["seconds"]) for cell, row in found.items()}


def keep_checkpoint(store: Store, cell: str, checkpoint: Checkpoint) -> None:
    """Keep from where a cell goes on, instead of what was kept before; nothing where it is finished."""
    with store.writing() as connection:
        store.hold(connection, files.name)
        finished = select(cells.c.id).where(cells.c.id == cell, cells.c.status != Status.FAILED.value)
        if connection.execute(finished).first() is None:
            file = _row(cell, CHECKPOINT, "application/octet-stream", checkpoint.seconds, checkpoint.data)
            put(store, connection, {cell: [file]})


def file_row(cell: str, file: File) -> dict[str, Any]:
    """A file as a row of the table."""
    return _row(cell, file.name, file.media_type, 0.0, file.data)


def put(store: Store, connection: Connection, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Keep these files of cells, instead of all that they had."""
    own = files.c.cell.in_(list(rows))
    there = connection.execute(select(func.count()).select_from(files).where(own)).scalar_one()
    if there:
        connection.execute(delete(files).where(own))
    new = [dict(row) for some in rows.values() for row in some]
    if new:
        connection.execute(files.insert(), new)
    if len(new) != there:
        store.count(connection, files.name, len(new) - there)


def is_intact(row: Mapping[str, Any]) -> bool:
    """Whether a row is what was stored: its bytes by their digest, the rest by its seal."""
    data, values = row["data"], tuple(row[name] for name in sealed_names(files))
    if not isinstance(data, bytes) or row["seal"] != seal(values):
        return False
    return bool(hashlib.sha256(data).hexdigest() == row["digest"])


def _row(cell: str, name: str, media_type: str, seconds: float, data: bytes) -> dict[str, Any]:
    row = {"cell": cell, "name": name, "media_type": media_type, "seconds": seconds}
    return {**sealed({**row, "digest": hashlib.sha256(data).hexdigest()}, files), "data": data}


def _read(store: Store, ids: Sequence[str], name: str) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for start in range(0, len(ids), AT_ONCE):
        some = files.c.cell.in_(ids[start : start + AT_ONCE])
        for row in store.select(ROWS.where(some, files.c.name == name)):
            if not is_intact(row._mapping):
                raise StoreError(f"the store {store.where} {DAMAGED}")
            found[row.cell] = row._mapping
    return found
