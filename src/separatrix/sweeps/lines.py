"""On which line of a TOML text each key stands, so that a complaint can say where to look."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Path = tuple[str | int, ...]
"""Keys and places in arrays of tables, from the outside in: `("sweep", 0, "parameters", "n")`."""

DEEPEST = 30
"""Brackets within brackets, or parts of one key: a plan needs five, and parsers slow down with more."""

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


class Statement(NamedTuple):
    """A header, or a key with its value, as it is written."""

    line: int
    text: str
    depth: int
    """Of brackets within brackets, or the parts of a key, whichever is more."""


def statements(text: str) -> Iterator[Statement]:
    """The statements of a TOML text; of a text that is none, pieces of it that no parser takes.

    One pass that knows strings, comments and brackets: a statement ends with its line, unless within them.

    >>> list(statements("[[sweep]]\\nseeds = [\\n  1,\\n]"))
    [Statement(line=1, text='[[sweep]]', depth=2), Statement(line=2, text='seeds = [\\n  1,\\n]', depth=1)]
    """
    line, start, begun = 1, 0, 1
    opened = parts = depth = 0
    for token in _TOKEN.finditer(text):
        mark = token["mark"]
        if mark == "\n" and opened <= 0:
            written = text[start : token.start()].removesuffix("\r")
            if written.strip():
                yield Statement(begun, written, depth)
            start, begun, opened, parts, depth = token.end(), line + 1, 0, 0, 0
        elif mark is not None:
            opened += (mark in "[{") - (mark in "]}")
            parts = parts + 1 if mark == "." else 0
            depth = max(depth, opened, parts)
        line += token[0].count("\n")
    if text[start:].strip():
        yield Statement(begun, text[start:], depth)


def lines_of(text: str) -> dict[Path, int]:
    """The first line of every key and table of a valid TOML text.

    >>> lines_of("[[sweep]]\\nseeds = [\\n  1,\\n]\\ndelta = 0.1")
    {('sweep', 0): 1, ('sweep', 0, 'seeds'): 2, ('sweep', 0, 'delta'): 5}
    """
    found: dict[Path, int] = {}
    tables: dict[Path, int] = {}
    here: Path = ()
    for statement in statements(text):
        try:
            parsed = tomllib.loads(statement.text)
        except tomllib.TOMLDecodeError:
            return found
        if statement.text.lstrip().startswith("["):
            here = _table(parsed, tables)
            found.setdefault(here, statement.line)
        else:
            for path in _paths(parsed, here):
                found.setdefault(path, statement.line)
    return found


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
            path = (*path, tables[path])
        elif path in tables:
            path = (*path, tables[path])
    return path


def _paths(parsed: Mapping[str, Any], here: Path) -> list[Path]:
    found: list[Path] = []
    for key, value in parsed.items():
        found.append((*here, key))
        if isinstance(value, Mapping):
            found += _paths(value, (*here, key))
    return found
