"""Who computes which cell: sweeps that share a store share the work.

A run of a sweep takes cells before it computes them, in one short transaction, and gives them up in the
one that stores them. It says from time to time that it lives. What it took is free again once it was
silent for a while, and at once where it was on this machine and is seen to be gone. At worst a cell is
computed twice: two results of a cell are one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sqlalchemy import Connection, CursorResult, TextClause, text

from separatrix.sweeps.store.errors import DAMAGED, StoreError
from separatrix.sweeps.store.processes import has_ended, this_process
from separatrix.sweeps.store.rows import Status

if TYPE_CHECKING:
    from separatrix.sweeps.store.store import Store

LEASE = 60.0
"""Seconds of silence after which the cells of a run are free."""
BEAT = 15.0
"""Seconds between two signs of life."""

NOW = {
    "sqlite": "((julianday('now') - 2440587.5) * 86400.0)",
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) AS double precision)",
}
"""The clock of the database, in seconds; for a file, that of this machine."""
LISTED = {
    "sqlite": "(SELECT value FROM json_each(:listed))",
    "postgresql": "(SELECT value FROM json_array_elements_text(CAST(:listed AS json)) AS each(value))",
}
"""The identities that a statement is about."""
LOCK = {"sqlite": "", "postgresql": " FOR UPDATE SKIP LOCKED"}
LIVING = "(SELECT id FROM separatrix_runs WHERE until BETWEEN {now} AND {now} + :lease)"
"""A sign of life from the future is none: clocks were set back, and nobody waits until they are there."""

QUEUE: dict[str, tuple[str, ...]] = {
    "sqlite": (),
    "postgresql": (
        "SET LOCAL idle_in_transaction_session_timeout = '20s'",  # for a program that went quiet here
        "SELECT pg_advisory_xact_lock(7368, hashtext(current_schema()))",
    ),
}
"""One run takes at a time: the next one sees what it took. A SQLite file has one writer anyway."""
TAKE = """
INSERT INTO separatrix_claims (cell, run) SELECT value, :run FROM {listed} AS wanted WHERE true
ON CONFLICT (cell) DO UPDATE SET run = excluded.run
"""
STORED = """
SELECT id, status FROM cells WHERE id IN {listed} AND NOT (status = 'failed' AND finished <= :since)
"""
HELD = "SELECT cell FROM separatrix_claims WHERE cell IN {listed} AND run <> :run AND run IN {living}"
GIVE_UP = """
DELETE FROM separatrix_claims WHERE cell IN
(SELECT cell FROM separatrix_claims WHERE cell IN {listed} ORDER BY cell{lock})
"""
SIGN = """
INSERT INTO separatrix_runs (id, process, until) VALUES (:run, :process, {now} + :lease)
ON CONFLICT (id) DO UPDATE SET until = excluded.until
"""
COUNTED = "SELECT count(*) FROM separatrix_runs WHERE id IN {living}"
RUNS = "SELECT id, process FROM separatrix_runs WHERE id <> :run AND id IN {living}"
END = """
DELETE FROM separatrix_runs WHERE id IN
(SELECT id FROM separatrix_runs WHERE id IN {listed} OR id NOT IN {living} ORDER BY id{lock})
"""
SWEEP_UP = """
DELETE FROM separatrix_claims WHERE cell IN
(SELECT cell FROM separatrix_claims WHERE run NOT IN (SELECT id FROM separatrix_runs) ORDER BY cell{lock})
"""


_abandoned: set[str] = set()
"""Runs of this process that could not be ended in the store."""


@dataclass(frozen=True)
class Taken:
    """What became of cells that a run asked for; those in none of these are free."""

    mine: set[str]
    stored: dict[str, Status]
    held: set[str]
    """Cells that another run has, and it lives."""


class Claims:
    """What one run of a sweep takes to compute."""

    def __init__(self, store: Store) -> None:
        self._store, self._run, self._process = store, uuid4().hex, this_process()
        self._signed: float | None = None
        """When it last gave a sign of life; None before it took anything."""

    def take(self, cells: Sequence[str], most: int, since: str = "") -> Taken:
        """Take the first of those that are neither stored nor held; one that failed by `since` is free."""
        if self._signed is None:
            self._sign_on()
        with self._store.writing() as connection:
            self._queue(connection)
            held = set(self._execute(connection, HELD, cells).scalars())  # first: cells go from here to there
            stored = {row.id: row.status for row in self._execute(connection, STORED, cells, since=since)}
            mine = [cell for cell in cells if cell not in stored and cell not in held][:most]
            if mine:
                self._execute(connection, TAKE, mine)
        try:
            return Taken(set(mine), {cell: Status(status) for cell, status in stored.items()}, held)
        except ValueError:
            raise StoreError(f"the store {self._store.where} {DAMAGED}") from None

    def held(self, cells: Collection[str]) -> set[str]:
        """Those cells that another run has taken, and it lives."""
        with self._store.reading() as connection:
            return set(self._execute(connection, HELD, cells).scalars())

    def renew(self) -> None:
        """Give a sign of life, if anything was taken and it is time for one."""
        if self._signed is not None and time.monotonic() - self._signed > BEAT:
            with self._store.writing() as connection:
                self._sign(connection)

    def bury(self) -> None:
        """Free what those runs took that were on this machine and are gone."""
        ended = self._ended()
        if ended:
            with self._store.writing() as connection:
                self._queue(connection)
                self._clear(connection, ended)

    def release(self) -> None:
        """Give up all that is still taken: the run is over."""
        if self._signed is not None:
            with self._store.writing() as connection:
                self._queue(connection)
                self._clear(connection, [self._run])
            self._signed = None

    def abandon(self) -> None:
        """End the run of a store that does not answer: what it took is freed when it does."""
        _abandoned.add(self._run)

    def _sign_on(self) -> None:
        """Before the first claim, in a transaction of its own: no claim is seen without its run."""
        ended = self._ended()
        with self._store.writing() as connection:
            self._queue(connection)
            self._sign(connection)
            self._clear(connection, ended)

    def _sign(self, connection: Connection) -> None:
        self._execute(connection, SIGN)
        self._signed = time.monotonic()

    def _ended(self) -> list[str]:
        with self._store.reading() as connection:
            living = self._execute(connection, RUNS).all()
        return [str(row.id) for row in living if row.id in _abandoned or has_ended(str(row.process))]

    def _clear(self, connection: Connection, runs: Collection[str]) -> None:
        self._execute(connection, END, runs)
        self._execute(connection, SWEEP_UP)

    def _queue(self, connection: Connection) -> None:
        for statement in QUEUE[connection.dialect.name]:
            connection.exec_driver_sql(statement)

    def _execute(
        self, connection: Connection, statement: str, listed: Collection[str] = (), since: str = ""
    ) -> CursorResult[Any]:
        known = {"run": self._run, "process": self._process, "lease": LEASE, "since": since}
        return connection.execute(_spelled(statement, connection.dialect.name), {**known, **_listed(listed)})


def living_runs(connection: Connection) -> int:
    """How many runs of sweeps gave a sign of life of late."""
    asked = _spelled(COUNTED, connection.dialect.name)
    return int(connection.execute(asked, {"lease": LEASE}).scalar_one())


def give_up(connection: Connection, cells: Collection[str]) -> None:
    """Free the claims on cells that are stored."""
    connection.execute(_spelled(GIVE_UP, connection.dialect.name), _listed(cells))


def _listed(identities: Collection[str]) -> dict[str, str]:
    return {"listed": json.dumps(sorted(identities))}


@cache
def _spelled(statement: str, dialect: str) -> TextClause:
    """A statement as the database wants it."""
    living = LIVING.format(now=NOW[dialect])
    listed, lock = LISTED[dialect], LOCK[dialect]
    return text(statement.format(now=NOW[dialect], listed=listed, lock=lock, living=living))
