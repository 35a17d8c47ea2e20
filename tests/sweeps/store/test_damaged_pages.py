"""Bytes of a store that steer how it is read, numbers of rows and pages: nothing hangs or is hidden."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from separatrix.sweeps.store import DamageWarning, Store, StoreError, frame, open_store
from separatrix.sweeps.store.maintenance import check_store, repair_store
from stored import row

PAGE = 4096
LEAF = 13
"""The first byte of a page of rows."""
MOST_QUERIES = 10_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of 90 cells and two sweeps."""
    path = tmp_path / "results.db"
    store = open_store(str(path), create=True)
    store.add(map(row, range(90)))
    for name in ("one", "two"):
        store.add_members(store.begin_sweep(name, name, "plan"), [(row(i)[0], "part") for i in range(90)])
    return path


@contextmanager
def few_queries() -> Iterator[None]:
    """Reading ends soon: what would go on for hours is stopped."""
    asked = 0

    def count(*_: object) -> None:
        nonlocal asked
        asked += 1
        assert asked < MOST_QUERIES

    event.listen(Engine, "before_cursor_execute", count)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", count)


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def spoil(path: Path, table: str) -> None:
    """Make the first page of a table no page."""
    with closing(sqlite3.connect(path)) as connection:
        found = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        (page,) = connection.execute(found, [table]).fetchone()
    data = bytearray(path.read_bytes())
    data[PAGE * (page - 1)] = 0x77
    path.write_bytes(data)


def members(store: Store) -> int:
    return frame(store, None, 1).height


@pytest.mark.parametrize("number", [2**40, 2**63 - 1])
def test_a_row_whose_number_was_altered_is_found_far_off(path: Path, number: int) -> None:
    change(path, f"UPDATE cells SET rowid = {number} WHERE rowid = 90")
    with few_queries():
        assert frame(open_store(str(path))).height == members(open_store(str(path))) == 90
        assert check_store(str(path)).sound


def test_a_row_that_is_shown_twice_hides_none(path: Path) -> None:
    data = bytearray(path.read_bytes())
    start = next(
        start
        for start in range(PAGE, len(data), PAGE)
        if data[start] == LEAF and data[start : start + PAGE].count(b"softmax") > 2
    )
    data[start + 8 : start + 10] = data[start + 10 : start + 12]
    path.write_bytes(data)
    with pytest.warns(DamageWarning, match="is damaged: 1 cell is lost"):
        assert frame(open_store(str(path))).height == 89
    assert check_store(str(path)).damaged.lost == {"cells": 1}


def test_tables_of_which_nothing_can_be_read_are_told(path: Path) -> None:
    spoil(path, "environments")
    spoil(path, "sweeps")
    with few_queries():
        found = check_store(str(path))
    assert (found.cells, found.sweeps, found.environments) == (90, 0, 0)
    assert found.damaged.lost == {"environments": 1, "sweeps": 2, "members": 180}


@pytest.mark.parametrize("table", ["cells", "environments"])
def test_a_broken_page_is_told(path: Path, table: str) -> None:
    spoil(path, table)
    with pytest.raises(StoreError, match="is damaged and is left unchanged"):
        members(open_store(str(path)))


def test_members_of_which_nothing_can_be_read_are_given_up_soon(path: Path, tmp_path: Path) -> None:
    spoil(path, "members")
    with few_queries():
        found = check_store(str(path))
        saved = repair_store(str(path), tmp_path / "saved.db")
    assert (found.cells, found.damaged.altered) == (90, {"tables": 1})
    assert check_store(saved.store).sound


def test_a_table_and_its_index_that_cannot_be_read_are_told(path: Path, tmp_path: Path) -> None:
    spoil(path, "cells")
    spoil(path, "sqlite_autoindex_cells_1")
    saved = repair_store(str(path), tmp_path / "saved.db")
    assert saved.cells == 0
    assert saved.damaged.altered == {"tables": 1}
    assert not saved.sound
