"""Reading the tables of a store in chunks, around what is broken: what is intact is given, the rest counted.

A SQLite file is read by the numbers of its rows and without its indexes, so that a broken page costs only
the rows that stood on it; how many rows there should be, the store has counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from sqlalchemy import (
    Column,
    Connection,
    Integer,
    MetaData,
    Select,
    Table,
    Text,
    bindparam,
    cast,
    func,
    insert,
    join,
    literal,
    literal_column,
    select,
    type_coerce,
)
from sqlalchemy.exc import DBAPIError

from separatrix.sweeps.store.damage import Damage, is_damage, read_around
from separatrix.sweeps.store.files import ROWS, is_intact
from separatrix.sweeps.store.filters import Filter
from separatrix.sweeps.store.migrations import KINDS_KNOWN, SEALED_ALL, SEALED_CELLS
from separatrix.sweeps.store.rows import Sweep
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
from separatrix.sweeps.store.seals import (
    COLUMNS,
    KINDS,
    is_environment,
    is_plain,
    seal,
    seal_of_cell,
    sealed_names,
)
from separatrix.sweeps.store.store import MOST_IDS, Store

WINDOW = 5000
"""Rows that are read at once."""
PAGE = 1000
"""The same where a page of them is wanted."""
SMALLEST_ROW = 64
"""Bytes; no row of a cell takes fewer."""
LAST_NUMBER = 2**63 - 1
"""The last number of a row."""
ROWID = literal_column("cells.rowid", Integer)
UNINDEXED = literal_column("+cells.id", Text)
"""The identity of a cell, by which SQLite is not to look for it: cells are read first, then who has them."""
DIGITS = "0123456789abcdef"
MOST_DIGITS = 4
"""The most digits of an identity, by which members of a sweep are read around a broken page."""
PARAMETERS = COLUMNS.index("parameters")
ENVIRONMENT = COLUMNS.index("environment")
CELL = COLUMNS.index("id")
KIND, FOUND = len(COLUMNS) - 2, len(COLUMNS) - 1
found_members = Table("found_members", MetaData(), Column("cell", Text), Column("part", Text), schema="temp")
"""The members of the sweep that is read, beside the store and for as long as it is read."""


class Found(NamedTuple):
    """An intact cell."""

    place: Any
    """The place by which it is found again: the number of its row, or its identity."""
    values: tuple[Any, ...]
    """The values of `COLUMNS`, in order."""
    part: str | None
    """The part of the plan, where a sweep is read; a cell in several parts is found several times."""


class Scan:
    """One look at a store, within one transaction."""

    def __init__(self, store: Store, connection: Connection) -> None:
        self.store, self.connection = store, connection
        self.sqlite = store.engine.dialect.name == "sqlite"
        self.damage = Damage(store.where)
        self.counted = self._counted()

    def _counted(self) -> dict[str, int]:
        """How many rows there should be; nothing of what is unknown."""
        if self.store.version < SEALED_ALL:
            return {}
        try:
            rows = self.connection.execute(select(counts.c.what, counts.c.rows)).all()
        except (DBAPIError, UnicodeDecodeError) as error:
            if not is_damage(error):
                raise
            self.damage.lost["counts"] += 1
            self.connection.rollback()  # a connection that met a broken page writes nothing any more
            return {}
        known = {what: counted for what, counted in rows if type(what) is str and type(counted) is int}
        if len(known) < len(rows):
            self.damage.altered["counts"] = 1
        return known

    def compare(self, what: str, key: str, there: int, unread: int = 0) -> None:
        """Note how many rows are lost: by the count under `key`, or where there is none, what was unread.

        A count that is gone or too small is altered; in PostgreSQL others add rows while these are read.
        """
        counted = self.counted.get(key)
        if counted is None:
            self.damage.lost[what] += unread
        elif counted > there:
            self.damage.lost[what] += counted - there
        known = self.store.version >= SEALED_ALL and not self.damage.lost["counts"]
        if known and (counted is None or (self.sqlite and counted < there)):
            self.damage.altered["counts"] = 1

    def cells(
        self, asked: Filter, sweep: int | None = None, after: Any = None
    ) -> Generator[list[Found], None, None]:
        """The cells that are asked for, in chunks, in the order in which they are kept.

        With `after`, only those behind that place, and members of a sweep are looked at one by one, not
        gathered before. Verdicts are told from others once their seals are seen, so that an altered kind
        hides nothing.
        """
        gathered = sweep is not None and self.sqlite and after is None
        if sweep is not None and gathered:
            self._gather(sweep)
        kind = asked.kind if asked.kind != VERDICT else None
        if kind is not None and self.store.version < KINDS_KNOWN:
            return
        selected = self._selected(sweep, gathered).where(asked.clause(self.store.engine.dialect.name))
        selected = selected if kind is None else selected.where(cells.c.kind == kind)
        for rows in (self._by_number if self.sqlite else self._by_identity)(selected, after):
            joined = sweep is not None and not gathered
            found = self._intact(self._members_intact(sweep, rows) if joined else rows)
            yield [each for each in found if asked.kind in (None, each.values[KIND])]
        if sweep is not None and not self.sqlite and after is None:
            own = select(func.count()).select_from(sweep_cells).where(sweep_cells.c.sweep == sweep)
            there = self.connection.execute(own).scalar_one()
            self.compare("members", members_of(sweep), there)

    def _members_intact(self, sweep: int | None, rows: Sequence[Any]) -> list[Any]:
        """Of cells that were joined with the members of a sweep, those whose membership is sealed."""
        good = [row for row in rows if self._is_sealed(row[-1], seal((sweep, row[CELL], row[-2])))]
        self.damage.altered["members"] += len(rows) - len(good)
        return good

    def again(self, places: Sequence[Any]) -> dict[Any, tuple[Any, ...]]:
        """Cells that were found, by their places."""
        where = ROWID if self.sqlite else cells.c.id
        asked, kept = self._selected(None), dict[Any, tuple[Any, ...]]()
        for start in range(0, len(places), MOST_IDS):
            rows = self.connection.execute(asked.where(where.in_(places[start : start + MOST_IDS]))).all()
            kept.update((found.place, found.values) for found in self._intact(rows))
        return kept

    def _selected(self, sweep: int | None, gathered: bool = True) -> Select[Any]:
        """`COLUMNS`, seal, place and part, in this order; JSON as the text that is stored."""
        plain: Any = type_coerce if self.sqlite else cast
        columns: list[Any] = [cells.c[name] for name in COLUMNS]
        columns[FOUND] = plain(cells.c.found, Text)
        if self.store.version < KINDS_KNOWN:
            columns[KIND:] = literal(VERDICT), literal(None)
        columns[PARAMETERS] = plain(cells.c.parameters, Text)
        kept = cells.c.seal if self.store.version >= SEALED_CELLS else literal(None)
        place = ROWID if self.sqlite else cells.c.id.label("place")
        if sweep is None:
            return select(*columns, kept, place, literal(None)).with_hint(cells, "NOT INDEXED", "sqlite")
        if self.sqlite and gathered:
            joined = select(*columns, kept, place, found_members.c.part)
            joined = joined.join(found_members, found_members.c.cell == cells.c.id)
            return joined.with_hint(cells, "NOT INDEXED", "sqlite")
        joined = select(*columns, kept, place, sweep_cells.c.part, self._member_seal)
        member: Any = UNINDEXED if self.sqlite else cells.c.id
        both = join(cells, sweep_cells, sweep_cells.c.cell == member)
        return joined.select_from(both).where(sweep_cells.c.sweep == sweep)

    @property
    def _member_seal(self) -> Any:
        return sweep_cells.c.seal if self.store.version >= SEALED_ALL else literal(None)

    def _by_number(self, selected: Select[Any], after: int | None) -> Iterator[list[Any]]:
        numbered = select(ROWID).select_from(cells).with_hint(cells, "NOT INDEXED", "sqlite")
        there = lost = 0

        def number(first: int, last: int) -> list[int]:
            return list(self._between(numbered, first, last).scalars())

        def read(first: int, last: int) -> list[Any]:
            return list(self._between(selected.order_by(ROWID), first, last).all())

        for first, last in self._windows(cells, WINDOW if after is None else PAGE, (after or 0) + 1):
            numbers, unknown = read_around(number, first, last)
            lost += len(unknown)
            if not numbers:
                continue
            there += (different := len(set(numbers)))
            rows, holes = read_around(read, first, last)
            self.damage.altered["cells"] += len(set(holes) - set(unknown))
            yield rows if different == len(numbers) else list(dict.fromkeys(rows))  # a page shows one twice
        if not after:
            self.compare("cells", "cells", there, lost)

    def _windows(self, table: Table, size: int, first: int = 1) -> Iterator[tuple[int, int]]:
        """First and last numbers of rows to read at once; a number that was altered may lie far off."""
        number = literal_column(f"{table.name}.rowid", Integer)
        following = select(func.min(number)).select_from(table).where(bindparam("first") <= number)
        last = self._last(number, table, self._room())
        while first <= last:
            yield first, min(first + size - 1, LAST_NUMBER)
            first += size
            if first > last:
                return
            try:
                first = max(
                    first, self.connection.execute(following, {"first": first}).scalar() or LAST_NUMBER
                )
            except (DBAPIError, UnicodeDecodeError) as error:
                if not is_damage(error):
                    raise
                last = min(last, self._room())

    def _between(self, asked: Select[Any], first: int, last: int) -> Any:
        """Rows by their numbers; one alone is looked up, since a range looks at what comes after it, too."""
        if first == last:
            return self.connection.execute(asked.where(bindparam("first") == ROWID), {"first": first})
        inside = ROWID.between(bindparam("first"), bindparam("last"))
        return self.connection.execute(asked.where(inside), {"first": first, "last": last})

    def _room(self) -> int:
        """How many rows there can be, whatever an altered number says."""
        if not self.sqlite:
            return LAST_NUMBER
        size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
        return int(self.connection.exec_driver_sql(size).scalar_one()) // SMALLEST_ROW

    def _by_identity(self, selected: Select[Any], after: str | None) -> Iterator[list[Any]]:
        if after is None:
            there = self.connection.execute(select(func.count()).select_from(cells)).scalar_one()
            self.compare("cells", "cells", there)
        else:
            selected = selected.where(cells.c.id > after).order_by(cells.c.id)
        with self.connection.execute(selected, execution_options={"stream_results": True}) as streamed:
            yield from (list(rows) for rows in streamed.partitions(WINDOW))

    def _intact(self, rows: Sequence[Any]) -> list[Found]:
        """The rows that are what was stored; the others are counted."""
        end, good = len(COLUMNS), list[Found]()
        for row in map(tuple, rows):
            try:
                found = None if row[FOUND] is None else json.loads(row[FOUND])
                values = (*row[:PARAMETERS], json.loads(row[PARAMETERS]), *row[PARAMETERS + 1 : FOUND], found)
                if self._is_sealed(row[end], seal_of_cell(values)):
                    good.append(Found(row[end + 1], values, row[end + 2]))
            except (TypeError, ValueError, RecursionError):
                continue
        kinds = list(KINDS.values())
        columns = zip(*(found.values for found in good), strict=True)
        if not all(set(map(type, column)) <= kind for column, kind in zip(columns, kinds, strict=False)):
            good = [
                found
                for found in good
                if all(type(x) in kind for x, kind in zip(found.values, kinds, strict=True))
            ]
        good = [each for each in good if all(is_plain(each.values[place]) for place in (PARAMETERS, FOUND))]
        places = {row[end + 1] for row in rows} - {found.place for found in good}
        self.damage.altered["cells"] += len(places)
        return good

    def _gather(self, sweep: int) -> None:
        """The intact members of a sweep, into a table of their own."""
        self.connection.exec_driver_sql("DROP TABLE IF EXISTS temp.found_members")
        self.connection.exec_driver_sql(
            "CREATE TEMP TABLE found_members (cell TEXT, part TEXT, PRIMARY KEY (cell, part)) WITHOUT ROWID"
        )
        with self.store.reading() as apart:  # broken pages are met there
            reader = Scan(self.store, apart)
            reader.damage = self.damage
            for rows in reader.members(sweep):
                if rows:
                    found = [{"cell": cell, "part": part} for _, cell, part in rows]
                    self.connection.execute(insert(found_members), found)

    def members(self, sweep: int) -> Iterator[list[tuple[int, str, str]]]:
        """`(sweep, cell, part)` of a sweep, in chunks; those that are altered or lost are counted."""
        names = sealed_names(sweep_cells)
        asked = select(*(sweep_cells.c[name] for name in names), self._member_seal)
        asked = asked.where(sweep_cells.c.sweep == sweep)
        there = 0
        for rows in self._member_rows(asked, "", None, None):
            there += len({(cell, part) for _, cell, part, _ in rows})
            good = [
                (number, cell, part)
                for number, cell, part, sealed in rows
                if self._is_sealed(sealed, seal((number, cell, part))) and type(cell) is type(part) is str
            ]
            self.damage.altered["members"] += len(rows) - len(good)
            yield good
        self.compare("members", members_of(sweep), there)

    def _is_sealed(self, kept: object, right: int) -> bool:
        """Whether a seal is the right one; rows from before there were seals are believed."""
        return kept == right if kept is not None else self.store.version < SEALED_ALL

    def _member_rows(
        self, asked: Select[Any], prefix: str, low: str | None, high: str | None
    ) -> Iterator[list[Any]]:
        """Those whose cell stands between two texts, by longer and longer prefixes where a page is broken.

        Where nothing at all can be read by longer ones, neither can it by still longer ones.
        """
        edges, broken = [low, *(f"{prefix}{digit}" for digit in DIGITS), high], list[tuple[str | None, ...]]()
        for start, stop in pairwise(edges):
            own = asked if start is None else asked.where(sweep_cells.c.cell >= start)
            own = own if stop is None else own.where(sweep_cells.c.cell < stop)
            try:
                yield list(self.connection.execute(own).all())
            except (DBAPIError, UnicodeDecodeError) as error:
                if not is_damage(error):
                    raise
                broken.append((start, stop))
        if len(broken) < len(DIGITS):
            for start, stop in broken:
                if start is not None and len(start) == len(prefix) + 1 < MOST_DIGITS:
                    yield from self._member_rows(asked, start, start, stop)

    def sweeps(self) -> list[Sweep]:
        """The intact sweeps, oldest first, without how many of their cells are stored."""
        names = sealed_names(sweeps)
        kept = sweeps.c.seal if self.store.version >= SEALED_ALL else literal(None)
        asked = select(*(sweeps.c[name] for name in names), kept).order_by(sweeps.c.id)

        def read(first: int, last: int) -> list[Any]:
            return list(self.connection.execute(asked.where(sweeps.c.id.between(first, last))))

        named = [int(what.split()[1]) for what in self.counted if re.fullmatch(r"sweep \d{1,9}", what)]
        last = min(max(*named, self._last(sweeps.c.id, sweeps), 1, 1), self._room())
        rows, holes = read_around(read, 1, last)
        good = [row for row in rows if self._is_sealed(row[-1], seal(tuple(row)[:-1]))]
        good = [row for row in good if all(type(x) is str for x in row[1:-1])]
        self.damage.altered["sweeps"] = len(rows) - len(good)
        self.compare("sweeps", "sweeps", len({row.id for row in rows}), len(holes))
        return [Sweep(row.id, row.name, row.plan, row.started, 0, row.key) for row in good]

    def _last(self, number: Any, table: Table, unknown: int = 0) -> int:
        """The largest number in a column; `unknown` where it cannot be read."""
        try:
            return int(self.connection.execute(select(func.max(number)).select_from(table)).scalar() or 0)
        except (DBAPIError, UnicodeDecodeError) as error:
            if not is_damage(error):
                raise
        return unknown

    def files(self) -> Iterator[dict[str, Any]]:
        """The intact files beside cells, one at a time, as rows of their table."""
        if self.store.version < KINDS_KNOWN:
            return
        there = 0
        for row in self._file_rows():
            there += 1
            if is_intact(row):
                yield dict(row)
            else:
                self.damage.altered["files"] += 1
        self.compare("files", files.name, there)

    def _file_rows(self) -> Iterator[Any]:
        if not self.sqlite:
            asked = ROWS.execution_options(yield_per=1)
            yield from (row._mapping for row in self.connection.execute(asked))
            return
        number = literal_column("files.rowid", Integer)

        def read(first: int, last: int) -> list[Any]:
            own = ROWS.where(number == first).with_hint(files, "NOT INDEXED", "sqlite")
            return list(self.connection.execute(own))

        for first, _ in self._windows(files, 1):
            yield from (row._mapping for row in read_around(read, first, first)[0])

    def environments(self) -> dict[str, tuple[str, dict[str, str]]]:
        """Host and versions of every place where cells were computed, by its identity."""
        plain: Any = type_coerce if self.sqlite else cast
        versions = plain(environments.c.versions, Text)
        asked = select(environments.c.id, environments.c.host, versions)
        number = literal_column("environments.rowid", Integer)

        def read(first: int, last: int) -> list[Any]:
            own = asked.where(number.between(first, last)) if self.sqlite else asked
            return list(self.connection.execute(own.with_hint(environments, "NOT INDEXED", "sqlite")))

        most = min(max(self.counted.get("environments", 0), WINDOW), self._room())
        rows, _ = read_around(read, 1, most)
        found = {row[0]: (row[1], decoded) for row in rows if (decoded := _decoded(*row)) is not None}
        self.damage.altered["environments"] = len(rows) - len(found)
        self.compare("environments", "environments", len({row[0] for row in rows}))
        return found


def _decoded(id_: object, host: object, versions: object) -> dict[str, str] | None:
    """The versions of an environment that is what was stored."""
    try:
        read = json.loads(versions) if isinstance(versions, str) else None
    except (ValueError, RecursionError):
        return None
    return read if is_environment(id_, host, read) else None
