"""Cells to store, and programs that store them: `python stored.py add URL 0 100 7`."""

from __future__ import annotations

import hashlib
import itertools
import random
import sys
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Table

from separatrix.sweeps.store import CellResult, CellStatus, Environment, Store, open_store
from separatrix.sweeps.store.schema import make_row

HERE = Environment("here", {"python": "3.11"})
POINT = {"n": "1000", "d": "102", "m": "12", "a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1", "form": "ones"}
Row = tuple[str, dict[str, Any], CellResult]


def row(
    number: int = 0, parameters: dict[str, str] | None = None, answer: dict[str, Any] | None = None, **asked: object
) -> Row:
    """A cell and its answer; `number` settles its identity."""
    point = {**POINT, "a1": f"1.{number:06}", **(parameters or {})}
    what = {
        "construction": "spike",
        "mechanism": "softmax",
        "parameters": point,
        "asked": "closed",
        "delta": "0.01",
        "draws": None,
        "seed": None,
        "confidence": None,
        "dtype": None,
        "until_decided": None,
        "code": "c0de",
        **asked,
    }
    found = {"verdict": "blind", "engine": "closed", "distinguish": number / 7, "low": 0.0, "high": 1.0}
    found |= {"p0": f"{number}/97", **(answer or {})}
    known = {"seconds": 0.25, "finished": "2026-01-02T03:04:05+00:00", "environment": HERE}
    known |= {name: found.pop(name) for name in (*known, "status", "message") if name in found}
    result = CellResult(findings=found, **known)
    return hashlib.sha256(f"{number}".encode()).hexdigest()[:32], what, result


def failed(number: int) -> Row:
    """A cell that failed."""
    return row(number, None, {"status": CellStatus.FAILED, "message": "out of luck", "verdict": None})


def replace_row(store: Store, connection: Connection, table: Table, values: Mapping[str | Any, Any]) -> None:
    """Replace the row with the same id, as a forger would who knows about checksums."""
    connection.execute(table.delete().where(table.c.id == values["id"]))
    store.insert(connection, table, [make_row(table, values)])


def contents(store: Store) -> list[tuple[Any, ...]]:
    """All that is stored, in one order, as it is in every database."""
    from separatrix.sweeps.store import frame

    return sorted(frame(store).select("id", "parameters", "status", "p0", "distinguish", "message").rows())


def add(url: str, first: int, last: int, seed: int) -> None:
    """Store cells in batches of a few, in an order of its own; each commit is acknowledged."""
    store, numbers = open_store(url, create=True), list(range(first, last))
    random.Random(seed).shuffle(numbers)
    for start in range(0, len(numbers), 7):
        batch = numbers[start : start + 7]
        store.add(map(row, batch))
        sys.stdout.write(" ".join(map(str, batch)) + "\n")
        sys.stdout.flush()


def add_for_ever(url: str, first: int) -> None:
    """Store batches of cells until killed; acknowledge each by its number."""
    store = open_store(url)
    for batch in itertools.count(first):
        store.add(row(100 * batch + i) for i in range(100))
        sys.stdout.write(f"{batch}\n")
        sys.stdout.flush()


def fill_up(url: str, first: int) -> None:
    """Store batches until the disk is full; say how many were stored and what the error said."""
    from separatrix.sweeps.store import StoreError

    done = 0
    try:
        store = open_store(url, create=True)
        for batch in itertools.count(first):
            store.add(row(100 * batch + i) for i in range(100))
            done += 1
    except StoreError as error:
        sys.stdout.write(f"{done}\n{error}\n")


if __name__ == "__main__":
    name, url, *numbers = sys.argv[1:]
    {"add": add, "add_for_ever": add_for_ever, "fill_up": fill_up}[name](url, *map(int, numbers))
