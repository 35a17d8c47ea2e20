"""Filters for stored cells: `mechanism=softmax n=1e3:1e6 verdict=blind`, as a condition in SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import inf
from sys import float_info
from typing import Any

import sqlalchemy as sa

from separatrix.core.numbers import format_exact, parse_exact
from separatrix.core.parameters import UsageError, split_mechanisms
from separatrix.sweeps.store.schema import VERDICT, Condition, cells

WORD_COLUMNS = ("construction", "mechanism", "verdict", "engine", "asked", "status", "dtype", "delta", "code")
"""Columns that are compared as text; several values are separated by commas."""
NUMBER_COLUMNS = ("seed", "draws", "distinguish", "margin", "bits", "fire_d0", "fire_d1", "seconds")
"""Columns that are compared as numbers, or as ranges of them."""
FILTER_COLUMNS = (*WORD_COLUMNS, *NUMBER_COLUMNS)
CHOICES = {
    "verdict": ("distinguishes", "blind", "saturated", "partial", "undecided"),
    "status": ("done", "refused", "failed"),
}
PARAMETER_PREFIX = "parameter_"
"""Stands before a parameter that has the name of a column: `parameter_seed=3`."""
MAX_INTEGER = 2**63 - 1
NUMBER_PATTERN = r"^[+-]?[0-9]+(\.[0-9]+)?(/[0-9]+)?$"
FLOAT_TOLERANCE = 1e-9
"""More than the relative error of a database's floats."""
RANGE_FUNCTION = "separatrix_is_in_range"
"""The name of `is_in_range` on connections to SQLite."""

Bounds = tuple[Fraction | None, Fraction | None]
"""The ends of a closed range; None where it is open."""


@dataclass(frozen=True)
class Filter:
    """Conditions that must all hold, as they were written; without any, all cells match."""

    conditions: Mapping[str, str] = field(default_factory=dict)
    kind: str | None = VERDICT
    """The kind of work; None for all kinds."""

    def clause(self, dialect: str) -> Condition:
        """Return the condition for a query."""
        # Conditions on columns come first: they are cheaper to test than those on values inside JSON.
        cheapest_first = sorted(self.conditions.items(), key=lambda item: item[0] not in FILTER_COLUMNS)
        return sa.and_(sa.true(), *(_make_condition(*item, dialect, self.kind) for item in cheapest_first))

    @property
    def parameters(self) -> dict[str, str]:
        """The conditions on parameters, by their name in the construction."""
        return {
            name.removeprefix(PARAMETER_PREFIX): value
            for name, value in self.conditions.items()
            if name not in FILTER_COLUMNS
        }


def read_filter(conditions: Mapping[str, object], kind: str = VERDICT) -> Filter:
    """Return a filter from conditions by name, checked as far as that is possible without the store.

    >>> read_filter({"mechanism": ["softmax", "linear"], "n": "1e3:1e6"}).conditions
    {'mechanism': 'softmax,linear', 'n': '1e3:1e6'}
    """
    texts = {
        name: ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        for name, value in conditions.items()
    }
    for name, value in texts.items():
        if name in ("sweep", "kind"):
            raise UsageError(f"{name} is an option; write `{name}` {value}")
        if not re.fullmatch(r"\w+", name):
            raise UsageError(f"{name} is not the name of a column or a parameter")
        for word in value.split(",") if name in CHOICES else ():
            if word not in CHOICES[name]:
                raise UsageError(f"{name}={word} is not one of {', '.join(CHOICES[name])}")
        if name not in WORD_COLUMNS and ":" in value:
            _parse_bounds(name, value)
        elif name in (*NUMBER_COLUMNS, "n"):
            _parse_numbers(name, value)
    return Filter(texts, kind)


def _make_condition(name: str, value: str, dialect: str, kind: str | None) -> Condition:
    if name == "mechanism":
        return sa.or_(sa.false(), *map(_is_mechanism, split_mechanisms(value)))
    if name == "delta":
        return cells.c.delta.in_(map(_canonical, value.split(",")))
    if name in WORD_COLUMNS:
        return cells.c[name].in_(value.split(","))
    if name in NUMBER_COLUMNS:
        return _match_number(name, value)
    own_name = name.removeprefix(PARAMETER_PREFIX)
    if ":" in value:
        condition = _is_between(cells.c.parameters, own_name, _parse_bounds(own_name, value), dialect)
    else:
        exact = map(_canonical, value.split(","))
        condition = sa.and_(cells.c.parameters[own_name].as_string().in_(exact))
    return condition if kind == VERDICT else sa.or_(condition, _match_finding(name, value, dialect))


def _is_mechanism(name: str) -> Condition:
    """The condition for a mechanism; a bare name matches it with any parameters."""
    if ":" in name:
        return cells.c.mechanism == name
    # The semicolon follows the colon, so this is the range of texts that begin with "name:".
    with_parameters = sa.and_(cells.c.mechanism >= f"{name}:", cells.c.mechanism < f"{name};")
    return sa.or_(cells.c.mechanism == name, with_parameters)


def _match_number(name: str, value: str) -> Condition:
    column = cells.c[name]
    if ":" in value:
        low, high = _parse_bounds(name, value)
        return sa.and_(
            sa.true() if low is None else column >= to_float(low),
            sa.true() if high is None else column <= to_float(high),
        )
    numbers = _parse_numbers(name, value)
    if isinstance(column.type, sa.Integer):
        return column.in_([int(x) for x in numbers if x.denominator == 1 and abs(x) <= MAX_INTEGER])
    return column.in_(map(to_float, numbers))


def _match_finding(name: str, value: str, dialect: str) -> Condition:
    """The condition on a finding of work that is no verdict: a word, a number, or a range of numbers."""
    if ":" in value:
        return _is_between(cells.c.findings, name, _parse_bounds(name, value), dialect)
    values = value.split(",")
    numbers = [x for text in values if (x := _parse_number(text)) is not None]
    equal = (_is_between(cells.c.findings, name, (x, x), dialect) for x in numbers)
    return sa.or_(cells.c.findings[name].as_string().in_(values), *equal)


def _is_between(column: Any, name: str, bounds: Bounds, dialect: str) -> Condition:
    """The condition that a value in a JSON column is a number in a range, compared exactly."""
    value = column[name].as_string()
    if dialect == "sqlite":
        texts = ("" if end is None else str(end) for end in bounds)
        is_exact: Any = getattr(sa.func, RANGE_FUNCTION)(value, *texts)
        return sa.and_(_is_nearly_between(column, value, bounds), is_exact == 1)
    numerator, denominator = sa.func.split_part(value, "/", 1), sa.func.split_part(value, "/", 2)
    over, under = (
        sa.cast(numerator, sa.Numeric),
        sa.cast(sa.func.coalesce(sa.func.nullif(denominator, ""), "1"), sa.Numeric),
    )
    low, high = (
        None if x is None else [sa.cast(sa.literal(str(part)), sa.Numeric) for part in (x.numerator, x.denominator)]
        for x in bounds
    )
    inside = sa.and_(
        sa.true() if low is None else over * low[1] >= under * low[0],
        sa.true() if high is None else over * high[1] <= under * high[0],
    )
    return sa.case((value.regexp_match(NUMBER_PATTERN), inside), else_=False)


def _is_nearly_between(column: Any, value: Any, bounds: Bounds) -> Condition:
    """A condition that SQLite tests quickly, so that Python compares few values exactly.

    SQLite reads a fraction as its numerator, so cells with any fraction pass.
    """
    low, high = (sign * inf if x is None else to_float(x) for x, sign in zip(bounds, (-1, 1), strict=True))
    low, high = min(low, float_info.max), max(high, -float_info.max)
    span = (low - FLOAT_TOLERANCE * abs(low), high + FLOAT_TOLERANCE * abs(high))
    return sa.or_(sa.cast(value, sa.Double).between(*span), sa.type_coerce(column, sa.Text).like("%/%"))


# The cells of a grid share few different values.
@lru_cache(maxsize=100_000)
def is_in_range(text: object, low: str, high: str) -> bool:
    """Whether a text is a number in a closed range; an empty bound is open.

    >>> is_in_range("1/3", "0.3", ""), is_in_range("1/3", "1/3", "1/3"), is_in_range("ones", "0", "")
    (True, True, False)
    """
    try:
        x = parse_exact(text)
    except UsageError:
        return False
    return (not low or x >= Fraction(low)) and (not high or x <= Fraction(high))


def to_float(x: Fraction) -> float:
    """Return the nearest float, which may be infinite.

    >>> to_float(Fraction(1, 10)), to_float(Fraction(10**400))
    (0.1, inf)
    """
    try:
        return float(x)
    except OverflowError:
        return inf if x > 0 else -inf


def _canonical(value: str) -> str:
    number = _parse_number(value)
    return value if number is None else format_exact(number)


def _parse_number(text: str) -> Fraction | None:
    try:
        return parse_exact(text)
    except UsageError:
        return None


def _parse_numbers(name: str, value: str) -> list[Fraction]:
    return [parse_exact(text, name) for text in value.split(",")]


def _parse_bounds(name: str, value: str) -> Bounds:
    parts = value.split(":")
    if len(parts) != 2 or parts == ["", ""]:
        raise UsageError(f"{name}={value} is not a range; write {name}=low:high, {name}=low: or {name}=:high")
    low, high = (parse_exact(part, name) if part else None for part in parts)
    if low is not None and high is not None and low > high:
        raise UsageError(f"{name}={value} runs backwards; write {name}={parts[1]}:{parts[0]}")
    return low, high
