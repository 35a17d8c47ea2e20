"""Grids of parameter points: fixed values, and axes that vary."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from types import SimpleNamespace
from typing import Any, get_args

from separatrix.core.errors import UsageError
from separatrix.core.lazy import np
from separatrix.core.numbers.exact import parse_exact, parse_integer
from separatrix.core.parameters.model import Constraint, Parameters, is_absent

GridAxis = Mapping[str, Sequence[Any]]
"""One axis: one or more named columns of equal length that vary together."""


@dataclass(frozen=True)
class Grid:
    """The product of `axes`, with every other parameter fixed.

    >>> grid = Grid({"n": 100}, ({"a1": ["0.5", "1"]}, {"b": ["0.1", "0.2", "0.3"]}))
    >>> grid.shape, grid.size
    ((2, 3), 6)
    """

    fixed: Mapping[str, object]
    axes: tuple[GridAxis, ...] = ()

    def __post_init__(self) -> None:
        for axis in self.axes:
            columns = list(axis.values()) if isinstance(axis, Mapping) else []
            lengths = {len(column) for column in columns if isinstance(column, Sized) and not isinstance(column, str)}
            if len(columns) == 0 or len(lengths) != 1 or 0 in lengths:
                raise UsageError(f"{axis!r} is not an axis; an axis is a dictionary of names and lists of equal length")

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return tuple(len(next(iter(axis.values()))) for axis in self.axes)

    @property
    def size(self) -> int:
        """The number of points."""
        return math.prod(self.shape)

    def at(self, model: type[Parameters], index: tuple[int, ...]) -> Parameters:
        """Return the validated point at `index`."""
        varied_values = {name: axis[name][i] for axis, i in zip(self.axes, index, strict=True) for name in axis}
        return model.read({**self.fixed, **varied_values})

    def first(self, model: type[Parameters]) -> Parameters:
        """Return the first point, parsed without checking constraints between parameters."""
        first_values = {name: values[0] for axis in self.axes for name, values in axis.items()}
        return model.read_each({**self.fixed, **first_values})

    def columns(self, model: type[Parameters]) -> dict[str, np.ndarray[Any, Any]]:
        """Return exact values as object arrays that broadcast to `shape`; all points are validated."""
        columns = self.exact_columns(model)
        for _, message, _ in violations(model, columns):
            raise UsageError(message)
        return {
            name: column if isinstance(column, np.ndarray) else _array(column)
            for name, column in model.derive(columns).items()
        }

    def exact_columns(self, model: type[Parameters]) -> dict[str, np.ndarray[Any, Any]]:
        """Like `columns`, without checking constraints and without derived parameters."""
        names = [*self.fixed, *(name for axis in self.axes for name in axis)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UsageError(f"{twice} is given twice, as an axis or fixed; keep one")
        first = self.first(model)
        columns = {name: _array(getattr(first, name)) for name in model.model_fields}
        for position, axis in enumerate(self.axes):
            shape = tuple(-1 if i == position else 1 for i in range(len(self.axes)))
            for name, values in axis.items():
                column = np.empty(len(values), dtype=object)
                column[:] = _read_all(model, name, values)
                columns[name] = column.reshape(shape)
        return columns


def violations(
    model: type[Parameters], columns: Mapping[str, np.ndarray[Any, Any]]
) -> Iterator[tuple[Constraint, str, float]]:
    """Yield violated constraints with a message for the first point and the share of such points."""
    for constraint in model.constraints:
        values = {name: columns[name] for name in constraint.names}
        if any(is_absent(value) for value in values.values()):
            continue
        good = np.asarray(constraint.holds(SimpleNamespace(**values)), dtype=bool)
        if not good.all():
            arrays = dict(zip(values, np.broadcast_arrays(*values.values()), strict=True))
            bad = np.argwhere(~np.broadcast_to(good, next(iter(arrays.values())).shape))[0]
            point = {name: array[tuple(bad)] for name, array in arrays.items()}
            yield constraint, constraint.message(SimpleNamespace(**point)), 1 - float(good.mean())


def _array(value: object) -> np.ndarray[Any, Any]:
    array = np.empty((), dtype=object)
    array[()] = value
    return array


def _read_all(model: type[Parameters], name: str, values: Sequence[Any]) -> list[int | Fraction]:
    """Parse the numbers of an axis as the model parses that field; exact numbers are not parsed again."""
    if name not in model.model_fields:
        raise UsageError(model.describe_unknown(name))
    if is_whole(model, name):
        return [value if type(value) is int else parse_integer(value, name) for value in values]
    return [value if type(value) is Fraction else parse_exact(value, name) for value in values]


@cache
def is_number(model: type[Parameters], name: str) -> bool:
    """Whether a parameter is a number."""
    return not {Fraction, int}.isdisjoint(_kinds(model.model_fields[name].annotation))


def is_whole(model: type[Parameters], name: str) -> bool:
    """Whether a parameter is an integer; a UsageError if it is not a number at all."""
    if not is_number(model, name):
        raise UsageError(f"{name} is not a number, so it cannot be an axis; make a grid for each {name}")
    return Fraction not in _kinds(model.model_fields[name].annotation)


def _kinds(annotation: Any) -> set[Any]:
    """Return the plain types in an annotation such as `Exact | None`."""
    parts = get_args(annotation)
    return {kind for part in parts for kind in _kinds(part)} if parts else {annotation}
