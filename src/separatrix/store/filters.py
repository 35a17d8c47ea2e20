"""Which cells are asked for: `mechanism=softmax n=1e3:1e6 verdict=blind`, as a condition of SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Double, String, and_, case, cast, func, literal, or_

from separatrix.parameters import UsageError, format_exact, parse_exact, split_mechanisms
from separatrix.store.schema import cells

WORDS = ("construction", "mechanism", "verdict", "engine", "asked", "status", "dtype", "delta", "code")
"""Columns that are compared as text; several values are separated by commas."""
NUMBERS = ("seed", "draws", "distinguish", "margin", "bits", "fire_d0", "fire_d1", "seconds")
"""Columns that are compared as numbers, or as ranges of them."""
VALUES = {
    "verdict": ("distinguishes", "blind", "partial", "undecided"),
    "status": ("done", "refused", "failed"),
}


@dataclass(frozen=True)
class Filter:
    """Conditions that must all hold, as they were written; none asks for everything."""

    conditions: Mapping[str, str] = field(default_factory=dict)

    def clause(self, dialect: str) -> ColumnElement[bool]:
        """The condition for a query."""
        return and_(literal(True), *(_condition(*one, dialect) for one in self.conditions.items()))


def read_filter(conditions: Mapping[str, object]) -> Filter:
    """Check what can be checked without the store.

    >>> read_filter({"mechanism": "softmax,linear", "n": "1e3:1e6"}).conditions["n"]
    '1e3:1e6'
    """
    read = {name: str(value) for name, value in conditions.items()}
    for name, value in read.items():
        for each in value.split(",") if name in VALUES else ():
            if each not in VALUES[name]:
                raise UsageError(f"{name}={each} is not one of {', '.join(VALUES[name])}")
        if name not in WORDS and ":" in value:
            _ends(name, value)
    return Filter(read)


def _condition(name: str, value: str, dialect: str) -> ColumnElement[bool]:
    if name == "mechanism":
        return or_(*(_is_mechanism(each) for each in split_mechanisms(value)))
    if name in WORDS:
        return cells.c[name].in_(value.split(","))
    if name in NUMBERS:
        column: Any = cells.c[name]
        return _between(column, name, value) if ":" in value else column == float(parse_exact(value, name))
    return _parameter(name, value, dialect)


def _is_mechanism(name: str) -> ColumnElement[bool]:
    """The mechanism as it is spelled; a bare name stands for all its parameters."""
    if ":" in name:
        return cells.c.mechanism == name
    return or_(
        cells.c.mechanism == name,
        and_(cells.c.mechanism >= f"{name}:", cells.c.mechanism < f"{name};"),
    )


def _parameter(name: str, value: str, dialect: str) -> ColumnElement[bool]:
    """Equal to the last digit, or between two numbers."""
    stored: Any = cells.c.parameters[name].as_string()
    if ":" in value:
        number = cells.c.n if name == "n" else _number(stored, dialect)
        return _between(number, name, value)
    exact = [_canonical(each) for each in value.split(",")]
    same: ColumnElement[bool] = stored.in_(exact)
    if name != "n":
        return same
    return and_(cells.c.n.in_([float(parse_exact(each, name)) for each in exact]), same)


def _canonical(value: str) -> str:
    try:
        return format_exact(parse_exact(value))
    except UsageError:
        return value


def _between(column: Any, name: str, value: str) -> ColumnElement[bool]:
    low, high = _ends(name, value)
    return and_(*([] if low is None else [column >= low]), *([] if high is None else [column <= high]))


def _ends(name: str, value: str) -> tuple[float | None, float | None]:
    parts = value.split(":")
    if len(parts) != 2 or parts == ["", ""]:
        raise UsageError(f"{name}={value} is no range; write {name}=low:high, {name}=low: or {name}=:high")
    low, high = (float(parse_exact(part, name)) if part else None for part in parts)
    return low, high


def _number(stored: Any, dialect: str) -> Any:
    """The float a text spells that is a decimal or a fraction p/q."""
    if dialect == "postgresql":
        top, bottom = (func.split_part(stored, "/", i) for i in (1, 2))
        return cast(top, Double) / cast(func.coalesce(func.nullif(bottom, ""), "1"), Double)
    slash = func.instr(stored, "/")
    below = cast(func.substr(cast(stored, String), slash + 1), Double)
    return cast(stored, Double) / case((slash > 0, below), else_=1.0)
