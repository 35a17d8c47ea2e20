"""The values of a parameter as a plan writes them: one, a list, or a range `1e3:1e9:7:log`."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from separatrix.numbers import format_exact, parse_exact, parse_integer
from separatrix.parameters import Parameters, UsageError
from separatrix.parameters.grid import is_whole
from separatrix.parameters.ranges import is_axis, read_counted


@dataclass(frozen=True)
class Values:
    """What one parameter takes."""

    name: str
    values: tuple[Any, ...]
    """Exact numbers, or words."""
    numeric: bool
    spaced: bool = False
    """Whether it is a range, so that its values were chosen for the user."""


def read_values(schema: type[Parameters], name: str, given: Any) -> Values:
    """Every value, exact; a UsageError names the first that is wrong.

    >>> from separatrix.constructions import Spike
    >>> read_values(Spike.schema, "n", "1e3:1e6:4:log").values
    (1000, 10000, 100000, 1000000)
    """
    if name not in schema.model_fields:
        raise UsageError(schema.unknown(name))
    try:
        whole = is_whole(schema, name)
    except UsageError:
        return Values(name, tuple(map(_word, _listed(name, given))), numeric=False)
    if isinstance(given, str) and is_axis(given):
        span, count = read_counted(schema, name, given)
        return Values(name, span.points(count), numeric=True, spaced=True)
    read = parse_integer if whole else parse_exact
    numbers = tuple(dict.fromkeys(read(_plain(each), name) for each in _listed(name, given)))
    return Values(name, numbers, numeric=True)


def spelled(value: Any) -> str:
    """The one spelling of an exact value, which identities are made of."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return format_exact(value) if isinstance(value, int | Fraction) else str(value)


def _listed(name: str, given: Any) -> list[Any]:
    listed = given if isinstance(given, list) else [given]
    if not listed:
        raise UsageError(f"{name} = [] has no values; give at least one")
    odd = next((each for each in listed if not isinstance(each, str | int | Decimal)), None)
    if odd is not None:
        raise UsageError(f"{name} holds {odd!r}; give a value, a list of values, or a range start:stop:count")
    return listed


def _plain(value: Any) -> Any:
    """A decimal as it was written."""
    return str(value) if isinstance(value, Decimal) else value


def _word(value: Any) -> Any:
    return value if isinstance(value, bool) else str(value)
