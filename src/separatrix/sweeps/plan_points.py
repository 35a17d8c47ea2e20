"""The parameter points of a construction: the product of what a plan writes, made one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import product, repeat
from typing import Any

import numpy as np

from separatrix.constructions import Construction
from separatrix.constructions.lengths import nearest_lengths
from separatrix.constructions.reference import reference_defaults
from separatrix.core.numbers import parse_exact, parse_integer
from separatrix.core.parameters import Grid, Parameters, UsageError
from separatrix.core.parameters.grid import is_number, is_whole, violations
from separatrix.core.parameters.model import printed
from separatrix.core.parameters.ranges import is_axis, read_counted


def written_values(given: Any) -> int:
    """How many values are written: one, a list of them, or a range; counted before any of them is made.

    >>> written_values("1e3:1e9:7:log"), written_values([1, 2]), written_values("spike")
    (7, 2, 1)
    """
    if isinstance(given, str) and given.count(":") in (2, 3):
        with suppress(UsageError):
            return max(1, parse_integer(given.split(":")[2]))
    return len(given) if isinstance(given, list) else 1


def read_values(schema: type[Parameters], name: str, given: Any) -> tuple[Any, ...]:
    """What a parameter takes, exact numbers or words; a UsageError names the first that is wrong.

    >>> from separatrix.constructions.spike import Spike
    >>> read_values(Spike.schema, "n", "1e3:1e6:4:log")
    (1000, 10000, 100000, 1000000)
    """
    if name not in schema.model_fields:
        raise UsageError(schema.unknown(name))
    number = is_number(schema, name)
    if number and is_axis(given):
        span, count = read_counted(schema, name, given)
        return span.points(count)
    listed = given if isinstance(given, list) else [given]
    if not listed:
        raise UsageError(f"{name} = [] has no values; give at least one")
    odd = next((each for each in listed if not isinstance(each, str | int | Decimal)), None)
    if odd is not None:
        raise UsageError(f"{name} holds {odd!r}; give a value, a list of values, or a range start:stop:count")
    if not number:
        return tuple(each if isinstance(each, bool) else str(each) for each in listed)
    read = parse_integer if is_whole(schema, name) else parse_exact
    plain = (str(each) if isinstance(each, Decimal) else each for each in listed)
    return tuple(dict.fromkeys(read(each, name) for each in plain))


@dataclass(frozen=True)
class PlanPoints:
    """A grid over the parameters of one construction."""

    kind: type[Construction]
    grid: Grid
    n: np.ndarray[Any, Any] | None
    """Where n is a range, or was not given: for each point the admissible number of tokens nearest to it."""
    taken: Mapping[str, object] = field(default_factory=dict)
    """What was not given, and is that of the reference point."""

    def __iter__(self) -> Iterator[dict[str, str]]:
        names = [name for axis in self.grid.axes for name in axis]
        texts = [
            [str(printed(value)) for value in values] for axis in self.grid.axes for values in axis.values()
        ]
        base = {name: str(value) for name, value in self.grid.first(self.kind.schema).shown().items()}
        moved: Iterator[dict[str, str]] = repeat({})
        if self.n is not None:
            lengths = np.vectorize(str, otypes=[object])(self.n)
            moved = ({"n": n} for n in np.broadcast_to(lengths, self.grid.shape).flat)
        for chosen, n in zip(product(*texts), moved, strict=False):
            yield {**base, **dict(zip(names, chosen, strict=True)), **n}

    @property
    def first(self) -> Construction:
        """The construction at the first point."""
        return self.kind.read(next(iter(self)))

    def violations(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Which parameters do not go together, and why."""
        columns = self.grid.exact_columns(self.kind.schema)
        if self.n is not None:
            columns["n"] = self.n
        for constraint, message, share in violations(self.kind.schema, columns):
            some = f" (so at {share:.0%} of the points)" if self.grid.axes else ""
            yield constraint.names, message + some


def points_of(
    kind: type[Construction], given: Mapping[str, tuple[Any, ...]], move_n: bool = False
) -> Iterator[PlanPoints]:
    """One grid for each choice of what is not a number; `move_n` if the plan left it to us to choose n.

    What was not given is that of the reference point.
    """
    fixed_by_plan = {name: values[0] for name, values in given.items() if len(values) == 1}
    missing = reference_defaults(kind, fixed_by_plan, [name for name in given if name not in fixed_by_plan])
    values = {**given, **{name: read_values(kind.schema, name, each) for name, each in missing.items()}}
    words = [name for name in values if not is_number(kind.schema, name)]
    axes = tuple({name: taken} for name, taken in values.items() if len(taken) > 1 and name not in words)
    fixed = {name: taken[0] for name, taken in values.items() if len(taken) == 1}
    for chosen in product(*(values[name] for name in words)):
        grid = Grid({**fixed, **dict(zip(words, chosen, strict=True))}, axes)
        n = None
        if axes and (move_n or "n" in missing):
            every = [item for axis in axes for item in axis.items()]
            first = {**grid.fixed, **{name: taken[0] for name, taken in every}}
            n = nearest_lengths(kind, first, every, grid.exact_columns(kind.schema)["n"])
        yield PlanPoints(kind, grid, n, missing)
