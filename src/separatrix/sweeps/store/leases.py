"""Leases: which run of a sweep computes which cell, so that sweeps that share a store share the work.

A run leases cells in one short transaction before it computes them, and the transaction that stores them ends
the leases. The run renews its leases from time to time. They end when it has not done so for a while, and at
once if it ran on this machine and its process is gone. In the worst case a cell is computed twice, and the
store keeps one of the two equal results.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sqlalchemy import Connection, CursorResult, TextClause, text

from separatrix.sweeps.store.rows import CellStatus

if TYPE_CHECKING:
    from separatrix.sweeps.store.store import Store

LEASE_SECONDS = 60.0
"""Seconds without renewal after which the leases of a run end."""
RENEWAL_SECONDS = 15.0
"""Seconds between two renewals."""

# The clock is that of the database; for a file it is the clock of this machine.
DIALECTS: dict[str, dict[str, str]] = {
    "sqlite": {"now": "((julianday('now') - 2440587.5) * 86400.0)", "listed": "(SELECT value FROM json_each(:listed))"},
    "postgresql": {
        "now": "CAST(extract(epoch FROM clock_timestamp()) AS double precision)",
        "listed": "(SELECT value FROM json_array_elements_text(CAST(:listed AS json)) AS ids(value))",
    },
}
# A lease that ends too far in the future was written before a clock was set back, and does not count.
LIVING = "until BETWEEN {now} AND {now} + :seconds"
ACQUIRE = """
INSERT INTO separatrix_leases (cell, run, process, until)
SELECT value, :run, :process, {now} + :seconds FROM {listed} AS wanted WHERE true
ON CONFLICT (cell) DO UPDATE SET run = excluded.run, process = excluded.process, until = excluded.until
"""
STORED = """
SELECT id, status FROM cells WHERE id IN {listed} AND NOT (status = 'failed' AND finished <= :since)
"""
LEASED = "SELECT cell FROM separatrix_leases WHERE cell IN {listed} AND run <> :run AND {living}"
RENEW = "UPDATE separatrix_leases SET until = {now} + :seconds WHERE run = :run"
OTHER_RUNS = "SELECT DISTINCT run, process FROM separatrix_leases WHERE run <> :run"
COUNT_RUNS = "SELECT count(DISTINCT run) FROM separatrix_leases WHERE {living}"
RELEASE = "DELETE FROM separatrix_leases WHERE run IN {listed} OR NOT {living}"


_abandoned_runs: set[str] = set()
"""Runs of this process that could not be ended, since the store did not respond."""


@dataclass(frozen=True)
class LeaseResult:
    """What a run got of the cells it requested; cells in none of these sets are free."""

    mine: set[str]
    stored: dict[str, CellStatus]
    others: set[str]
    """Cells that another living run computes."""


class Leases:
    """The leases of one run of a sweep."""

    def __init__(self, store: Store) -> None:
        self._store, self._run, self._process = store, uuid4().hex, describe_process()
        self._renewed: float | None = None
        """The time of the last renewal; None before the first lease."""

    def acquire(self, cells: Sequence[str], limit: int, since: str = "") -> LeaseResult:
        """Lease the first cells that are neither stored nor leased; cells that failed by `since` are free."""
        if self._renewed is None:
            self.release_dead_runs()
        with self._store.writing() as connection:
            # Leases are read first: a cell moves from there to the stored ones, never back.
            leased_elsewhere = set(self._execute(connection, LEASED, cells).scalars())
            stored_statuses = {row.id: row.status for row in self._execute(connection, STORED, cells, since)}
            mine = [cell for cell in cells if cell not in stored_statuses and cell not in leased_elsewhere][:limit]
            if mine:
                self._execute(connection, ACQUIRE, mine)
        self._renewed = self._renewed or time.monotonic()
        return LeaseResult(set(mine), self._store.parse_statuses(stored_statuses), leased_elsewhere)

    def find_others(self, cells: Collection[str]) -> set[str]:
        """Return the cells that another living run computes."""
        with self._store.reading() as connection:
            return set(self._execute(connection, LEASED, cells).scalars())

    def renew(self) -> None:
        """Renew the leases if there are any and it is time to."""
        if self._renewed is not None and time.monotonic() - self._renewed > RENEWAL_SECONDS:
            with self._store.writing() as connection:
                self._execute(connection, RENEW)
            self._renewed = time.monotonic()

    def release_dead_runs(self) -> None:
        """End the leases of runs on this machine whose process is gone."""
        with self._store.reading() as connection:
            runs = self._execute(connection, OTHER_RUNS).all()
        dead = [row.run for row in runs if row.run in _abandoned_runs or is_process_gone(row.process)]
        if dead:
            self._release(dead)

    def release(self) -> None:
        """End all leases of this run."""
        if self._renewed is not None:
            self._release([self._run])
            self._renewed = None

    def abandon(self) -> None:
        """End this run although the store does not respond: a later run of this process ends its leases."""
        _abandoned_runs.add(self._run)

    def _release(self, runs: Collection[str]) -> None:
        with self._store.writing() as connection:
            self._execute(connection, RELEASE, runs)

    def _execute(
        self, connection: Connection, statement: str, identities: Collection[str] = (), since: str = ""
    ) -> CursorResult[Any]:
        values = {"run": self._run, "process": self._process, "seconds": LEASE_SECONDS, "since": since}
        values["listed"] = json.dumps(sorted(identities))
        return connection.execute(_compile(statement, connection.dialect.name), values)


def count_living_runs(connection: Connection) -> int:
    """Return the number of runs of sweeps whose leases have not ended."""
    statement = _compile(COUNT_RUNS, connection.dialect.name)
    return int(connection.execute(statement, {"seconds": LEASE_SECONDS}).scalar_one())


@cache
def _compile(statement: str, dialect: str) -> TextClause:
    words = DIALECTS[dialect]
    return text(statement.format(**words, living=LIVING.format(**words)))


PROC = Path("/proc")


def describe_process() -> str:
    """Return the machine and the number of this process; empty where the system has no /proc."""
    return f"{platform.node()} {os.getpid()}" if PROC.exists() else ""


def is_process_gone(process: str) -> bool:
    """Whether a process ran on this machine and is gone; False for other machines, and in doubt."""
    machine, _, number = process.rpartition(" ")
    return machine == platform.node() and number.isdigit() and PROC.exists() and not (PROC / number).exists()
