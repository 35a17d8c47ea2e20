"""An open store: finished cells, the sweeps they belong to, and adding to both."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Engine, Select, Table, delete, event, func, select
from sqlalchemy.dialects import postgresql, sqlite

from separatrix.sweeps.store.errors import DAMAGED, NoStore, StoreError, as_store_error
from separatrix.sweeps.store.rows import CellResult, CellStatus, Environment, findings_as_text, utc_now
from separatrix.sweeps.store.schema import (
    VERDICT,
    cells,
    create_tables,
    environments,
    files,
    is_among,
    leases,
    make_row,
    members,
    read_version,
    sweeps,
)

MAX_IDLE_SECONDS = 20
"""Seconds after which a PostgreSQL server ends a transaction whose program stopped responding."""
EMPTY_CELL = {column.name: None if column.nullable else "" for column in cells.c} | {"kind": VERDICT}


class Store:
    """An open store. Every method is one transaction; every error is one line."""

    def __init__(self, engine: Engine, location: str) -> None:
        self.engine, self.location = engine, location
        self.dialect: str = engine.dialect.name
        weakref.finalize(self, engine.dispose)

    def make_read_only(self) -> None:
        """Let the database itself reject all changes from now on."""

        @event.listens_for(self.engine, "connect")
        def prepare(connection: Any, _: object) -> None:
            if self.dialect == "sqlite":
                connection.execute("PRAGMA query_only = ON")
            else:
                connection.read_only = True

        self.engine.dispose()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction that may write; a store has one writer at a time."""
        with as_store_error(self.location), self.engine.begin() as connection:
            if self.dialect == "postgresql":
                limit = f"SET LOCAL idle_in_transaction_session_timeout = '{MAX_IDLE_SECONDS}s'"
                connection.exec_driver_sql(limit)
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7368, hashtext(current_schema()))")
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a transaction that sees one state of the store and waits for no writer."""
        options: dict[str, Any] = {"reading": True}
        if self.dialect == "postgresql":
            options["isolation_level"] = "REPEATABLE READ"
        with (
            as_store_error(self.location),
            self.engine.connect().execution_options(**options) as connection,
            closing(connection.begin()),  # rolled back: SQLite cannot commit after it read a damaged page
        ):
            yield connection

    def require_version(self, create: bool = False) -> None:
        """Raise an error unless this is a store of the known version; create the tables of an empty one."""
        with self.reading() as connection:
            is_empty = not read_version(connection, self.location)
        if is_empty and not create:
            raise NoStore(f"the store {self.location} is empty; fill it with: separatrix sweep plan.toml")
        if is_empty:
            with self.writing() as connection:
                create_tables(connection, self.location)

    def find_statuses(self, ids: Collection[str]) -> dict[str, CellStatus]:
        """Return how those of the cells ended that are stored."""
        statement = select(cells.c.id, cells.c.status).where(is_among(cells.c.id, ids, self.dialect))
        return self.parse_statuses(dict(self.select(statement)))

    def parse_statuses(self, texts: Mapping[str, str]) -> dict[str, CellStatus]:
        """Return statuses by cell from their texts; an unknown one is damage."""
        try:
            return {cell: CellStatus(status) for cell, status in texts.items()}
        except ValueError:
            raise StoreError(f"the store {self.location} {DAMAGED}") from None

    def add(self, results: Iterable[tuple[str, Mapping[str, Any], CellResult]]) -> None:
        """Store finished cells, all or none: `(id, columns that describe the work, result)`.

        A cell that is stored as done or refused stays as it is; a failed one is replaced. Leases on the cells
        end in the same transaction.
        """
        cells_by_id: dict[str, tuple[dict[str, Any], CellResult]] = {}
        for cell, columns, result in results:
            if cell not in cells_by_id or cells_by_id[cell][1].status is CellStatus.FAILED:
                cells_by_id[cell] = _make_cell(cell, columns, result), result
        if not cells_by_id:
            return
        with self.writing() as connection:
            is_own = is_among(cells.c.id, cells_by_id, self.dialect)
            delete_failed = delete(cells).where(is_own, cells.c.status == CellStatus.FAILED.value)
            connection.execute(delete_failed)
            stored_ids = set(connection.execute(select(cells.c.id).where(is_own)).scalars())
            new = {cell: entry for cell, entry in sorted(cells_by_id.items()) if cell not in stored_ids}
            self._add_environments(connection, [result.environment for _, result in new.values()])
            self.insert(connection, cells, [row for row, _ in new.values()])
            self.replace_files(
                connection,
                [cell for cell, (row, _) in new.items() if row["kind"] != VERDICT],
                [
                    {"cell": cell, "seconds": 0.0, **vars(file)}
                    for cell, (_, result) in new.items()
                    for file in result.files
                ],
            )
            connection.execute(delete(leases).where(is_among(leases.c.cell, cells_by_id, self.dialect)))

    def _add_environments(self, connection: Connection, result_environments: Iterable[Environment]) -> None:
        by_id = {environment.id: environment for environment in result_environments}
        query = select(environments.c.id).where(is_among(environments.c.id, by_id, self.dialect))
        new = sorted(by_id.keys() - set(connection.execute(query).scalars()))
        self.insert(connection, environments, [make_row(environments, {"id": id_, **vars(by_id[id_])}) for id_ in new])

    def replace_files(self, connection: Connection, owners: Collection[str], new: Sequence[Mapping[str, Any]]) -> None:
        """Replace all files of some cells; verdicts have none."""
        if owners:
            connection.execute(delete(files).where(is_among(files.c.cell, owners, self.dialect)))
            self.insert(connection, files, [make_row(files, file) for file in new])

    def insert(self, connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows from `make_row`.

        They go to the driver as they are: SQLAlchemy's conversion of each value would take longer than the
        insertion itself.
        """
        if not rows:
            return
        dialect: Any = postgresql if self.dialect == "postgresql" else sqlite
        statement = dialect.insert(table).compile(dialect=self.engine.dialect, column_keys=list(table.c.keys()))
        if statement.positional:
            values = itemgetter(*statement.positiontup)
            connection.exec_driver_sql(str(statement), [values(row) for row in rows])
        else:
            connection.exec_driver_sql(str(statement), [dict(row) for row in rows])

    def begin_sweep(self, key: str, name: str, plan: str) -> int:
        """Return the number of the sweep with this key, which is added if it is new."""
        with self.writing() as connection:
            existing = connection.execute(select(sweeps.c.id).where(sweeps.c.key == key)).scalar_one_or_none()
            if existing is not None:
                return int(existing)
            # Assigned here and not by the database, since the number is under the checksum of its row.
            number = (connection.execute(select(func.max(sweeps.c.id))).scalar() or 0) + 1
            row = {"id": number, "key": key, "name": name, "plan": plan, "started": utc_now()}
            self.insert(connection, sweeps, [make_row(sweeps, row)])
            return int(number)

    def add_members(self, sweep: int, new: Iterable[tuple[str, str]]) -> None:
        """Add cells to a sweep: `(id, part of the plan)`; the cells need not be finished."""
        pairs = set(new)
        with self.writing() as connection:
            is_new_cell = is_among(members.c.cell, {cell for cell, _ in pairs}, self.dialect)
            query = select(members.c.cell, members.c.part).where(members.c.sweep == sweep, is_new_cell)
            pairs -= {(cell, part) for cell, part in connection.execute(query)}
            rows = [{"sweep": sweep, "cell": cell, "part": part} for cell, part in sorted(pairs)]
            self.insert(connection, members, [make_row(members, row) for row in rows])

    def mean_seconds(self) -> dict[tuple[str, ...], float]:
        """Return the mean seconds of the done cells by construction, mechanism and requested engine."""
        group = (cells.c.construction, cells.c.mechanism, cells.c.asked)
        is_done = cells.c.status == CellStatus.DONE.value
        rows = self.select(select(*group, func.avg(cells.c.seconds)).where(is_done).group_by(*group))
        return {tuple(map(str, key)): float(mean) for *key, mean in rows}

    def select(self, statement: Select[Any]) -> list[Any]:
        """Return every row of a query."""
        try:
            with self.reading() as connection:
                return list(connection.execute(statement))
        except (ValueError, RecursionError):  # from the content of a JSON column
            raise StoreError(f"the store {self.location} {DAMAGED}") from None


def _make_cell(cell: str, columns: Mapping[str, Any], result: CellResult) -> dict[str, Any]:
    values = {**EMPTY_CELL, "id": cell, **columns, **vars(result), "environment": result.environment.id}
    if values["kind"] == VERDICT:
        values |= {**result.findings, "findings": None}
    else:
        values["findings"] = findings_as_text(result.findings)
    return make_row(cells, values)
