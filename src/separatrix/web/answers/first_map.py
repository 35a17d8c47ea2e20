"""The axes of the map of a construction that is shown first: all of its cells are points that there are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from separatrix.constructions import Construction, construction_named
from separatrix.constructions.lengths import admissible
from separatrix.core.numbers import parse_exact
from separatrix.core.numbers.json import json_text
from separatrix.core.parameters import UsageError
from separatrix.core.parameters.grid import is_number, is_whole
from separatrix.core.parameters.ranges import read_counted
from separatrix.web.answers._base import Tell, answer

CELLS = 200
TRIED = 9
"""Values of each axis that are tried together."""
LENGTHS = ("1000:1e9", "100:1e6", "10:1e4", "8:4096")
FEW = ("100:1000",)
"""Where every token is literally there."""
POWERS = [2**i for i in range(2, 13)]
"""Tried where the numbers of tokens between two are none."""
ASIDE = ("n", "d", "m", "tau", "a0", "seed", "at")
"""Parameters that a first map does not move across, unless nothing else can be."""
PREFERRED = ("a1",)


@answer
def first_axes(construction: str, quick: bool, tell: Tell) -> bytes:
    """Two axes, each a parameter and its range as it is typed: something across, and n up."""
    kind = construction_named(construction)
    for across, up in product(_across(kind), _lengths(kind)):
        if _all_points(kind, across, up):
            counted = f"{across[1]}:{CELLS}{across[2]}", up if "," in up else f"{up}:{CELLS}:log"
            axes = [{"name": across[0], "range": counted[0]}, {"name": "n", "range": counted[1]}]
            return json_text(axes, indent=None).encode()
    raise UsageError(f"{construction} has no first map; name two axes")


def _lengths(kind: type[Construction]) -> Iterator[str]:
    yield from LENGTHS if kind.read(kind.example).has_groups else FEW
    for first in range(len(POWERS) - 2):
        yield ",".join(map(str, POWERS[first:]))
        yield ",".join(map(str, POWERS[: len(POWERS) - first]))


def _across(kind: type[Construction]) -> Iterator[tuple[str, str, str]]:
    """Parameters and their ranges around the reference point, the likeliest first."""
    schema = kind.schema
    numbers = [name for name in schema.model_fields if is_number(schema, name) and name not in ASIDE]
    numbers.sort(key=lambda name: (name not in PREFERRED, is_whole(schema, name)))
    for name in [*numbers, "m"]:
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
            if low < high:
                yield name, f"{float(low)}:{float(high)}", ""


def _all_points(kind: type[Construction], across: tuple[str, str, str], up: str) -> bool:
    name, ends, log = across
    try:
        values = _values(kind, name, f"{ends}:{TRIED}{log}")
        for value, n in product(values, _values(kind, "n", up if "," in up else f"{up}:{TRIED}:log")):
            kind.read(admissible(kind, {**kind.example, name: value, "n": n}))
    except UsageError:
        return False
    return True


def _values(kind: type[Construction], name: str, text: str) -> tuple[object, ...]:
    span, count = read_counted(kind.schema, name, text)
    return span.points(count)
