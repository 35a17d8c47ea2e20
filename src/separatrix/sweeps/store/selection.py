"""Selections of stored cells: verified copies, sorted and read in chunks, so that many need little memory."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property, lru_cache
from itertools import takewhile
from typing import Any

from separatrix.core.lazy import pl
from separatrix.core.numbers import parse_exact
from separatrix.core.parameters import UsageError
from separatrix.sweeps.store.errors import Damage, StoreError
from separatrix.sweeps.store.filters import PARAMETER_PREFIX, Filter, to_float
from separatrix.sweeps.store.reader import COLUMNS, POSITIONS, CellRow, Reader
from separatrix.sweeps.store.rows import Environment
from separatrix.sweeps.store.schema import VERDICT, cells
from separatrix.sweeps.store.store import Store

LEADING = ("construction", "mechanism")
"""The columns before those of the parameters."""
REQUESTED = ("asked", "delta", "draws", "seed", "confidence", "dtype", "until_decided")
ORIGIN = ("seconds", "finished", "host", "versions", "code", "id")
TRAILING = (
    *("verdict", "engine", "evidence", "status", "message"),
    *("distinguish", "low", "high", "fire_d0", "fire_d1", "margin", "bits", "p0", "p1", "q"),
    *(*REQUESTED, *ORIGIN, "parameters"),
)
"""The columns after those of the parameters."""
CHUNK = 2000
"""Cells that are in memory at once."""
MAX_INTEGER = 2**63
RESERVED = frozenset({"part", *LEADING, *TRAILING, *COLUMNS, "n"})
"""Names that no finding of work can have."""


class ColumnType(IntEnum):
    """The type of a parameter's column: the largest type among its values."""

    WHOLE = 0
    FLOAT = 1
    TEXT = 2


@dataclass
class Spread:
    """The values that a parameter takes in a selection."""

    kind: ColumnType = ColumnType.WHOLE
    first: str | None = None
    is_varied: bool = False
    count: int = 0
    """The number of cells that have it."""

    def add(self, texts: list[str | None]) -> list[Any]:
        """Include the values of a chunk; return the values to sort by."""
        present = {text for text in texts if text is not None}
        values: dict[str | None, Any] = {None: None}
        for text in present:
            values[text], kind = parse_value(text)
            self.kind = max(self.kind, kind)
        if present:
            self.first = min(present) if self.first is None else self.first
            self.is_varied = self.is_varied or present != {self.first}
        self.count += len(texts) - texts.count(None)
        return [values[text] for text in texts]


@dataclass
class Selection:
    """Cells that were selected and verified; `frames` returns them in order, any number of times."""

    scratch: sqlite3.Connection
    """A copy of the cells with the values to sort by, in a temporary file."""
    is_of_sweep: bool
    kind: str
    damage: Damage
    environments: Mapping[str, Environment] = field(default_factory=dict)
    count: int = 0
    words: Counter[str] = field(default_factory=Counter)
    """The number of cells by verdict; by status where there is none."""
    spreads: dict[str, Spread] = field(default_factory=dict)
    """The values of each parameter."""
    seeds: Spread = field(default_factory=Spread)
    findings: dict[str, Spread] = field(default_factory=dict)
    """The values of each finding of work that is no verdict."""
    last: str | None = None
    """The id of the last cell if a limit ended the selection: more cells may follow."""
    _environment_ids: set[str] = field(default_factory=set)
    _used: set[str] = field(default_factory=set)
    """The columns that say anything about work that is no verdict."""

    def add(self, rows: list[CellRow]) -> None:
        """Include cells."""
        decoded = [(row, *_decode(row.values)) for row in rows]
        intact = [row for row, point, _ in decoded if point is not None]
        points = [point for _, point, _ in decoded if point is not None]
        findings = [finding for _, _, finding in decoded if finding is not None]
        altered_ids = {row.values[0] for row, point, _ in decoded if point is None}
        self.damage.add("altered", cells.name, len(altered_ids))
        # Cells of other constructions have other parameters: the new column is null in earlier rows.
        for name in dict.fromkeys(name for point in points for name in point):
            if name not in self.spreads:
                self.scratch.execute(f"ALTER TABLE cells ADD COLUMN sort_key_{len(self.spreads)}")
                self.spreads[name] = Spread()
        keys = [spread.add([point.get(name) for point in points]) for name, spread in self.spreads.items()]
        for name in dict.fromkeys(name for finding in findings for name in finding):
            self.findings.setdefault(name, Spread()).add([finding.get(name) for finding in findings])
        columns = {name: [row.values[position] for row in intact] for name, position in POSITIONS.items()}
        self.seeds.add([None if seed is None else str(seed) for seed in columns["seed"]])
        self._environment_ids.update(columns["environment"])
        # An empty text says nothing, but a seed of 0 does.
        self._used.update(name for name in (*LEADING, *REQUESTED) if {*columns[name]} - {None, ""})
        outcomes = zip(columns["verdict"], columns["status"], strict=True)
        self.words.update(verdict or status for verdict, status in outcomes)
        self.count += len(intact)
        marks = ", ".join("?" * (1 + len(COLUMNS) + len(keys)))
        values = zip([row.part for row in intact], *columns.values(), *keys, strict=True)
        self.scratch.executemany(f"INSERT INTO cells VALUES ({marks})", values)

    def add_environments(self, environments: Mapping[str, Environment]) -> None:
        """Include the environments of the cells; report those that are gone."""
        self.environments = environments
        lost_count = len(self._environment_ids - environments.keys())
        self.damage.add("lost", "environments", lost_count - self.damage.altered.get("environments", 0))

    @property
    def fixed_columns(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The columns before and after those of parameters; for other kinds than verdicts, those in use."""
        if self.kind == VERDICT:
            return LEADING, TRAILING
        leading, request_columns = (tuple(filter(self._used.__contains__, names)) for names in (LEADING, REQUESTED))
        return leading, (*self.findings, "status", "message", *request_columns, *ORIGIN, "parameters")

    @property
    def parameters(self) -> dict[str, str]:
        """The columns of parameters: the name in a frame, and the name in the construction."""
        reserved = {*RESERVED, *self.findings} - {"n"} if self.findings else {"part", *LEADING, *TRAILING}
        names = {f"{PARAMETER_PREFIX}{name}" if name in reserved else name: name for name in self.spreads}
        if len(names) < len(self.spreads):
            raise StoreError(
                f"the store {self.damage.store} has a cell that no sweep made: two of its parameters "
                f"({', '.join(self.spreads)}) have one name"
            )
        return names

    @property
    def schema(self) -> dict[str, Any]:
        """The types of the columns of every frame, by name."""
        kinds = {ColumnType.WHOLE: pl.Int64, ColumnType.FLOAT: pl.Float64, ColumnType.TEXT: pl.String}
        types = {float: pl.Float64, int: pl.Int64}
        leading, trailing = self.fixed_columns
        spreads = {column: self.spreads[name] for column, name in self.parameters.items()} | self.findings
        names = (*(("part",) if self.is_of_sweep else ()), *leading, *self.parameters, *trailing)
        stored_types = {name: types.get(cells.c[name].type.python_type) for name in names if name in cells.c}
        return {
            name: kinds[spreads[name].kind] if name in spreads else stored_types.get(name) or pl.String
            for name in names
        }

    def frames(self, limit: int = -1) -> Iterator[pl.DataFrame]:
        """Yield the cells in order, in chunks; at least one, which may be empty."""
        schema = self.schema
        keys = ("part", *LEADING, *(f"sort_key_{i}" for i in range(len(self.spreads))), "asked", "seed", "id")
        order = ", ".join(f"{key} NULLS LAST" for key in keys)
        # The subquery sorts row numbers only. The outer query looks the rows up in that order, since SQLite
        # does not reorder a cross join.
        rows = self.scratch.execute(
            f"SELECT part, {', '.join(COLUMNS)} FROM (SELECT rowid AS number FROM cells ORDER BY {order} "
            f"LIMIT {limit}) CROSS JOIN cells ON cells.rowid = number"
        )
        is_empty = True
        while chunk := rows.fetchmany(CHUNK):
            columns = self._make_columns(chunk)
            is_empty = False
            yield pl.DataFrame({name: pl.Series(columns[name], dtype=kind) for name, kind in schema.items()})
        if is_empty:
            yield pl.DataFrame(schema=schema)

    def _make_columns(self, rows: list[tuple[Any, ...]]) -> dict[str, list[Any]]:
        columns = dict(zip(("part", *COLUMNS), map(list, zip(*rows, strict=True)), strict=True))
        points = [json.loads(text) for text in columns["parameters"]]
        findings = [json.loads(text or "{}") for text in columns["findings"]]
        hosts, versions = self._hosts_and_versions
        columns["host"] = [hosts.get(id_) for id_ in columns["environment"]]
        columns["versions"] = [versions.get(id_) for id_ in columns["environment"]]
        columns["parameters"] = [json.dumps(point, ensure_ascii=False) for point in points]
        sources = [(column, points, name, self.spreads[name]) for column, name in self.parameters.items()]
        sources += [(name, findings, name, spread) for name, spread in self.findings.items()]
        for column, mappings, name, spread in sources:
            texts = [mapping.get(name) for mapping in mappings]
            values = {text: _convert(text, spread.kind) for text in set(texts)}
            columns[column] = [values[text] for text in texts]
        return columns

    @cached_property
    def _hosts_and_versions(self) -> tuple[dict[str, str], dict[str, str]]:
        hosts = {id_: environment.host for id_, environment in self.environments.items()}
        return hosts, {
            id_: json.dumps(environment.versions, sort_keys=True) for id_, environment in self.environments.items()
        }


@contextmanager
def select_cells(
    store: Store,
    wanted: Filter | None = None,
    sweep: int | None = None,
    limit: int | None = None,
    after: str | None = None,
) -> Iterator[Selection]:
    """Select the cells that a filter describes; with a limit, the first that are found.

    For pages of cells, `after` is `Selection.last` of the previous page, or empty for the first. A cell in
    several parts of a sweep is on one page with all of them.
    """
    wanted = wanted or Filter()
    with closing(sqlite3.connect("", check_same_thread=False)) as scratch:
        scratch.execute(f"CREATE TABLE cells (part, {', '.join(COLUMNS)})")
        with store.reading() as connection:
            reader = Reader(store, connection)
            selection = Selection(scratch, sweep is not None, wanted.kind or VERDICT, reader.damage)
            clause = wanted.clause(store.dialect)
            for chunk in reader.read_cells(clause, wanted.kind, sweep, after):
                rows = _cut(chunk, limit, selection.count, after is not None)
                selection.add(rows)
                if limit is not None and selection.count >= limit:
                    selection.last = rows[-1].values[0] if rows else after
                    break
            selection.add_environments(reader.read_environments())
        yield selection


def _cut(chunk: list[CellRow], limit: int | None, count: int, with_all_parts: bool) -> list[CellRow]:
    """The rows of a chunk up to the limit; with all parts of the last cell, if so desired."""
    if limit is None:
        return chunk
    rows = chunk[: limit - count]
    if with_all_parts and rows:
        rows += takewhile(lambda row: row.values[0] == rows[-1].values[0], chunk[limit - count :])
    return rows


def _decode(values: tuple[Any, ...]) -> tuple[Any, Any]:
    """Parameters and findings of a cell, texts by name; None for parameters that no sweep writes."""
    try:
        point, finding = (json.loads(values[POSITIONS[name]] or "{}") for name in ("parameters", "findings"))
    except (TypeError, ValueError, RecursionError):
        return None, None
    for mapping in (point, finding):
        if type(mapping) is not dict or not {*map(type, mapping.values())} <= {str}:
            return None, None
    return point, finding


@lru_cache(maxsize=50_000)
def parse_value(text: str) -> tuple[Any, ColumnType]:
    """Return a parameter as a number to sort by if it is one, and its type.

    >>> parse_value("12"), parse_value("1/4"), parse_value("ones")
    ((12, <ColumnType.WHOLE: 0>), (0.25, <ColumnType.FLOAT: 1>), ('ones', <ColumnType.TEXT: 2>))
    """
    try:
        number = parse_exact(text)
    except UsageError:
        return text, ColumnType.TEXT
    if number.denominator == 1 and abs(number) < MAX_INTEGER and "." not in text:
        return int(number), ColumnType.WHOLE
    return to_float(number), ColumnType.FLOAT


def _convert(text: str | None, kind: ColumnType) -> Any:
    if text is None or kind is ColumnType.TEXT:
        return text
    value, _ = parse_value(text)
    return float(value) if kind is ColumnType.FLOAT else value
