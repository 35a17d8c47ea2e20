"""How many cells a table of a plan is written to have, counted before anything is made of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from separatrix.engines.options import DRAWLESS
from separatrix.numbers import parse_integer
from separatrix.parameters import UsageError


def written_cells(table: Mapping[str, Any]) -> int:
    """Constructions × mechanisms × parameters × seeds; what is wrong with any of them is for others to tell.

    >>> written_cells({"mechanisms": ["softmax", "linear"], "parameters": {"n": "1e3:1e9:7:log"}})
    14
    """
    seeds = 1 if table.get("engine") in DRAWLESS else _span(table.get("seeds"))
    return (
        _values(table.get("construction"))
        * written_mechanisms(table)
        * _product(table.get("parameters"))
        * seeds
    )


def written_mechanisms(table: Mapping[str, Any]) -> int:
    """How many mechanisms a table names, counting each choice of their own parameters."""
    named = table.get("mechanisms")
    return sum(_product(each) for each in named) if isinstance(named, list) else 1


def _product(named: Any) -> int:
    return math.prod(map(_values, named.values())) if isinstance(named, Mapping) else 1


def _values(given: Any) -> int:
    """One value, a list of them, or a range `start:stop:count`."""
    if isinstance(given, str) and given.count(":") in (2, 3):
        with suppress(UsageError):
            return max(1, parse_integer(given.split(":")[2]))
    return len(given) if isinstance(given, list) else 1


def _span(given: Any) -> int:
    """Seeds: one, a list of them, or a range `first:last`."""
    if isinstance(given, str) and given.count(":") == 1:
        with suppress(UsageError):
            first, last = map(parse_integer, given.split(":"))
            return max(1, last - first + 1)
    return len(given) if isinstance(given, list) else 1
