"""Which cells are asked for: `mechanism=softmax n=1e3:1e6 verdict=blind`, as a condition of SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sqlalchemy import ColumnElement, Integer, and_, false, literal, or_

from separatrix.core.numbers import format_exact, parse_exact
from separatrix.core.parameters import UsageError, split_mechanisms
from separatrix.sweeps.store.ranges import Ends, as_float, float_between, within
from separatrix.sweeps.store.schema import VERDICT, cells

WORDS = ("construction", "mechanism", "verdict", "engine", "asked", "status", "dtype", "delta", "code")
"""Columns that are compared as text; several values are separated by commas."""
NUMBERS = ("seed", "draws", "distinguish", "margin", "bits", "fire_d0", "fire_d1", "seconds")
"""Columns that are compared as numbers, or as ranges of them."""
VALUES = {
    "verdict": ("distinguishes", "blind", "saturated", "partial", "undecided"),
    "status": ("done", "refused", "failed"),
}
PARAMETER = "parameter_"
"""Stands before a parameter that is called as a column is: `parameter_seed=3`."""
LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Filter:
    """Conditions that must all hold, as they were written; none asks for everything."""

    conditions: Mapping[str, str] = field(default_factory=dict)
    kind: str | None = VERDICT
    """Of the work; None for all kinds."""

    def clause(self, dialect: str) -> ColumnElement[bool]:
        """The condition for a query; parameters come last, since they are texts to be looked into."""
        ordered = sorted(self.conditions.items(), key=lambda one: one[0] not in (*WORDS, *NUMBERS))
        return and_(literal(True), *(_condition(*one, dialect, self.kind) for one in ordered))

    @property
    def parameters(self) -> dict[str, str]:
        """The conditions on parameters, by the name that the construction gives them."""
        return {
            name.removeprefix(PARAMETER): value
            for name, value in self.conditions.items()
            if name not in (*WORDS, *NUMBERS)
        }


def read_filter(conditions: Mapping[str, object], kind: str = VERDICT) -> Filter:
    """A filter from conditions by name, checked as far as that goes without the store.

    >>> read_filter({"mechanism": "softmax,linear", "n": "1e3:1e6"}).conditions["n"]
    '1e3:1e6'
    """
    read = {name: _text(value) for name, value in conditions.items()}
    for name, value in read.items():
        if name in ("sweep", "kind"):
            raise UsageError(f"{name} is an option; write `{name}` {value}")
        if not re.fullmatch(r"\w+", name):
            raise UsageError(f"{name} is no name of a column or a parameter")
        for each in value.split(",") if name in VALUES else ():
            if each not in VALUES[name]:
                raise UsageError(f"{name}={each} is not one of {', '.join(VALUES[name])}")
        if name not in WORDS and ":" in value:
            _ends(name, value)
        elif name in NUMBERS:
            _numbers(name, value)
    return Filter(read, kind)


def _text(value: object) -> str:
    """As it is typed on the command line; several values in a list or a tuple are separated by commas."""
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _condition(name: str, value: str, dialect: str, kind: str | None) -> ColumnElement[bool]:
    if name == "mechanism":
        return or_(false(), *(_is_mechanism(split_mechanism) for split_mechanism in split_mechanisms(value)))
    if name == "delta":
        return cells.c.delta.in_([_canonical(each) for each in value.split(",")])
    if name in WORDS:
        return cells.c[name].in_(value.split(","))
    if name in NUMBERS:
        column = cells.c[name]
        return float_between(column, _ends(name, value)) if ":" in value else _is_one_of(column, name, value)
    asked = _parameter(name.removeprefix(PARAMETER), value, dialect)
    return asked if kind == VERDICT else or_(asked, _found(name, value, dialect))


def _is_mechanism(name: str) -> ColumnElement[bool]:
    """The mechanism as it is spelled; a bare name stands for all its parameters."""
    if ":" in name:
        return cells.c.mechanism == name
    return or_(
        cells.c.mechanism == name,
        and_(cells.c.mechanism >= f"{name}:", cells.c.mechanism < f"{name};"),
    )


def _is_one_of(column: ColumnElement[Any], name: str, value: str) -> ColumnElement[bool]:
    asked = _numbers(name, value)
    if isinstance(column.type, Integer):
        return column.in_([int(x) for x in asked if x.denominator == 1 and abs(x) <= LARGEST])
    return column.in_([as_float(x) for x in asked])


def _found(name: str, value: str, dialect: str) -> ColumnElement[bool]:
    """What work of another kind than verdicts found: a word, a number, or a range of numbers."""
    if ":" in value:
        return within(cells.c.found, name, _ends(name, value), dialect)
    values = value.split(",")
    numbers = [x for each in values if (x := _number(each)) is not None]
    equal = (within(cells.c.found, name, (x, x), dialect) for x in numbers)
    return or_(cells.c.found[name].as_string().in_(values), *equal)


def _number(text: str) -> Fraction | None:
    try:
        return parse_exact(text)
    except UsageError:
        return None


def _parameter(name: str, value: str, dialect: str) -> ColumnElement[bool]:
    """Equal to the last digit, or between two numbers; n has a column of floats, to look into fewer texts."""
    if ":" in value:
        ends = _ends(name, value)
        same = within(cells.c.parameters, name, ends, dialect)
        return and_(_near(ends), or_(_inside(ends), same)) if name == "n" else same
    exact = [_canonical(each) for each in value.split(",")]
    same = and_(cells.c.parameters[name].as_string().in_(exact))
    if name != "n":
        return same
    return and_(or_(*(_near((n, n)) for n in _numbers(name, value))), same)


def _near(ends: Ends) -> ColumnElement[bool]:
    """Where n is, as a float, between the ends; those beyond all floats have none."""
    low, high = (None if end is None else as_float(end) for end in ends)
    if high is None or high == float("inf"):
        above = literal(True) if low is None else cells.c.n >= low
        return or_(above, cells.c.n.is_(None))
    return float_between(cells.c.n, ends)


def _inside(ends: Ends) -> ColumnElement[bool]:
    """Where n is, as a float, strictly between the ends: then n is so exactly, since rounding keeps order."""
    low, high = ends
    return and_(
        literal(True) if low is None else cells.c.n > as_float(low),
        literal(True) if high is None else cells.c.n < as_float(high),
        cells.c.n.is_not(None),
    )


def _canonical(value: str) -> str:
    number = _number(value)
    return value if number is None else format_exact(number)


def _numbers(name: str, value: str) -> list[Fraction]:
    return [parse_exact(each, name) for each in value.split(",")]


def _ends(name: str, value: str) -> Ends:
    parts = value.split(":")
    if len(parts) != 2 or parts == ["", ""]:
        raise UsageError(f"{name}={value} is no range; write {name}=low:high, {name}=low: or {name}=:high")
    low, high = (parse_exact(part, name) if part else None for part in parts)
    if low is not None and high is not None and low > high:
        raise UsageError(f"{name}={value} runs backwards; write {name}={parts[1]}:{parts[0]}")
    return low, high
