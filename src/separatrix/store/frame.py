"""Stored cells as a polars frame, one row a cell, one column for each parameter."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, literal, select

from separatrix.parameters import UsageError, nearest, parse_exact, split_mechanisms
from separatrix.store.addresses import DEFAULT
from separatrix.store.errors import DAMAGED, StoreError
from separatrix.store.filters import NUMBERS, PARAMETER, WORDS, Filter, read_filter
from separatrix.store.ranges import as_float, is_within
from separatrix.store.schema import cells, environments, sweep_cells
from separatrix.store.seals import SEALED, is_environment, require_sealed
from separatrix.store.store import Store
from separatrix.store.urls import open_store

if TYPE_CHECKING:
    import polars as pl

FIRST = ("construction", "mechanism")
TEXTS = ("verdict", "engine", "evidence", "status", "message")
FLOATS = ("distinguish", "low", "high", "fire_d0", "fire_d1", "margin", "bits")
NEURON = ("p0", "p1", "q")
HOW = ("asked", "delta", "draws", "seed", "confidence", "dtype", "until_decided")
ORIGIN = ("seconds", "finished", "host", "versions", "code", "id")
LARGEST_INT = 2**63
SEALED_SINCE = 2
"""The version of the store in which cells got seals."""
MOST_LISTED = 20


def results(
    store: str | Store = DEFAULT,
    *,
    sweep: str | int | None = None,
    limit: int | None = None,
    **conditions: object,
) -> pl.DataFrame:
    """Stored cells: `sx.results("sqlite:///results.db", mechanism="softmax", n="1e3:1e6")`.

    A condition is a value, a list of them, or a range `low:high`; its name is a column or a parameter of
    the construction. Exact values stand in the column `parameters`.
    """
    opened = open_store(store) if isinstance(store, str) else store
    number = None if sweep is None else opened.sweep_named(str(sweep))
    return frame(opened, read_filter(conditions), number, limit)


def query(store: Store, asked: Filter, sweep: int | None = None, limit: int | None = None) -> Select[Any]:
    """The query for the cells that `asked` describes; with a sweep, a cell stands in each of its parts."""
    seal = cells.c.seal if store.version >= SEALED_SINCE else literal(None).label("seal")
    selected = select(*(cells.c[name] for name in SEALED), seal)
    if sweep is not None:
        selected = selected.add_columns(sweep_cells.c.part).join(
            sweep_cells, sweep_cells.c.cell == cells.c.id
        )
        selected = selected.where(sweep_cells.c.sweep == sweep)
    selected = selected.where(asked.clause(store.engine.dialect.name))
    return selected if limit is None else selected.order_by(cells.c.id).limit(limit)


def frame(
    store: Store, asked: Filter | None = None, sweep: int | None = None, limit: int | None = None
) -> pl.DataFrame:
    """The cells that `asked` describes, sorted by what was asked."""
    import polars as pl

    asked = asked or Filter()
    rows = store.select(query(store, asked, sweep, limit))
    if not rows:
        _require_known(store, asked)
    require_sealed(rows, store.where)
    names = rows[0]._fields if rows else ()
    columns: dict[str, list[Any]] = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    parameters = columns.get("parameters", [])
    _require_types(columns, store.where)
    places = _environments(store)
    if unknown := set(columns.get("environment", [])) - places.keys():
        raise StoreError(f"the store {store.where} {DAMAGED} (environment {unknown.pop()!a} is not in it)")
    for place, name in enumerate(("host", "versions")):
        columns[name] = [places[each][place] for each in columns.get("environment", [])]
    fixed = (*TEXTS, *FLOATS, *NEURON, *HOW, *ORIGIN)
    taken = {"part", *FIRST, *fixed, "parameters"}
    made: list[pl.Series] = []
    if sweep is not None:
        made.append(pl.Series("part", columns.get("part", []), dtype=pl.String))
    made += [pl.Series(name, columns.get(name, []), dtype=pl.String) for name in FIRST]
    for name in dict.fromkeys(name for each in parameters for name in each):
        called = f"{PARAMETER}{name}" if name in taken else name
        made.append(column(called, [each.get(name) for each in parameters]))
    order = [each.name for each in made]
    if len(set(order)) < len(order):
        raise StoreError(f"the store {store.where} has a cell that no sweep made: {order} names one twice")
    made += [_series(name, columns.get(name, [])) for name in fixed]
    exact = [json.dumps(each, ensure_ascii=False) for each in parameters]
    whole = pl.DataFrame([*made, pl.Series("parameters", exact, dtype=pl.String)])
    return whole.sort([*order, "asked", "seed", "id"], nulls_last=True)


def _environments(store: Store) -> dict[str, tuple[str, str]]:
    """Host and versions, as JSON, of every place where cells were computed; none that is damaged."""
    return {
        id_: (host, json.dumps(versions, sort_keys=True))
        for id_, host, versions in store.select(select(environments))
        if is_environment(id_, host, versions)
    }


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
    spelled = {text: None if x is None else int(x) if whole else as_float(x) for text, x in numbers.items()}
    return pl.Series(name, [spelled[value] for value in values], dtype=pl.Int64 if whole else pl.Float64)


def _series(name: str, values: Iterable[Any]) -> pl.Series:
    import polars as pl

    kinds = {float: pl.Float64, int: pl.Int64, str: pl.String}
    return pl.Series(name, list(values), dtype=kinds[_kind(name)])


def _kind(name: str) -> type:
    if name in (*FLOATS, "confidence", "seconds"):
        return float
    return int if name in ("draws", "seed", "until_decided") else str


def _require_types(columns: Mapping[str, list[Any]], where: str) -> None:
    """Refuse what no sweep stores; SQLite lets anything stand in any column."""
    for name in ("part", "environment", *FIRST, *TEXTS, *FLOATS, *NEURON, *HOW, *ORIGIN):
        _require_type(name, columns.get(name, []), {_kind(name), type(None)}, where)
    parameters = columns.get("parameters", [])
    _require_type("parameters", parameters, {dict}, where)
    _require_type("parameters", [value for each in parameters for value in each.values()], {str}, where)


def _require_type(name: str, values: Iterable[Any], wanted: set[type], where: str) -> None:
    if strange := set(map(type, values)) - wanted:
        kinds = ", ".join(sorted(kind.__name__ for kind in strange))
        raise StoreError(f"the store {where} has a cell that no sweep made: {name} of type {kinds}")


def _require_known(store: Store, asked: Filter) -> None:
    """Where nothing was found, say so of a name or a condition that no cell has, or of a range of words."""
    for name in ("construction", "mechanism"):
        if name in asked.conditions:
            _require_stored(store, name, asked.conditions[name])
    for name, value in asked.parameters.items():
        stored = cells.c.parameters[name].as_string()
        found = store.select(select(stored).where(stored.is_not(None)).limit(1))
        if not found:
            _require_no_cells(store, name)
        elif ":" in value and not is_within(word := " ".join(str(found[0][0]).split()), "", ""):
            word = word[:40]
            raise UsageError(f"{name}={value} is a range, but {name} is a word, as in {name}={word}")


def _require_stored(store: Store, name: str, value: str) -> None:
    known = [str(each) for (each,) in store.select(select(cells.c[name]).distinct())]
    names = [*known, *dict.fromkeys(each.partition(":")[0] for each in known)]
    for strange in (each for each in split_mechanisms(value) if each not in names):
        if near := nearest(strange, names):
            listed = ", ".join(sorted(known)[:MOST_LISTED]) + (", …" if len(known) > MOST_LISTED else "")
            raise UsageError(f"no stored cell has {name} {strange}{near}; there are: {listed}")


def _require_no_cells(store: Store, name: str) -> None:
    kinds = store.select(select(cells.c.construction).distinct())
    names = [*WORDS, *NUMBERS]
    for (kind,) in kinds:
        one = store.select(select(cells.c.parameters).where(cells.c.construction == kind).limit(1))
        names += [str(each) for (parameters,) in one if isinstance(parameters, dict) for each in parameters]
    if kinds:
        listed, near = ", ".join(dict.fromkeys(names)), nearest(name, names)
        raise UsageError(f"no stored cell has {name}{near}; conditions can be on: {listed}")
