"""Stored cells as a polars frame, one row a cell, one column for each parameter."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, select

from separatrix.parameters import UsageError, parse_exact
from separatrix.store.filters import WORDS, Filter, read_filter
from separatrix.store.schema import cells, environments, sweep_cells
from separatrix.store.store import Store
from separatrix.store.urls import DEFAULT, open_store

if TYPE_CHECKING:
    import polars as pl

FIRST = ("construction", "mechanism")
TEXTS = ("verdict", "engine", "evidence", "status", "message")
FLOATS = ("distinguish", "low", "high", "fire_d0", "fire_d1", "margin", "bits")
NEURON = ("p0", "p1", "q")
HOW = ("asked", "delta", "draws", "seed", "confidence", "dtype")
ORIGIN = ("seconds", "finished", "host", "versions", "code", "id")
LARGEST_INT = 2**63


def results(
    store: str | Store = DEFAULT,
    *,
    sweep: str | int | None = None,
    limit: int | None = None,
    **conditions: object,
) -> pl.DataFrame:
    """Stored cells: `sx.results("sqlite:///results.db", mechanism="softmax", n="1e3:1e6")`.

    A condition is a value, several separated by commas, or a range `low:high`; its name is a column or
    a parameter of the construction. Exact values stand in the column `parameters`.
    """
    opened = open_store(store) if isinstance(store, str) else store
    number = None if sweep is None else opened.sweep_named(str(sweep))
    return frame(opened, read_filter(conditions), number, limit)


def query(store: Store, asked: Filter, sweep: int | None = None, limit: int | None = None) -> Select[Any]:
    """The query for the cells that `asked` describes; with a sweep, a cell stands in each of its parts."""
    columns = [column for column in cells.c if column.name not in ("environment", "n")]
    selected = select(*columns, environments.c.host, environments.c.versions)
    selected = selected.join(environments, environments.c.id == cells.c.environment)
    if sweep is not None:
        selected = selected.add_columns(sweep_cells.c.part).join(
            sweep_cells, sweep_cells.c.cell == cells.c.id
        )
        selected = selected.where(sweep_cells.c.sweep == sweep)
    selected = selected.where(asked.clause(store.engine.dialect.name))
    return selected if limit is None else selected.limit(limit)


def frame(
    store: Store, asked: Filter | None = None, sweep: int | None = None, limit: int | None = None
) -> pl.DataFrame:
    """The cells that `asked` describes."""
    import polars as pl

    asked = asked or Filter()
    rows = store.select(query(store, asked, sweep, limit))
    names = list(rows[0]._fields) if rows else []
    columns: dict[str, list[Any]] = dict(
        zip(names, map(list, zip(*rows, strict=True)), strict=True) if rows else ()
    )
    parameters = columns.get("parameters", [])
    known = list(dict.fromkeys(name for each in parameters for name in each))
    _require_known(store, asked, known, bool(rows))
    made: dict[str, pl.Series] = {}
    if sweep is not None:
        made["part"] = pl.Series("part", columns.get("part", []), dtype=pl.String)
    for name in FIRST:
        made[name] = pl.Series(name, columns.get(name, []), dtype=pl.String)
    for name in known:
        made[name] = column(name, [each.get(name) for each in parameters])
    for name in (*TEXTS, *FLOATS, *NEURON, *HOW, *ORIGIN):
        made[name] = _series(name, columns.get(name, []))
    exact = [json.dumps(each, ensure_ascii=False) for each in parameters]
    made["parameters"] = pl.Series("parameters", exact, dtype=pl.String)
    return pl.DataFrame(list(made.values()))


def column(name: str, values: list[str | None]) -> pl.Series:
    """A parameter as integers or floats where every value is a number, else as text.

    >>> column("a1", ["0.5", None, "1/3"]).to_list()
    [0.5, None, 0.3333333333333333]
    """
    import polars as pl

    numbers: dict[str | None, Any] = {None: None}
    try:
        for value in set(values) - {None}:
            numbers[value] = parse_exact(value, name)
    except UsageError:
        return pl.Series(name, values, dtype=pl.String)
    present = [number for number in numbers.values() if number is not None]
    whole = all(number.denominator == 1 and abs(number) < LARGEST_INT for number in present)
    spelled = {text: None if x is None else int(x) if whole else float(x) for text, x in numbers.items()}
    return pl.Series(name, [spelled[value] for value in values], dtype=pl.Int64 if whole else pl.Float64)


def _series(name: str, values: Iterable[Any]) -> pl.Series:
    import polars as pl

    if name == "versions":
        return pl.Series(name, [json.dumps(each, sort_keys=True) for each in values], dtype=pl.String)
    if name in (*FLOATS, "confidence", "seconds"):
        return pl.Series(name, list(values), dtype=pl.Float64)
    if name in ("draws", "seed"):
        return pl.Series(name, list(values), dtype=pl.Int64)
    return pl.Series(name, list(values), dtype=pl.String)


def _require_known(store: Store, asked: Filter, known: list[str], found: bool) -> None:
    """Where nothing was found, say so of a condition on something that no cell has."""
    from separatrix.parameters import nearest
    from separatrix.store.filters import NUMBERS

    unknown = [name for name in asked.conditions if name not in (*WORDS, *NUMBERS)]
    if found or not unknown:
        return
    some = store.select(select(cells.c.construction, cells.c.parameters).group_by(cells.c.construction))
    names = list(dict.fromkeys(name for _, parameters in some for name in parameters))
    for name in unknown:
        if some and name not in names:
            listed = ", ".join((*WORDS, *NUMBERS, *names))
            near = nearest(name, [*WORDS, *NUMBERS, *names])
            raise UsageError(f"no stored cell has {name}{near}; conditions can be on: {listed}")
