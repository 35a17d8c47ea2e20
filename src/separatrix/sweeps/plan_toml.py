"""TOML texts of plans: their data, the line of each key, and the error that lists all mistakes."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from separatrix.core.errors import UsageError, on_one_line
from separatrix.core.numbers.exact import MOST_BITS, MOST_DIGITS

KeyPath = tuple[str | int, ...]
"""Keys and positions in arrays of tables, from the outside in: `("sweep", 0, "parameters", "n")`."""

MAX_DEPTH = 30
"""Brackets within brackets, or parts of one key: a plan needs five, and parsers slow down with more."""
MAX_SHOWN_MISTAKES = 50

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
    """A plan that cannot be run, with all its mistakes: `(line, message)`."""

    def __init__(self, source: str, mistakes: Sequence[tuple[int, str]]) -> None:
        sorted_mistakes = sorted(dict.fromkeys(mistakes))
        self._lines = [
            on_one_line(f"{source}, line {line}: {message}") for line, message in sorted_mistakes[:MAX_SHOWN_MISTAKES]
        ]
        if len(sorted_mistakes) > MAX_SHOWN_MISTAKES:
            self._lines.append(f"{source}: and {len(sorted_mistakes) - MAX_SHOWN_MISTAKES} more mistakes")
        super().__init__("\n".join(self._lines))

    @property
    def lines(self) -> list[str]:
        """One line for each mistake."""
        return self._lines


class PlanStatement(NamedTuple):
    """A header, or a key with its value, as it is written."""

    line: int
    text: str
    depth: int
    """The depth of nested brackets, or the number of dots in a key, whichever is larger."""


def split_statements(text: str) -> Iterator[PlanStatement]:
    """Yield the statements of a TOML text; for a text that is not TOML, pieces that no parser accepts.

    One pass that knows strings, comments and brackets: a statement ends with its line, unless within them.

    >>> list(split_statements("[[sweep]]\\nn = [\\n 1,\\n]"))
    [PlanStatement(line=1, text='[[sweep]]', depth=2), PlanStatement(line=2, text='n = [\\n 1,\\n]', depth=1)]
    """
    line, start, first_line = 1, 0, 1
    open_brackets = dots = depth = 0
    for token in _TOKEN.finditer(text):
        mark = token["mark"]
        if mark == "\n" and open_brackets <= 0:
            statement = text[start : token.start()].removesuffix("\r")
            if statement.strip():
                yield PlanStatement(first_line, statement, depth)
            start, first_line, open_brackets, dots, depth = token.end(), line + 1, 0, 0, 0
        elif mark is not None:
            open_brackets += (mark in "[{") - (mark in "]}")
            dots = dots + 1 if mark == "." else 0
            depth = max(depth, open_brackets, dots)
        line += token[0].count("\n")
    if text[start:].strip():
        yield PlanStatement(first_line, text[start:], depth)


def read_toml(text: str, source: str = "plan") -> tuple[dict[str, Any], dict[KeyPath, int]]:
    """Return the data of a TOML text, with exact decimals, and the first line of every key.

    >>> read_toml("[[sweep]]\\nseeds = [\\n  1,\\n]\\ndelta = 0.1")[1]
    {('sweep', 0): 1, ('sweep', 0, 'seeds'): 2, ('sweep', 0, 'delta'): 5}
    """
    lines: dict[KeyPath, int] = {}
    array_lengths: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for line, statement, depth in split_statements(text):
        if depth > MAX_DEPTH:
            raise PlanError(source, [(line, f"this is nested more than {MAX_DEPTH} deep, too deep for a plan")])
        data = _parse(statement, source, line)
        if statement.lstrip().startswith("["):
            table = _find_table(data, array_lengths)
            lines.setdefault(table, line)
        else:
            for path in _list_paths(data, table):
                lines.setdefault(path, line)
    return _parse(text, source), lines


def find_line(lines: Mapping[KeyPath, int], path: KeyPath) -> int:
    """Return the line of a key; a key that a table takes from the plan has its line there.

    A key without a line of its own has that of the nearest key or table around it.
    """
    table, key = path[:2], path[2:]
    prefixes = [key[:end] for end in range(len(key), 0, -1)]
    candidates = [candidate for prefix in prefixes for candidate in ((*table, *prefix), prefix)]
    return next((lines[x] for x in (*candidates, table, table[:1]) if x in lines), 1)


def _parse(text: str, source: str, line: int = 1) -> dict[str, Any]:
    """The data of a text that begins on this line; its numbers are short enough to be printed."""
    try:
        data = tomllib.loads(text, parse_float=Decimal)
        _require_short_numbers(data)
    except tomllib.TOMLDecodeError as error:
        reason, _, position = str(error).rpartition(" (at ")
        digits = "".join(filter(str.isdigit, position.partition(",")[0]))
        offset = int(digits) - 1 if digits else text.count("\n")
        raise PlanError(source, [(line + offset, reason or str(error))]) from None
    except (ValueError, InvalidOperation):
        raise PlanError(source, [(line, f"a number has more than {MOST_DIGITS} digits")]) from None
    return data


def _require_short_numbers(data: Any) -> None:
    if isinstance(data, int) and data.bit_length() > MOST_BITS:
        raise ValueError
    if isinstance(data, dict | list):
        for value in data.values() if isinstance(data, dict) else data:
            _require_short_numbers(value)


def _find_table(header: Mapping[str, Any], array_lengths: dict[KeyPath, int]) -> KeyPath:
    """The path of the table that a header opens; `[[name]]` opens a new element of an array."""
    path: KeyPath = ()
    inner: Any = header
    while isinstance(inner, Mapping) and inner:
        ((key, inner),) = inner.items()
        path = (*path, key)
        if isinstance(inner, list):
            array_lengths[path] = array_lengths.get(path, -1) + 1
            inner = inner[0]
        if path in array_lengths:
            path = (*path, array_lengths[path])
    return path


def _list_paths(data: Mapping[str, Any], table: KeyPath) -> Iterator[KeyPath]:
    for key, value in data.items():
        yield (*table, key)
        if isinstance(value, Mapping):
            yield from _list_paths(value, (*table, key))
