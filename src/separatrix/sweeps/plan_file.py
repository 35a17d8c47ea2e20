"""A plan's TOML text: its data, the line of each key, and all that is wrong with it, told at once."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from separatrix.core.errors import UsageError, on_one_line
from separatrix.core.numbers.exact import MOST_BITS, MOST_DIGITS

Path = tuple[str | int, ...]
"""Keys and places in arrays of tables, from the outside in: `("sweep", 0, "parameters", "n")`."""

DEEPEST = 30
"""Brackets within brackets, or parts of one key: a plan needs five, and parsers slow down with more."""
MOST_SHOWN = 50

_TOKEN = re.compile(
    r"""
      "{3} (?: [^"\\] | \\[\s\S] | "{1,2}(?!") )*+ "{0,5}
    | '{3} (?: [^'] | '{1,2}(?!') )*+ '{0,5}
    | " (?: [^"\\\n] | \\. )*+ "?
    | ' [^'\n]*+ '?
    | \# [^\n]*+
    | (?P<mark> [\n\[\]{},=.] )
    | [^"'\#\n\[\]{},=.]++
    """,
    re.VERBOSE,
)


class PlanError(UsageError):
    """A plan that cannot be run, with all that is wrong with it."""

    def __init__(self, where: str, complaints: Sequence[tuple[int, str]]) -> None:
        ordered = sorted(dict.fromkeys(complaints))
        shown = [on_one_line(f"{where}, line {line}: {message}") for line, message in ordered[:MOST_SHOWN]]
        more = len(ordered) - len(shown)
        self._lines = [*shown, f"{where}: and {more} more mistakes"] if more else shown
        super().__init__("\n".join(self._lines))

    @property
    def lines(self) -> list[str]:
        """One line for each mistake."""
        return self._lines


class Complaints:
    """What is wrong with the keys of a plan, or of one of its tables."""

    def __init__(self, lines: Mapping[Path, int], table: Path = ()) -> None:
        self._lines, self._table = lines, table
        self.found: list[tuple[int, str]] = []

    def of(self, *table: str | int) -> Complaints:
        """The complaints of a table."""
        return Complaints(self._lines, table)

    def add(self, message: str, *key: str) -> None:
        """Complain of a key of the table, or of the plan where it is given for all tables.

        A key without a line of its own has that of the nearest table around it.
        """
        path: Path = (*self._table, *key)
        path = key if path not in self._lines and key in self._lines else path
        while path and path not in self._lines:
            path = path[:-1]
        self.found.append((self._lines.get(path, 1), message))

    @contextmanager
    def at(self, *key: str) -> Iterator[None]:
        """Turn a UsageError into a complaint, and go on."""
        try:
            yield
        except UsageError as error:
            self.add(str(error), *key)


class PlanStatement(NamedTuple):
    """A header, or a key with its value, as it is written."""

    line: int
    text: str
    depth: int
    """The depth of brackets within brackets, or the parts of a key, whichever is more."""


def statements(text: str) -> Iterator[PlanStatement]:
    """The statements of a TOML text; of a text that is none, pieces of it that no parser takes.

    One pass that knows strings, comments and brackets: a statement ends with its line, unless within them.

    >>> list(statements("[[sweep]]\\nn = [\\n 1,\\n]"))
    [PlanStatement(line=1, text='[[sweep]]', depth=2), PlanStatement(line=2, text='n = [\\n 1,\\n]', depth=1)]
    """
    line, start, begun = 1, 0, 1
    opened = parts = depth = 0
    for token in _TOKEN.finditer(text):
        mark = token["mark"]
        if mark == "\n" and opened <= 0:
            written = text[start : token.start()].removesuffix("\r")
            if written.strip():
                yield PlanStatement(begun, written, depth)
            start, begun, opened, parts, depth = token.end(), line + 1, 0, 0, 0
        elif mark is not None:
            opened += (mark in "[{") - (mark in "]}")
            parts = parts + 1 if mark == "." else 0
            depth = max(depth, opened, parts)
        line += token[0].count("\n")
    if text[start:].strip():
        yield PlanStatement(begun, text[start:], depth)


def read_toml(text: str, where: str = "plan") -> tuple[dict[str, Any], dict[Path, int]]:
    """What a TOML text says, decimals as they are written, and the first line of every key; or a PlanError.

    >>> read_toml("[[sweep]]\\nseeds = [\\n  1,\\n]\\ndelta = 0.1")[1]
    {('sweep', 0): 1, ('sweep', 0, 'seeds'): 2, ('sweep', 0, 'delta'): 5}
    """
    lines: dict[Path, int] = {}
    tables: dict[Path, int] = {}
    here: Path = ()
    for line, written, depth in statements(text):
        if depth > DEEPEST:
            message = f"this is nested more than {DEEPEST} deep, too deeply for a plan"
            raise PlanError(where, [(line, message)])
        parsed = _parsed(written, where, line)
        if written.lstrip().startswith("["):
            here = _table(parsed, tables)
            lines.setdefault(here, line)
        else:
            for path in _paths(parsed, here):
                lines.setdefault(path, line)
    return _parsed(text, where), lines


def _parsed(text: str, where: str, line: int = 1) -> dict[str, Any]:
    """The data of a text that begins on this line; its numbers are short enough to be printed."""
    try:
        data = tomllib.loads(text, parse_float=Decimal)
        _require_short(data)
    except tomllib.TOMLDecodeError as error:
        what, _, place = str(error).rpartition(" (at ")
        digits = "".join(filter(str.isdigit, place.partition(",")[0]))
        within = int(digits) - 1 if digits else text.count("\n")
        raise PlanError(where, [(line + within, what or str(error))]) from None
    except (ValueError, InvalidOperation):
        raise PlanError(where, [(line, f"a number has more than {MOST_DIGITS} digits")]) from None
    return data


def _require_short(data: Any) -> None:
    if isinstance(data, int) and data.bit_length() > MOST_BITS:
        raise ValueError
    if isinstance(data, dict | list):
        for each in data.values() if isinstance(data, dict) else data:
            _require_short(each)


def _table(header: Mapping[str, Any], tables: dict[Path, int]) -> Path:
    """The path of a table from its header alone; a new element where the header is `[[name]]`."""
    path: Path = ()
    inner: Any = header
    while isinstance(inner, Mapping) and inner:
        ((key, inner),) = inner.items()
        path = (*path, key)
        if isinstance(inner, list):
            tables[path] = tables.get(path, -1) + 1
            inner = inner[0]
        if path in tables:
            path = (*path, tables[path])
    return path


def _paths(parsed: Mapping[str, Any], here: Path) -> Iterator[Path]:
    for key, value in parsed.items():
        yield (*here, key)
        if isinstance(value, Mapping):
            yield from _paths(value, (*here, key))
