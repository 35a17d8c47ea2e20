"""The cells that are asked for, in order and in chunks: a million of them take no more memory than a few."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property, lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from separatrix.core.numbers import parse_exact
from separatrix.core.parameters import UsageError
from separatrix.sweeps.store.errors import StoreError
from separatrix.sweeps.store.filters import PARAMETER, Filter
from separatrix.sweeps.store.ranges import as_float
from separatrix.sweeps.store.scan import FOUND, PARAMETERS, Found, Scan
from separatrix.sweeps.store.schema import VERDICT
from separatrix.sweeps.store.seals import COLUMNS, KINDS
from separatrix.sweeps.store.spool import Spool
from separatrix.sweeps.store.store import Store

if TYPE_CHECKING:
    import polars as pl

FIRST = ("construction", "mechanism")
TEXTS = ("verdict", "engine", "evidence", "status", "message")
FLOATS = ("distinguish", "low", "high", "fire_d0", "fire_d1", "margin", "bits")
NEURON = ("p0", "p1", "q")
HOW = ("asked", "delta", "draws", "seed", "confidence", "dtype", "until_decided")
ORIGIN = ("seconds", "finished", "host", "versions", "code", "id")
AFTER = (*TEXTS, *FLOATS, *NEURON, *HOW, *ORIGIN, "parameters")
"""The columns after those of the parameters, which stand between `FIRST` and these."""
CHUNK = 2000
"""Cells that are in memory at once."""
LARGEST_INT = 2**63
NOTED = (*FIRST, "asked", "seed", "id", "verdict", "status")
ORDER = ("part", *FIRST)
LAST = ("asked", "seed", "id")
PLACES = {name: COLUMNS.index(name) for name in COLUMNS}
TAKEN = frozenset({"part", *FIRST, *AFTER, *COLUMNS})
"""What nothing that work finds can be called."""


class ColumnType(IntEnum):
    """What a parameter's values are; a column is of the largest kind among its values."""

    WHOLE = 0
    FLOAT = 1
    TEXT = 2


@dataclass
class Spread:
    """The values that a parameter takes."""

    kind: ColumnType = ColumnType.WHOLE
    first: str | None = None
    varied: bool = False
    count: int = 0
    """Cells that have it."""

    def take(self, texts: list[str | None]) -> list[Any]:
        """Note the values of a chunk; what they are sorted by."""
        present = {text for text in texts if text is not None}
        values: dict[str | None, Any] = {None: None}
        for text in present:
            values[text], kind = spelled(text)
            self.kind = max(self.kind, kind)
        if present:
            self.first = min(present) if self.first is None else self.first
            self.varied = self.varied or present != {self.first}
        self.count += len(texts) - texts.count(None)
        return [values[text] for text in texts]


@dataclass
class Selection:
    """Cells that were found and read through; `frames` reads them again, in order."""

    scan: Scan
    scratch: sqlite3.Connection
    """Places and what they are sorted by, in a file without a name."""
    in_sweep: bool
    kind: str = VERDICT
    environments: Mapping[str, tuple[str, dict[str, str]]] = field(default_factory=dict)
    count: int = 0
    words: Counter[str] = field(default_factory=Counter)
    """Verdicts; how a cell ended where it has none."""
    spreads: dict[str, Spread] = field(default_factory=dict)
    """The spreads by parameter, and that of the seed."""
    seeds: Spread = field(default_factory=Spread)
    found: dict[str, Spread] = field(default_factory=dict)
    """What work of another kind than verdicts found, by name."""
    asked: set[str] = field(default_factory=set)
    """The columns beside parameters that say what was asked of such work."""
    spool: Spool | None = None
    """Keeps what `frames` gives, where that is wanted more than once."""
    last: Any = None
    """The place of the last cell, where a limit ended the search: others may come after it."""

    def take(self, chunk: list[Found]) -> None:
        """Note the cells that were found."""
        for name in dict.fromkeys(name for found in chunk for name in found.values[PARAMETERS]):
            if name not in self.spreads:
                self.scratch.execute(f"ALTER TABLE chosen ADD COLUMN p{len(self.spreads)}")
                self.spreads[name] = Spread()
        points = [found.values[PARAMETERS] for found in chunk]
        own = [spread.take([point.get(name) for point in points]) for name, spread in self.spreads.items()]
        if self.kind != VERDICT:
            self._note(chunk)
        columns = {name: [found.values[PLACES[name]] for found in chunk] for name in NOTED}
        self.seeds.take([None if seed is None else str(seed) for seed in columns["seed"]])
        self.words.update(
            word or ended for word, ended in zip(columns["verdict"], columns["status"], strict=True)
        )
        self.count += len(chunk)
        ordered = (columns[name] for name in (*FIRST, *LAST))
        places, parts = ([found.place for found in chunk], [found.part for found in chunk])
        marks = ", ".join("?" * (len(ORDER) + len(LAST) + 1 + len(own)))
        rows = zip(places, parts, *ordered, *own, strict=True)
        self.scratch.executemany(f"INSERT INTO chosen VALUES ({marks})", rows)

    def _note(self, chunk: list[Found]) -> None:
        for name in dict.fromkeys(name for each in chunk for name in each.values[FOUND] or {}):
            spread = self.found.setdefault(name, Spread())
            spread.take([(each.values[FOUND] or {}).get(name) for each in chunk])
        columns = (*FIRST, *HOW)
        self.asked.update(  # seed 0 says as much as any other; an empty text says nothing
            name for name in columns if any(each.values[PLACES[name]] not in (None, "") for each in chunk)
        )

    @property
    def fixed(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The columns before those of parameters and after them; of other kinds those that say anything."""
        if self.kind == VERDICT:
            return FIRST, AFTER
        first, how = (tuple(name for name in names if name in self.asked) for names in (FIRST, HOW))
        return first, (*self.found, "status", "message", *how, *ORIGIN, "parameters")

    @property
    def parameters(self) -> dict[str, str]:
        """The columns of parameters: each one's name there, and in the construction."""
        taken = {*TAKEN, *self.found} - {"n"} if self.found else {"part", *FIRST, *AFTER}
        named = {f"{PARAMETER}{name}" if name in taken else name: name for name in self.spreads}
        if len(named) < len(self.spreads):
            listed = list(self.spreads)
            raise StoreError(
                f"the store {self.scan.store.where} has a cell that no sweep made: {listed} names one twice"
            )
        return named

    @property
    def schema(self) -> dict[str, Any]:
        """The types of the columns of every frame, by name."""
        import polars as pl

        kinds = {ColumnType.WHOLE: pl.Int64, ColumnType.FLOAT: pl.Float64, ColumnType.TEXT: pl.String}
        types = {float: pl.Float64, int: pl.Int64, str: pl.String}
        named = {called: kinds[self.spreads[name].kind] for called, name in self.parameters.items()}
        first, after = self.fixed
        fixed = {
            name: kinds[self.found[name].kind]
            if name in self.found
            else types[next(iter(KINDS.get(name, {str}) - {type(None), dict}), str)]
            for name in after
        }
        parts = {"part": pl.String} if self.in_sweep else {}
        return {**parts, **dict.fromkeys(first, pl.String), **named, **fixed}

    def frames(self, most: int | None = None) -> Iterator[pl.DataFrame]:
        """The cells in order, in chunks; at least one, which may be empty."""
        if self.spool is None or most is not None:
            return self._read(most)
        return self.spool.again() if self.spool.complete else self.spool.through(self._read(None))

    def _read(self, most: int | None) -> Iterator[pl.DataFrame]:
        import polars as pl

        schema, parameters = self.schema, self.parameters
        keys = [*ORDER, *(f"p{place}" for place in range(len(parameters))), *LAST]
        order = ", ".join(f"{key} NULLS LAST" for key in keys)
        chosen = self.scratch.execute(f"SELECT place, part FROM chosen ORDER BY {order}")
        left, empty = self.count if most is None else most, True
        while rows := chosen.fetchmany(min(CHUNK, left)) if left else []:
            left -= len(rows)
            known = self.scan.again(list({place for place, _ in rows}))
            intact = [(known[place], part) for place, part in rows if place in known]
            columns = self._columns(intact, parameters)
            empty = False
            yield pl.DataFrame({name: pl.Series(columns[name], dtype=kind) for name, kind in schema.items()})
        if empty:
            yield pl.DataFrame(schema=schema)

    def _columns(
        self, cells: Sequence[tuple[tuple[Any, ...], str | None]], parameters: Mapping[str, str]
    ) -> dict[str, list[Any]]:
        """Cells and their parts as columns, by name."""
        columns = {name: [values[place] for values, _ in cells] for name, place in PLACES.items()}
        points, places = columns["parameters"], columns["environment"]
        hosts = {each: host for each, (host, _) in self.environments.items()}
        made: dict[str, list[Any]] = {
            "part": [part for _, part in cells],
            "host": [hosts.get(each) for each in places],
            "versions": [self._versions.get(each) for each in places],
            "parameters": [json.dumps(point, ensure_ascii=False) for point in points],
        }
        found = [each or {} for each in columns["found"]]
        read = [(called, points, name, self.spreads[name]) for called, name in parameters.items()]
        read += [(name, found, name, spread) for name, spread in self.found.items()]
        for called, texts_by_name, name, spread in read:
            texts = [each.get(name) for each in texts_by_name]
            values = {text: _as_kind(text, spread.kind) for text in set(texts)}
            made[called] = [values[text] for text in texts]
        return {**columns, **made}

    @cached_property
    def _versions(self) -> dict[str, str]:
        """The versions of each environment, as JSON."""
        return {each: json.dumps(known, sort_keys=True) for each, (_, known) in self.environments.items()}


@contextmanager
def selected(
    store: Store,
    asked: Filter | None = None,
    sweep: int | None = None,
    limit: int | None = None,
    repeated: bool = False,
    after: Any = None,
) -> Iterator[Selection]:
    """The cells that `asked` describes; with a limit, the first that are found.

    A page of them: those behind a place, `Selection.last` of the page before, `start_of(store)` for the
    first; a cell that is in several parts of a sweep is on one page with all of them. Whoever wants them
    more than once says `repeated`: they are then read from the store only once.
    """
    with ExitStack() as stack:
        connection = stack.enter_context(store.reading())
        scratch = stack.enter_context(closing(sqlite3.connect("", check_same_thread=False)))
        spool = stack.enter_context(Spool()) if repeated else None
        columns = ", ".join(("place", *ORDER, *LAST))
        scratch.execute(f"CREATE TABLE chosen ({columns})")
        scan = Scan(store, connection)
        wanted = asked or Filter()
        made = Selection(scan, scratch, sweep is not None, wanted.kind or VERDICT, spool=spool)
        with closing(scan.cells(wanted, sweep, after)) as chunks:
            for chunk in chunks:
                some = chunk if limit is None else _first(chunk, limit - made.count, after is not None)
                made.take(some)
                if limit is not None and made.count >= limit:
                    made.last = some[-1].place if some else after
                    break
        made.environments = scan.environments()
        yield made


def start_of(store: Store) -> Any:
    """The place before all cells."""
    return 0 if store.engine.dialect.name == "sqlite" else ""


def _first(chunk: list[Found], most: int, whole: bool) -> list[Found]:
    """The first cells of a chunk, the last of them with all its parts where they are `whole`."""
    some = chunk[:most]
    rest = takewhile(lambda each: each.place == some[-1].place, chunk[most:]) if whole and some else ()
    return [*some, *rest]


@lru_cache(maxsize=50_000)
def spelled(text: str | None) -> tuple[Any, ColumnType]:
    """A parameter as a number to sort by where it is one, and what it is.

    >>> spelled("12"), spelled("1/4"), spelled("ones")
    ((12, <ColumnType.WHOLE: 0>), (0.25, <ColumnType.FLOAT: 1>), ('ones', <ColumnType.TEXT: 2>))
    """
    if text is None:
        return None, ColumnType.WHOLE
    try:
        number = parse_exact(text)
    except UsageError:
        return text, ColumnType.TEXT
    if number.denominator == 1 and abs(number) < LARGEST_INT and "." not in text:
        return int(number), ColumnType.WHOLE
    return as_float(number), ColumnType.FLOAT


def _as_kind(text: str | None, kind: ColumnType) -> Any:
    if text is None or kind is ColumnType.TEXT:
        return text
    value, own = spelled(text)
    return value if kind is ColumnType.WHOLE or own is ColumnType.FLOAT else as_float(parse_exact(text))
