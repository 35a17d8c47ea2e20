"""The search for the axes of a construction's first map, all of whose cells must be valid points."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from separatrix.constructions import Construction, construction_named
from separatrix.constructions.lengths import admissible
from separatrix.core.numbers import parse_exact
from separatrix.core.parameters import UsageError
from separatrix.core.parameters.grid import is_number, is_whole
from separatrix.core.parameters.ranges import read_counted

AXIS_CELLS = 200
TESTED_VALUES = 9
"""The values of each axis that are tested together; the cells between them are taken to be valid."""
GROUPED_LENGTHS = ("1000:1e9", "100:1e6", "10:1e4", "8:4096")
LITERAL_LENGTHS = ("100:1000",)
"""Ranges of n for constructions whose tokens have no groups: their cost grows with n."""
POWERS_OF_TWO = [2**i for i in range(2, 13)]
"""Lengths for constructions that admit none of the ranges."""
SECONDARY_PARAMETERS = ("n", "d", "m", "tau", "a0", "seed", "at")
"""Parameters that are not on the first map, unless nothing else can be."""
PREFERRED_PARAMETERS = ("a1",)


def choose_axes(construction: str) -> dict[str, str]:
    """Return the ranges, as typed, of a parameter for the horizontal axis and of n for the vertical one."""
    kind = construction_named(construction)
    for (name, ends, spacing), lengths in product(_candidates(kind), _length_candidates(kind)):
        if _all_valid(kind, name, f"{ends}:{TESTED_VALUES}{spacing}", _count(lengths, TESTED_VALUES)):
            return {name: f"{ends}:{AXIS_CELLS}{spacing}", "n": _count(lengths, AXIS_CELLS)}
    raise UsageError(f"{construction} has no first map; name two axes")


def _count(lengths: str, count: int) -> str:
    return lengths if "," in lengths else f"{lengths}:{count}:log"


def _length_candidates(kind: type[Construction]) -> Iterator[str]:
    yield from GROUPED_LENGTHS if kind.read(kind.example).has_groups else LITERAL_LENGTHS
    for first in range(len(POWERS_OF_TWO) - 2):
        yield ",".join(map(str, POWERS_OF_TWO[first:]))
        yield ",".join(map(str, POWERS_OF_TWO[: len(POWERS_OF_TWO) - first]))


def _candidates(kind: type[Construction]) -> Iterator[tuple[str, str, str]]:
    """Yield parameters with the ends and the spacing of their range, the most promising first."""
    schema = kind.schema
    names = [name for name in schema.model_fields if is_number(schema, name) and name not in SECONDARY_PARAMETERS]
    names.sort(key=lambda name: (name not in PREFERRED_PARAMETERS, is_whole(schema, name)))
    for name in [*names, "m"]:
        usual = kind.example.get(name, schema.model_fields[name].default)
        if is_whole(schema, name):
            for stop in (100, 10, 4):
                yield name, f"1:{stop}", ":log"
            continue
        try:
            value = parse_exact(usual)
        except UsageError:
            continue
        for low, high in ((value / 2, 2 * value), (value / 2, value), (value, 2 * value)):
            if low < high:  # not so for a usual value of zero
                yield name, f"{float(low)}:{float(high)}", ""


def _all_valid(kind: type[Construction], name: str, text: str, lengths: str) -> bool:
    try:
        for value, n in product(_values(kind, name, text), _values(kind, "n", lengths)):
            kind.read(admissible(kind, {**kind.example, name: value, "n": n}))
    except UsageError:
        return False
    return True


def _values(kind: type[Construction], name: str, text: str) -> tuple[object, ...]:
    span, count = read_counted(kind.schema, name, text)
    return span.points(count)
