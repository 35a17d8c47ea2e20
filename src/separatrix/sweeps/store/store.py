"""A store: what is finished, and adding to it."""

from __future__ import annotations

import json
import sqlite3
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Engine, Select, Table, event, func, literal_column, select
from sqlalchemy.dialects import postgresql, sqlite

from separatrix.sweeps.store.claims import give_up
from separatrix.sweeps.store.errors import DAMAGED, NoStore, StoreError, told
from separatrix.sweeps.store.files import file_row, put
from separatrix.sweeps.store.migrations import KINDS_KNOWN, MIGRATIONS, SEALED_ALL, found_version, migrate
from separatrix.sweeps.store.rows import Environment, File, Result, Status, Sweep, as_texts, now
from separatrix.sweeps.store.schema import (
    VERDICT,
    cells,
    counts,
    environments,
    files,
    members_of,
    sweep_cells,
    sweeps,
)
from separatrix.sweeps.store.seals import COLUMNS, sealed

MOST_IDS = 500
"""The most identities in one query."""
PATIENCE = 20
"""Seconds that a PostgreSQL server lets a program that went quiet keep others waiting."""
WRITES = frozenset(
    getattr(sqlite3, f"SQLITE_{name}")
    for name in (
        *("INSERT", "UPDATE", "DELETE", "ALTER_TABLE", "ATTACH", "REINDEX", "ANALYZE"),
        *(f"{verb}_{what}" for verb in ("CREATE", "DROP") for what in ("TABLE", "INDEX", "TRIGGER", "VIEW")),
    )
)
"""What changes a SQLite file."""
EMPTY = {name: None if cells.c[name].nullable else "" for name in COLUMNS} | {"kind": VERDICT}
"""A cell of which nothing was asked or found."""


class Store:
    """An open store. Every method is one transaction; every error is one line."""

    def __init__(self, engine: Engine, where: str, settle: Callable[[], None] = lambda: None) -> None:
        self.engine, self.where, self._settle = engine, where, settle
        self.version = 0
        """The version of the tables; less than the newest where an older store is looked at."""
        weakref.finalize(self, engine.dispose)
        self._environments: set[str] = set()

    def refuse_writing(self) -> None:
        """From here on the database itself refuses whatever would change the store."""

        @event.listens_for(self.engine, "connect")
        def prepare(connection: Any, _: object) -> None:
            if self.engine.dialect.name == "sqlite":
                connection.set_authorizer(reads_alone)
            else:
                connection.read_only = True

        self.engine.dispose()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that may write, to a store of this version."""
        if self.version < len(MIGRATIONS):
            raise StoreError(
                f"the store {self.where} is of version {self.version}, this is {len(MIGRATIONS)}; bring it "
                f"up to date with: separatrix store upgrade `store` {self.where}"
            )
        with told(self.where), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads, and so waits for nobody."""
        with (
            told(self.where),
            self.engine.connect().execution_options(reading=True) as connection,
            closing(connection.begin()),  # rolled back: SQLite commits nothing after it met a broken page
        ):
            yield connection
            self._settle()

    def require_known(self, create: bool = False) -> None:
        """Refuse a newer store, or an empty one.

        With `create` an empty one is made and an old one brought up to date; looking at one changes nothing.
        """
        with self.reading() as connection:
            self.version = found_version(connection, self.where)
        if self.version == 0 and not create:
            raise NoStore(f"the store {self.where} is empty; fill it with: separatrix sweep plan.toml")
        if create:
            self.upgrade()

    def upgrade(self) -> None:
        """Bring the store up to date, in one transaction."""
        if self.version < len(MIGRATIONS):
            with told(self.where), self.engine.begin() as connection:
                migrate(connection, self.where)
            self.version = len(MIGRATIONS)

    def require_complete(self) -> None:
        """Refuse a store that does not hold the rows that were counted."""
        if self.version < SEALED_ALL:
            return
        with self.reading() as connection:
            counted: dict[str, int] = dict(connection.execute(select(counts.c.what, counts.c.rows)).all())
            found = {
                table.name: connection.execute(
                    select(func.count()).select_from(table).with_hint(table, "NOT INDEXED", "sqlite")
                ).scalar_one()
                for table in (cells, environments, sweeps, *([files] if self.version >= KINDS_KNOWN else []))
            }
            members = select(sweep_cells.c.sweep, func.count()).group_by(sweep_cells.c.sweep)
            found |= {members_of(sweep): rows for sweep, rows in connection.execute(members)}
        if dict.fromkeys(counted, 0) | found != counted:
            raise StoreError(f"the store {self.where} {DAMAGED}")

    def finished(self, ids: Sequence[str]) -> dict[str, Status]:
        """The cells that are stored, and how they ended."""
        found: dict[str, str] = {}
        with self.reading() as connection:
            for start in range(0, len(ids), MOST_IDS):
                asked = select(cells.c.id, cells.c.status).where(
                    cells.c.id.in_(ids[start : start + MOST_IDS])
                )
                found.update((cell, status) for cell, status in connection.execute(asked))
        try:
            return {cell: Status(status) for cell, status in found.items()}
        except ValueError:
            raise StoreError(f"the store {self.where} {DAMAGED}") from None

    def add(self, finished: Iterable[tuple[str, Mapping[str, Any], Result]]) -> None:
        """Keep finished cells, all or none: `(id, what was asked, answer)`.

        What is done already stays as it is; a cell that had failed is replaced. Nobody has a claim on them
        any more.
        """
        rows, where, beside = [], {}, {}
        for cell, asked, result in finished:
            where[result.environment.id] = result.environment
            rows.append(cell_row(cell, asked, result))
            if rows[-1]["kind"] != VERDICT:
                beside[cell] = result.files
        if rows:
            self.keep(rows, where, beside)

    def keep(
        self,
        rows: list[dict[str, Any]],
        where: Mapping[str, Environment],
        beside: Mapping[str, Sequence[File]] | None = None,
    ) -> None:
        """Keep rows of cells that are sealed, with the environments that they name and the files beside."""
        new = {id_: place for id_, place in where.items() if id_ not in self._environments}
        with self.writing() as connection:
            self.hold(connection, cells.name)
            unknown = new.keys() - self._present(connection, environments, list(new))
            if unknown:
                places = [{"id": id_, **asdict(new[id_])} for id_ in sorted(unknown)]
                connection.execute(self._insert(environments), places)
                self.count(connection, environments.name, len(unknown))
            ids = {row["id"] for row in rows}
            known = self._present(connection, cells, sorted(ids))
            if beside:
                done = self._present(connection, cells, sorted(beside), cells.c.status != Status.FAILED.value)
                new_files = {cell: own for cell, own in beside.items() if cell not in done}
                put(
                    self,
                    connection,
                    {cell: [file_row(cell, file) for file in own] for cell, own in new_files.items()},
                )
            self._write(connection, rows)
            self.count(connection, cells.name, len(ids - known))
            give_up(connection, [row["id"] for row in rows])
        self._environments.update(new)

    def _present(
        self, connection: Connection, table: Table, ids: Sequence[str], condition: Any = True
    ) -> set[str]:
        """Which of the rows are there."""
        found: set[str] = set()
        for start in range(0, len(ids), MOST_IDS):
            asked = select(table.c.id).where(table.c.id.in_(ids[start : start + MOST_IDS]), condition)
            found.update(connection.execute(asked).scalars())
        return found

    def hold(self, connection: Connection, what: str) -> None:
        """Wait until nobody else adds what is counted as `what`; a SQLite file has one writer at a time."""
        if self.engine.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SET LOCAL idle_in_transaction_session_timeout = '{PATIENCE}s'")
            connection.execute(select(counts.c.rows).where(counts.c.what == what).with_for_update())

    def count(self, connection: Connection, what: str, more: int) -> None:
        """Note that there are so many rows more."""
        if more or what not in (cells.name, environments.name):
            new = self._insert(counts).values(what=what, rows=more)
            total = counts.c.rows + new.excluded.rows
            connection.execute(
                new.on_conflict_do_update(index_elements=[counts.c.what], set_={"rows": total})
            )

    def _write(self, connection: Connection, rows: list[dict[str, Any]]) -> None:
        """Rows as the driver takes them: much faster than one by one through the types of their columns."""
        insert = self._insert(cells)
        changed = {c.name: insert.excluded[c.name] for c in cells.c if c.name != "id"}
        failed = cells.c.status == literal_column(f"'{Status.FAILED}'")
        insert = insert.on_conflict_do_update(index_elements=[cells.c.id], set_=changed, where=failed)
        compiled = insert.compile(dialect=self.engine.dialect, column_keys=list(cells.c.keys()))
        ordered = sorted(rows, key=itemgetter("id"))  # two writers never wait for each other in a circle
        texts = ("parameters", "found")
        ordered = [
            {**row, **{name: json.dumps(row[name]) for name in texts if row[name] is not None}}
            for row in ordered
        ]
        if compiled.positional:
            take = itemgetter(*compiled.positiontup)
            connection.exec_driver_sql(str(compiled), [take(row) for row in ordered])
        else:
            connection.exec_driver_sql(str(compiled), ordered)

    def begin_sweep(self, key: str, name: str, plan: str) -> int:
        """The number of a sweep, old or new."""
        with self.writing() as connection:
            self.hold(connection, sweeps.name)
            asked = select(sweeps.c.id).where(sweeps.c.key == key)
            known = connection.execute(asked).scalar_one_or_none()
            if known is not None:
                return int(known)
            new = {"key": key, "name": name, "plan": plan, "started": now()}
            connection.execute(self._insert(sweeps), [new])
            number = int(connection.execute(asked).scalar_one())
            row = sealed({"id": number, **new}, sweeps)
            connection.execute(sweeps.update().where(sweeps.c.id == number).values(row))
            self.count(connection, sweeps.name, 1)
            self.count(connection, members_of(number), 0)
            return number

    def belong(self, sweep: int, members: Iterable[tuple[str, str]]) -> None:
        """Note that these cells belong to a sweep: `(id, part of the plan)`; they need not be finished."""
        given = sorted(set(members))
        if not given:
            return
        with self.writing() as connection:
            self.hold(connection, members_of(sweep))
            ids, known = sorted({cell for cell, _ in given}), set[tuple[str, str]]()
            for start in range(0, len(ids), MOST_IDS):
                some = sweep_cells.c.cell.in_(ids[start : start + MOST_IDS])
                asked = select(sweep_cells.c.cell, sweep_cells.c.part).where(
                    sweep_cells.c.sweep == sweep, some
                )
                known.update((cell, part) for cell, part in connection.execute(asked))
            new = [
                sealed({"sweep": sweep, "cell": cell, "part": part}, sweep_cells)
                for cell, part in given
                if (cell, part) not in known
            ]
            if new:
                connection.execute(self._insert(sweep_cells), new)
                self.count(connection, members_of(sweep), len(new))

    def sweeps(self) -> list[Sweep]:
        """Every sweep that is intact, oldest first."""
        from separatrix.sweeps.store.sweep_list import list_sweeps

        return list_sweeps(self)[0]

    def sweep_named(self, name: str) -> int:
        """The number of a sweep: `7` is number 7, any other name the newest sweep called so.

        A sweep that is called as a number is, `name:7` finds.
        """
        from separatrix.sweeps.store.sweep_list import find_sweep

        return find_sweep(self, name)

    def mean_seconds(self) -> dict[tuple[str, ...], float]:
        """Mean seconds of the cells that have an answer, by construction, mechanism and engine asked for."""
        kind = (cells.c.construction, cells.c.mechanism, cells.c.asked)
        done = cells.c.status == Status.DONE.value
        asked = select(*kind, func.avg(cells.c.seconds)).where(done).group_by(*kind)
        with self.reading() as connection:
            return {(a, b, c): float(mean) for a, b, c, mean in connection.execute(asked)}

    def select(self, asked: Select[Any]) -> list[Any]:
        """Every row of a query."""
        try:
            with self.reading() as connection:
                return list(connection.execute(asked))
        except (ValueError, RecursionError):  # of what stands in a column of JSON
            raise StoreError(f"the store {self.where} {DAMAGED}") from None

    def _insert(self, table: Table) -> Any:
        insert: Callable[[Table], Any] = (
            postgresql.insert if self.engine.dialect.name == "postgresql" else sqlite.insert
        )
        return insert(table)


def reads_alone(action: int, what: object, _: object, database: object, __: object) -> int:
    """What SQLite asks before each statement: tables may be filled beside the store, never in it.

    It asks for its list of tables where a table of pragmas is read; by hand, it lets nobody change that.
    """
    writes = action in WRITES and database != "temp" and what != "sqlite_master"
    return sqlite3.SQLITE_DENY if writes else sqlite3.SQLITE_OK


def cell_row(cell: str, asked: Mapping[str, Any], result: Result) -> dict[str, Any]:
    """A finished cell as a row, sealed."""
    row = {**EMPTY, "id": cell, **asked, **vars(result), "environment": result.environment.id}
    own = {**result.found, "found": None} if row["kind"] == VERDICT else {"found": as_texts(result.found)}
    return sealed({**row, **own})
