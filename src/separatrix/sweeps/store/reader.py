"""Reading tables in chunks: intact rows are returned, altered and lost ones are counted.

Every row is checked against its checksum, and the number of rows against the tally of the table. A SQLite
file is read by row number and without its indexes, so that a damaged page costs only the rows on it, and a
damaged index costs none.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.types import NullType

from separatrix.sweeps.store import schema
from separatrix.sweeps.store.errors import READ_ERRORS, Damage, is_damage
from separatrix.sweeps.store.rows import Environment, Sweep
from separatrix.sweeps.store.schema import Condition, cells, files, members, select_intact, tallies
from separatrix.sweeps.store.store import Store

WINDOW = 5000
"""Row numbers that are read at once."""
PAGE_WINDOW = 1000
"""The same if only a page of cells is read."""
LAST_NUMBER = 2**63 - 1
PATIENT_STEPS = 100
"""Unreadable rows that are skipped one by one before the steps grow; a page holds fewer rows."""
COLUMNS = tuple(column.name for column in cells.c if column.name != "checksum")
"""The columns of a cell."""
POSITIONS = {name: position for position, name in enumerate(COLUMNS)}

Values = tuple[Any, ...]


class CellRow(NamedTuple):
    """An intact cell."""

    place: Any
    """The row number in SQLite, the identity in PostgreSQL: pages of cells continue after it."""
    values: Values
    """The values of `COLUMNS`; JSON is text."""
    part: str | None
    """The part of the plan if a sweep is read; a cell in several parts is returned several times."""


class Reader:
    """Reads a store within one transaction."""

    def __init__(self, store: Store, connection: sa.Connection) -> None:
        self.store, self.connection = store, connection
        self._is_sqlite = store.dialect == "sqlite"
        self.damage = Damage(store.location)
        self._tallies = self._read_tallies()

    def _read_tallies(self) -> dict[str, int]:
        rows: list[Any] = []
        try:
            rows = list(self.connection.execute(sa.select(tallies.c.name, tallies.c.rows)))
        except READ_ERRORS as error:
            if not is_damage(error):
                raise
            # After a damaged page SQLite rejects all writes until the transaction ends, also those to
            # temporary tables.
            self.connection.rollback()
        counts = {name: count for name, count in rows if type(name) is str and type(count) is int}
        if counts.keys() != {table.name for table in schema.TABLES}:
            self.damage.add("altered" if rows else "lost", "counts", 1)
        return counts

    def compare_tally(self, table: sa.Table, count: int) -> None:
        """Report the rows that are missing in a table of which `count` rows were read."""
        tally = self._tallies.get(table.name, count)
        self.damage.add("lost", table.name, tally - count)
        if tally < count:
            self.damage.altered["counts"] = 1

    def read(
        self, table: sa.Table, condition: Condition | None = None, after: Any = None
    ) -> Iterator[list[tuple[Any, Values]]]:
        """Yield the intact rows that meet a condition, in chunks of `(place, values)`.

        With `after`, only rows after that place, in the order of places; the tally is then not compared.
        """
        chunks = (self._read_windows if self._is_sqlite else self._stream)(table, condition, after)
        for rows in chunks:
            intact = select_intact(rows)
            self.damage.add("altered", table.name, len(rows) - len(intact))
            yield [(row[0], row[1:-1]) for row in intact]

    def _select(self, table: sa.Table) -> sa.Select[Any]:
        """Place, columns and checksum of rows, as plain values that nothing converts."""
        plain: list[Any] = [
            sa.cast(column, sa.Text)
            if isinstance(column.type, sa.JSON) and not self._is_sqlite
            else sa.type_coerce(column, NullType()).label(column.name)
            for column in table.c
        ]
        if not self._is_sqlite:
            return sa.select(next(iter(table.primary_key)).label("place"), *plain)
        return sa.select(_row_number(table), *plain).with_hint(table, "NOT INDEXED", "sqlite")

    def _stream(self, table: sa.Table, condition: Condition | None, after: str | None) -> Iterator[list[Any]]:
        statement = self._select(table).where(sa.true() if condition is None else condition)
        if after is None:
            self.compare_tally(table, self.connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0)
        else:
            statement = statement.where(cells.c.id > after).order_by(cells.c.id)
        size = 1 if table is files else WINDOW
        with self.connection.execute(statement, execution_options={"stream_results": True}) as result:
            yield from (list(map(tuple, rows)) for rows in result.partitions(size))

    def _read_windows(self, table: sa.Table, condition: Condition | None, after: int | None) -> Iterator[list[Any]]:
        largest = 1 if table is files else WINDOW if after is None else PAGE_WINDOW
        number, size, total, failures = after or 0, largest, 0, 0
        following = sa.select(sa.func.min(_row_number(table))).select_from(table)
        while number < LAST_NUMBER:
            last = min(number + size, LAST_NUMBER)
            try:
                count, rows = self._read_window(table, condition, number, last)
                if not count:
                    start = self.connection.scalar(following.where(_row_number(table) > last))
                    if start is None:
                        break
                    number = start - 1
                    continue
            except READ_ERRORS as error:
                if not is_damage(error):
                    raise
                # Approach the unreadable row in smaller windows, then step over it. After many failures the
                # steps double: a whole branch of the table is gone, or its end.
                if size > 1:
                    size = max(1, size // 16)
                else:
                    number += 1 << max(0, failures - PATIENT_STEPS)
                    failures += 1
                continue
            yield rows
            total, number, size, failures = total + count, last, min(16 * size, largest), 0
        if not after:
            self.compare_tally(table, total)

    def _read_window(
        self, table: sa.Table, condition: Condition | None, first: int, last: int
    ) -> tuple[int, list[Any]]:
        """The number of rows whose numbers are in `(first, last]`, and those that meet the condition."""
        number = _row_number(table)
        # A range also reads the row after it, which may be on a damaged page; a single number does not.
        inside = number == last if last == first + 1 else sa.and_(number > first, number <= last)
        if condition is None:
            rows = list(map(tuple, self.connection.execute(self._select(table).where(inside)).all()))
            # A damaged page can show one row twice in place of another.
            rows = list({row[0]: row for row in rows}.values())
            return len(rows), rows
        # One statement counts all rows and finds those that match. To fetch a million numbers into Python
        # would take several times longer than the scan.
        matching_numbers = sa.func.json_group_array(number).filter(condition)
        statement = sa.select(sa.func.count(number.distinct()), matching_numbers).select_from(table).where(inside)
        count, numbers = self.connection.execute(statement.with_hint(table, "NOT INDEXED", "sqlite")).one()
        if numbers == "[]":
            return count, []
        row_numbers = sa.func.json_each(numbers).table_valued("value").c.value
        rows = list(self.connection.execute(self._select(table).where(number.in_(sa.select(row_numbers)))))
        return count, [tuple(row) for row in rows]

    def read_cells(
        self, condition: Condition, kind: str | None, sweep: int | None = None, after: Any = None
    ) -> Generator[list[CellRow]]:
        """Yield the intact cells that meet a condition, in chunks.

        Verdicts are told from other kinds after their checksums are verified, so that an altered kind hides
        no verdict.
        """
        if kind not in (None, schema.VERDICT):
            condition = sa.and_(cells.c.kind == kind, condition)
        if sweep is not None:
            condition = sa.and_(self._is_member(sweep), condition)
        for chunk in self.read(cells, condition, after):
            cells_of_kind = [(place, values) for place, values in chunk if kind in (None, values[POSITIONS["kind"]])]
            if sweep is None:
                yield [CellRow(place, values, None) for place, values in cells_of_kind]
            elif cells_of_kind:
                parts = self._find_parts(sweep, [values[0] for _, values in cells_of_kind])
                yield [CellRow(place, values, part) for place, values in cells_of_kind for part in parts[values[0]]]

    def _is_member(self, sweep: int) -> Condition:
        """The condition that a cell belongs to a sweep.

        For SQLite the verified members are copied into a temporary table, because the index of the table
        itself may be damaged.
        """
        if not self._is_sqlite:
            count = self.connection.scalar(sa.select(sa.func.count()).select_from(members))
            self.compare_tally(members, count or 0)
            return cells.c.id.in_(sa.select(members.c.cell).where(members.c.sweep == sweep))
        self.connection.exec_driver_sql("DROP TABLE IF EXISTS temp.own_members")
        self.connection.exec_driver_sql(
            "CREATE TEMP TABLE own_members (cell TEXT, part TEXT, PRIMARY KEY (cell, part)) WITHOUT ROWID"
        )
        with self.store.reading() as connection:  # this connection could not write after a damaged page
            reader = Reader(self.store, connection)
            reader.damage = self.damage
            for rows in reader.read(members, members.c.sweep == sweep):
                pairs = [(cell, part) for _, (_, cell, part) in rows]
                if pairs:
                    self.connection.exec_driver_sql("INSERT INTO own_members VALUES (?, ?)", pairs)
        return sa.literal_column("cells.id IN (SELECT cell FROM temp.own_members)", sa.Boolean)

    def _find_parts(self, sweep: int, ids: list[str]) -> dict[str, list[str]]:
        """The parts of a plan that name each of the cells."""
        parts: dict[str, list[str]] = {cell: [] for cell in ids}
        if self._is_sqlite:
            text = "SELECT cell, part FROM temp.own_members WHERE cell IN (SELECT value FROM json_each(?))"
            rows = [tuple(row) for row in self.connection.exec_driver_sql(text, (json.dumps(ids),))]
        else:
            is_named = schema.is_among(members.c.cell, ids, self.store.dialect)
            query = self._select(members).where(members.c.sweep == sweep, is_named)
            member_rows = [tuple(row) for row in self.connection.execute(query)]
            rows = [row[2:4] for row in select_intact(member_rows)]
            self.damage.add("altered", members.name, len(member_rows) - len(rows))
        for cell, part in rows:
            parts[cell].append(part)
        return parts

    def read_sweeps(self) -> list[Sweep]:
        """Return the intact sweeps, oldest first, without the number of their cells."""
        return sorted(
            (Sweep(*values) for rows in self.read(schema.sweeps) for _, values in rows), key=lambda sweep: sweep.id
        )

    def read_environments(self) -> dict[str, Environment]:
        """Return the intact environments by their identity."""
        rows = (values for chunk in self.read(schema.environments) for _, values in chunk)
        return {id_: Environment(host, json.loads(versions)) for id_, host, versions in rows}


def _row_number(table: sa.Table) -> sa.ColumnElement[int]:
    return sa.literal_column(f"{table.name}.rowid", sa.Integer)
