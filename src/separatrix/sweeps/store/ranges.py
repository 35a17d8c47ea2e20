"""Ranges of numbers in SQL: of floats, and exact ones of texts that spell a decimal or a fraction."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import inf
from sys import float_info
from typing import Any

from sqlalchemy import ColumnElement, Double, Numeric, Text, and_, case, cast, func, literal, or_, type_coerce

from separatrix.core.numbers import parse_exact
from separatrix.core.parameters import UsageError

Ends = tuple[Fraction | None, Fraction | None]
"""The ends of a range, both belonging to it; None where it is open."""
NUMBER = r"^[+-]?[0-9]+(\.[0-9]+)?(/[0-9]+)?$"
ROOM = 1e-9
"""More than a database's floats are off by."""
FUNCTION = "separatrix_within"
"""What connections to SQLite know `is_within` by."""


def as_float(x: Fraction) -> float:
    """The nearest float; infinite beyond them.

    >>> as_float(Fraction(1, 10)), as_float(Fraction(10**400))
    (0.1, inf)
    """
    try:
        return float(x)
    except OverflowError:
        return inf if x > 0 else -inf


def float_between(column: Any, ends: Ends) -> ColumnElement[bool]:
    """A column of numbers, between the floats nearest to the ends."""
    low, high = ends
    return and_(
        *([] if low is None else [column >= as_float(low)]),
        *([] if high is None else [column <= as_float(high)]),
    )


def within(column: Any, name: str, ends: Ends, dialect: str) -> ColumnElement[bool]:
    """A name's text in a column of JSON, between the ends exactly; a text that spells no number is not."""
    stored = column[name].as_string()
    if dialect == "sqlite":
        texts = ("" if end is None else str(end) for end in ends)
        called: Any = getattr(func, FUNCTION)(stored, *texts)
        return and_(_about(column, stored, ends), called == 1)
    top, bottom = func.split_part(stored, "/", 1), func.split_part(stored, "/", 2)
    over, under = cast(top, Numeric), cast(func.coalesce(func.nullif(bottom, ""), "1"), Numeric)
    low, high = (None if end is None else _numerics(end) for end in ends)
    found: ColumnElement[bool] = and_(
        *([] if low is None else [over * low[1] >= under * low[0]]),
        *([] if high is None else [over * high[1] <= under * high[0]]),
    )
    return case((stored.regexp_match(NUMBER), found), else_=False)


def _about(column: Any, stored: Any, ends: Ends) -> ColumnElement[bool]:
    """Between the ends, generously, or perhaps a fraction: leaves little to be compared exactly."""
    low, high = (
        as_float(end) if end is not None else sign * inf for end, sign in zip(ends, (-1, 1), strict=True)
    )
    low, high = min(low, float_info.max), max(high, -float_info.max)
    room = (low - ROOM * abs(low), high + ROOM * abs(high))
    return or_(cast(stored, Double).between(*room), type_coerce(column, Text).like("%/%"))


def _numerics(x: Fraction) -> tuple[Any, Any]:
    return cast(literal(str(x.numerator)), Numeric), cast(literal(str(x.denominator)), Numeric)


@lru_cache(maxsize=100_000)
def is_within(text: object, low: str, high: str) -> bool:
    """What SQLite calls for `within`: ends as texts, empty where they are open.

    >>> is_within("1/3", "0.3", ""), is_within("1/3", "1/3", "1/3"), is_within("ones", "0", "")
    (True, True, False)
    """
    try:
        x = parse_exact(text)
    except UsageError:
        return False
    return (not low or x >= Fraction(low)) and (not high or x <= Fraction(high))
