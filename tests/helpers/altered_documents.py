"""Documents with something altered, and what the checker says of them."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from separatrix.checker import check
from separatrix.core.parameters import UsageError

Json = Any
Place = tuple[str | int, ...]


def put(document: Json, place: Place, value: Json) -> Json:
    """A copy with another value at one place."""
    copied = copy.deepcopy(document)
    target = copied
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    return copied


def without(document: Json, place: Place) -> Json:
    """A copy that lacks one field or entry."""
    copied = copy.deepcopy(document)
    target = copied
    for step in place[:-1]:
        target = target[step]
    del target[place[-1]]
    return copied


def places(tree: Json, here: Place = ()) -> Iterator[tuple[Place, Json]]:
    """Every field and list entry, at every depth."""
    steps = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for step, value in steps:
        yield (*here, step), value
        yield from places(value, (*here, step))


def leaves(tree: Json) -> Iterator[tuple[Place, Json]]:
    """Every number and word."""
    return ((place, value) for place, value in places(tree) if not isinstance(value, dict | list))


def changed(value: Json) -> list[Json]:
    """Other values of the same type."""
    if isinstance(value, int):
        return [value + 1, value - 1] + [-value] * (value != 0)
    if isinstance(value, float):
        off = 9 * math.ulp(value)
        return [value + off if value < 0.5 else value - off, 1 - value if value != 0.5 else 0.25]
    try:
        number = Fraction(value)
    except ValueError:
        return [value[:-1], value.upper(), f"{value} ", ""]
    little = Fraction(1, 10**9)
    moved = [spelled(number + little), spelled(number - little), spelled(2 * number + 1)]
    return [*moved, f"{value}0", f" {value}", "", "nan"]


def spelled(number: Fraction) -> str:
    """As certificates write numbers: a decimal where it ends, else a fraction."""
    places = next((k for k in range(40) if (number * 10**k).denominator == 1), None)
    if places is None:
        return str(number)
    digits = str(abs(int(number * 10**places))).rjust(places + 1, "0")
    decimal = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return "-" * (number < 0) + decimal


def check_or_refuse(document: Json) -> bool:
    """Whether a document passes; refusing it altogether counts as not passing."""
    try:
        return check(document).holds
    except UsageError:
        return False
