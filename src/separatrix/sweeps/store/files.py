"""Files beside a cell: curves, weights, and the checkpoints of unfinished work.

They are rows of a table, so that a store stays one file, one backup and one transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from io import BytesIO
from typing import TYPE_CHECKING

from sqlalchemy import select

from separatrix.core.lazy import pl
from separatrix.core.parameters.model import require_known
from separatrix.sweeps.store.errors import DAMAGED, StoreError
from separatrix.sweeps.store.reader import Reader, Values
from separatrix.sweeps.store.rows import CellStatus, Checkpoint, File
from separatrix.sweeps.store.schema import cells, files, is_among

if TYPE_CHECKING:
    from separatrix.sweeps.store.store import Store

CHECKPOINT = ".checkpoint"
"""The name of a checkpoint; no file of a result can have it."""
CURVES = "curves.parquet"


def make_curves_file(rows: Iterable[tuple[int, str, float]]) -> File:
    """Return learning curves as a Parquet file with one row for each `(step, name, value)`."""
    schema, buffer = {"step": pl.Int64, "name": pl.String, "value": pl.Float64}, BytesIO()
    pl.DataFrame(list(rows), schema=schema, orient="row").write_parquet(buffer)
    return File(CURVES, buffer.getvalue(), "application/vnd.apache.parquet")


def read_curves(store: Store, cell: str) -> pl.DataFrame:
    """Return the learning curves of a cell, with columns `step`, `name` and `value`."""
    return pl.read_parquet(BytesIO(read_file(store, cell, CURVES)))


def list_files(store: Store, cell: str) -> list[str]:
    """Return the names of the files beside a cell, without its checkpoint."""
    query = select(files.c.name).where(files.c.cell == cell, files.c.name != CHECKPOINT)
    return [name for (name,) in store.select(query.order_by(files.c.name))]


def read_file(store: Store, cell: str, name: str) -> bytes:
    """Return the bytes of a file beside a cell."""
    row = _read_rows(store, [cell], name).get(cell)
    if row is None:
        require_known("file", name, list_files(store, cell) or ["none"])
        raise StoreError(f"the store {store.location} {DAMAGED}")
    data: bytes = row[-1]
    return data


def read_checkpoints(store: Store, cells: Collection[str]) -> dict[str, Checkpoint]:
    """Return the checkpoints that earlier runs left for some of the cells."""
    rows = _read_rows(store, cells, CHECKPOINT)
    return {cell: Checkpoint(data, seconds) for cell, (*_, seconds, data) in rows.items()}


def write_checkpoint(store: Store, cell: str, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint of a cell, unless the cell is finished."""
    with store.writing() as connection:
        finished_cell = select(cells.c.id).where(cells.c.id == cell, cells.c.status != CellStatus.FAILED.value)
        if connection.execute(finished_cell).first() is None:
            row = {"cell": cell, "name": CHECKPOINT, "media_type": File.media_type, **vars(checkpoint)}
            store.replace_files(connection, [cell], [row])


def _read_rows(store: Store, owners: Collection[str], name: str) -> dict[str, Values]:
    """The intact rows of files of one name, by cell; StoreError if one is altered."""
    with store.reading() as connection:
        reader = Reader(store, connection)
        query = reader.select(files).where(is_among(files.c.cell, owners, store.dialect), files.c.name == name)
        rows = reader.verify(files, connection.execute(query))
    if reader.damage:
        raise StoreError(f"the store {store.location} {DAMAGED}")
    return {row[0]: row for row in rows}
