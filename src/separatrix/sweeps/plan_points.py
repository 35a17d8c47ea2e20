"""The parameter points of a construction: the product of the values in a plan, made one by one."""

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
from separatrix.core.parameters.model import format_value
from separatrix.core.parameters.ranges import is_axis, read_counted


def count_values(value: Any) -> int:
    """Return the number of values in a plan's entry: one, a list, or a range; none of them is made.

    >>> count_values("1e3:1e9:7:log"), count_values([1, 2]), count_values("spike")
    (7, 2, 1)
    """
    if isinstance(value, str) and value.count(":") in (2, 3):
        with suppress(UsageError):
            return max(1, parse_integer(value.split(":")[2]))
    return len(value) if isinstance(value, list) else 1


def read_values(schema: type[Parameters], name: str, value: Any) -> tuple[Any, ...]:
    """Return the values of a parameter, exact numbers or words.

    >>> from separatrix.constructions.spike import Spike
    >>> read_values(Spike.schema, "n", "1e3:1e6:4:log")
    (1000, 10000, 100000, 1000000)
    """
    if name not in schema.model_fields:
        raise UsageError(schema.describe_unknown(name))
    has_numbers = is_number(schema, name)
    if has_numbers and is_axis(value):
        span, count = read_counted(schema, name, value)
        return span.points(count)
    items = value if isinstance(value, list) else [value]
    if not items:
        raise UsageError(f"{name} = [] has no values; give at least one")
    for item in items:
        if not isinstance(item, str | int | Decimal):
            raise UsageError(f"{name} holds {item!r}; give a value, a list of values, or a range start:stop:count")
    if not has_numbers:
        return tuple(dict.fromkeys(item if isinstance(item, bool) else str(item) for item in items))
    parse = parse_integer if is_whole(schema, name) else parse_exact
    plain = (str(item) if isinstance(item, Decimal) else item for item in items)
    return tuple(dict.fromkeys(parse(item, name) for item in plain))


@dataclass(frozen=True)
class PlanPoints:
    """A grid over the parameters of one construction."""

    kind: type[Construction]
    grid: Grid
    n: np.ndarray[Any, Any] | None
    """If n is a range, or is not in the plan: for each point the nearest admissible number of tokens."""
    reference_defaults: Mapping[str, object] = field(default_factory=dict)
    """The parameters that the plan leaves out, with the values of the reference point."""

    def __iter__(self) -> Iterator[dict[str, str]]:
        names = [name for axis in self.grid.axes for name in axis]
        texts = [[str(format_value(value)) for value in values] for axis in self.grid.axes for values in axis.values()]
        base = {name: str(value) for name, value in self.grid.first(self.kind.schema).as_json().items()}
        lengths: Iterator[dict[str, str]] = repeat({})
        if self.n is not None:
            length_texts = np.vectorize(str, otypes=[object])(self.n)
            lengths = ({"n": n} for n in np.broadcast_to(length_texts, self.grid.shape).flat)
        for values, n in zip(product(*texts), lengths, strict=False):
            yield {**base, **dict(zip(names, values, strict=True)), **n}

    @property
    def first(self) -> Construction:
        """The construction at the first point."""
        return self.kind.read(next(iter(self)))

    def find_violations(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the parameters that contradict each other, and the reason."""
        columns = self.grid.exact_columns(self.kind.schema)
        if self.n is not None:
            columns["n"] = self.n
        for constraint, message, share in violations(self.kind.schema, columns):
            yield (constraint.names, message + (f" (so at {share:.0%} of the points)" if self.grid.axes else ""))


def make_points(
    kind: type[Construction], values: Mapping[str, tuple[Any, ...]], move_n: bool = False
) -> Iterator[PlanPoints]:
    """Yield one grid for each choice of the words among the parameters.

    Parameters that are missing have the values of the reference point. With `move_n`, each n moves to the
    nearest admissible one.
    """
    single = {name: items[0] for name, items in values.items() if len(items) == 1}
    missing = reference_defaults(kind, single, [name for name in values if name not in single])
    all_values = {**values, **{name: read_values(kind.schema, name, value) for name, value in missing.items()}}
    words = [name for name in all_values if not is_number(kind.schema, name)]
    axes = tuple({name: items} for name, items in all_values.items() if len(items) > 1 and name not in words)
    constants = {name: items[0] for name, items in all_values.items() if len(items) == 1}
    for choice in product(*(all_values[name] for name in words)):
        grid = Grid({**constants, **dict(zip(words, choice, strict=True))}, axes)
        n = None
        if axes and (move_n or "n" in missing):
            moving = [item for axis in axes for item in axis.items()]
            first = {**grid.fixed, **{name: items[0] for name, items in moving}}
            n = nearest_lengths(kind, first, moving, grid.exact_columns(kind.schema)["n"])
        yield PlanPoints(kind, grid, n, missing)
