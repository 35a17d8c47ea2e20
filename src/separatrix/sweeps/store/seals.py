"""A seal on every row: rubbish in a file is never taken for a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from zlib import crc32

from sqlalchemy import JSON, Column, Double, Integer, Table

from separatrix.sweeps.store.rows import Environment
from separatrix.sweeps.store.schema import VERDICT, cells, files, sweep_cells, sweeps


def sealed_names(table: Table) -> tuple[str, ...]:
    """The columns of a table that are under its seal, in order; of cells, those of a verdict."""
    return tuple(
        column.name for column in table.c if not column.system and column.name not in ("seal", "data")
    )


COLUMNS = (*sealed_names(cells), "kind", "found")
"""Of a cell."""


def _number(x: Any) -> float | None:
    return float(x) + 0.0 if x == x else None  # 0.0 for -0.0, and nothing for what is not a number


def _text(x: Any) -> str:
    text = str(x)
    return (
        text
        if text.isascii() and "\0" not in text
        else text.encode(errors="replace").decode().replace("\0", "?")
    )


def _kind(column: Column[Any]) -> Callable[[Any], Any]:
    if isinstance(column.type, JSON):
        return lambda x: x
    return _number if isinstance(column.type, Double) else int if isinstance(column.type, Integer) else _text


_PLAIN = {
    table.name: tuple((name, _kind(table.c[name])) for name in sealed_names(table))
    for table in (sweeps, sweep_cells, files)
} | {cells.name: tuple((name, _kind(cells.c[name])) for name in COLUMNS)}


def sealed(row: Mapping[str, Any], table: Table = cells) -> dict[str, Any]:
    """A row in plain values, as every database gives them back, with its seal."""
    plain = {name: None if row[name] is None else kind(row[name]) for name, kind in _PLAIN[table.name]}
    values = tuple(plain.values())
    return {**plain, "seal": seal_of_cell(values) if table is cells else seal(values)}


def seal_of_cell(values: tuple[Any, ...]) -> int:
    """Of all columns; a verdict's is that of the columns which cells had before there were other kinds."""
    return seal(values[:-2] if values[-2:] == (VERDICT, None) else values)


def seal(values: Sequence[Any]) -> int:
    """A checksum of the values of a row, the same in every database and every Python.

    >>> seal(("softmax", {"n": "1000"}, 0.5, None))
    1359522414
    """
    return crc32(ascii(tuple(values)).encode())


def _types(column: Column[Any]) -> set[type]:
    if isinstance(column.type, JSON):
        return {dict, type(None)} if column.nullable else {dict}
    own = float if isinstance(column.type, Double) else int if isinstance(column.type, Integer) else str
    return {own, type(None)}


KINDS = {name: _types(cells.c[name]) for name in COLUMNS}
"""The types that a value of a cell can have, by column; SQLite lets anything stand anywhere."""


def is_plain(parameters: Mapping[object, object] | None) -> bool:
    """Whether these are parameters, or an answer, as sweeps store them: texts by name."""
    return not parameters or {*map(type, parameters), *map(type, parameters.values())} == {str}


def is_environment(id_: object, host: Any, versions: Any) -> bool:
    """Whether this is what was stored: the identity of an environment is its seal."""
    try:
        return Environment(host, versions).id == id_
    except (TypeError, ValueError, RecursionError):
        return False
