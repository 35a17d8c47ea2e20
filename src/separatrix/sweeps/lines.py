"""On which line of a TOML text each key stands, so that a complaint can say where to look."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

Path = tuple[str | int, ...]
"""Keys and places in arrays of tables, from the outside in: `("sweep", 0, "parameters", "n")`."""


def lines_of(text: str) -> dict[Path, int]:
    """The first line of every key and table of a valid TOML text.

    A statement ends where it parses by itself: what TOML is, only its parser has to know.

    >>> lines_of("[[sweep]]\\nseeds = [\\n  1,\\n]\\ndelta = 0.1")
    {('sweep', 0): 1, ('sweep', 0, 'seeds'): 2, ('sweep', 0, 'delta'): 5}
    """
    found: dict[Path, int] = {}
    tables: dict[Path, int] = {}
    here: Path = ()
    rows, start = text.splitlines(), 0
    while start < len(rows):
        stop = start + 1
        while (parsed := _parsed("\n".join(rows[start:stop]))) is None:
            stop += 1
            if stop > len(rows):
                return found
        if rows[start].lstrip().startswith("["):
            here = _table(parsed, tables)
            found.setdefault(here, start + 1)
        else:
            for path in _paths(parsed, here):
                found.setdefault(path, start + 1)
        start = stop
    return found


def _parsed(statement: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(statement)
    except tomllib.TOMLDecodeError:
        return None


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
