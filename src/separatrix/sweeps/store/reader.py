"""Reading tables in chunks: intact rows are returned, altered and lost ones are counted.

Every row is checked against its checksum. A SQLite file has each row twice, in its table and in the index of its
key: rows that are in the index alone are lost. A page that cannot be read is an error: `store repair` copies the rows
of other pages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.types import NullType

from separatrix.sweeps.store import schema
from separatrix.sweeps.store.errors import Damage
from separatrix.sweeps.store.rows import Environment, Sweep
from separatrix.sweeps.store.schema import Condition, cells, files, members
from separatrix.sweeps.store.store import Store

CHUNK = 2000
"""Rows that are in memory at once."""
COLUMNS = tuple(column.name for column in cells.c if column.name != "checksum")
"""The columns of a cell."""
POSITIONS = {name: position for position, name in enumerate(COLUMNS)}

Values = tuple[Any, ...]


class CellRow(NamedTuple):
    """An intact cell."""

    values: Values
    """The values of `COLUMNS`; JSON is text."""
    part: str | None
    """The part of the plan if a sweep is read; a cell in several parts is returned several times."""


class Reader:
    """Reads a store within one transaction."""

    def __init__(self, store: Store, connection: sa.Connection) -> None:
        self.store, self.connection = store, connection
        self.damage = Damage(store.location)

    def compare_with_index(self, table: sa.Table, count: int, uses_index: bool = False) -> None:
        """Report rows that are in the index of a table, but not among the `count` rows that were read.

        With `uses_index`, also report rows that the index would hide.
        """
        if self.store.dialect == "sqlite":
            statement = f"SELECT count(*) FROM {table.name} INDEXED BY sqlite_autoindex_{table.name}_1"
            difference = self.connection.exec_driver_sql(statement).scalar_one() - count
            self.damage.add("lost", table.name, abs(difference) if uses_index else difference)

    def check_count(self, table: sa.Table, uses_index: bool = False) -> None:
        """Compare the number of rows in a table with its index."""
        if self.store.dialect == "sqlite":  # a damaged page can show one row twice in place of another
            statement = f"SELECT count(DISTINCT +rowid) FROM {table.name} NOT INDEXED"
            count = self.connection.exec_driver_sql(statement).scalar_one()
            self.compare_with_index(table, count, uses_index)

    def read(self, table: sa.Table, condition: Condition | None = None) -> Iterator[list[Values]]:
        """Yield the values of the intact rows that meet a condition, in chunks."""
        self.check_count(table)
        yield from self._stream(table, self.select(table).where(sa.true() if condition is None else condition))

    def select(self, table: sa.Table) -> sa.Select[Any]:
        """Return a query for the columns and the checksum of rows, as plain values that nothing converts."""
        columns: list[Any] = [
            sa.cast(column, sa.Text)
            if isinstance(column.type, sa.JSON) and self.store.dialect == "postgresql"
            else sa.type_coerce(column, NullType()).label(column.name)
            for column in table.c
        ]
        return sa.select(*columns)

    def _stream(self, table: sa.Table, statement: sa.Select[Any]) -> Iterator[list[Values]]:
        size = 1 if table is files else CHUNK
        with self.connection.execute(statement, execution_options={"stream_results": True}) as result:
            for rows in result.partitions(size):
                yield self.verify(table, rows)

    def _without_index(self, column: sa.Column[Any]) -> sa.ColumnElement[Any]:
        """A column by which SQLite does not search: a damaged index would hide rows without any sign."""
        return sa.literal_column(f"+{column}", column.type) if self.store.dialect == "sqlite" else column

    def verify(self, table: sa.Table, rows: Iterable[Sequence[Any]]) -> list[Values]:
        """Return the values of intact rows; report the others."""
        different = dict.fromkeys(map(tuple, rows))
        intact = [row[:-1] for row in different if schema.checksum(row[:-1]) == row[-1]]
        self.damage.add("altered", table.name, len(different) - len(intact))
        return intact

    def read_cells(
        self, condition: Condition, kind: str | None, sweep: int | None = None, after: str | None = None
    ) -> Iterator[list[CellRow]]:
        """Yield the intact cells that meet a condition, in chunks; with `after`, those of greater id by id.

        Verdicts are told from other kinds after their checksums are verified, so that an altered kind hides
        no verdict.
        """
        if kind not in (None, schema.VERDICT):
            condition = sa.and_(cells.c.kind == kind, condition)
        parts, known = dict[str, tuple[str, ...]](), dict[tuple[str, ...], tuple[str, ...]]()
        if sweep is not None:
            for rows in self.read(members, self._without_index(members.c.sweep) == sweep):
                for _, cell, part in rows:
                    names = (*parts.get(cell, ()), part)
                    parts[cell] = known.setdefault(names, names)  # one tuple for all cells of a part
            is_member = schema.is_among(self._without_index(cells.c.id), parts, self.store.dialect)
            condition = sa.and_(is_member, condition)
        if after is None:
            chunks = self.read(cells, condition)
        else:
            if not after:
                self.check_count(cells, uses_index=True)
            statement = self.select(cells).where(condition, cells.c.id > after).order_by(cells.c.id)
            chunks = self._stream(cells, statement)
        for chunk in chunks:
            yield [
                CellRow(values, part)
                for values in chunk
                if kind in (None, values[POSITIONS["kind"]])
                for part in ((None,) if sweep is None else parts.get(values[0], ()))
            ]

    def read_sweeps(self) -> list[Sweep]:
        """Return the intact sweeps, oldest first, without the number of their cells."""
        return sorted(
            (Sweep(*values) for rows in self.read(schema.sweeps) for values in rows), key=lambda sweep: sweep.id
        )

    def read_environments(self) -> dict[str, Environment]:
        """Return the intact environments by their identity."""
        rows = (values for chunk in self.read(schema.environments) for values in chunk)
        return {id_: Environment(host, json.loads(versions)) for id_, host, versions in rows}
