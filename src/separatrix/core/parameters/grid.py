"""Many parameter points at once: fixed values, and axes that span a grid."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, get_args

from separatrix.core.errors import UsageError
from separatrix.core.numbers.exact import parse_exact, parse_integer
from separatrix.core.parameters.model import Constraint, Parameters, is_absent

if TYPE_CHECKING:
    import numpy as np

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
            lengths = {
                len(column) for column in columns if isinstance(column, Sized) and not isinstance(column, str)
            }
            if len(columns) == 0 or len(lengths) != 1 or 0 in lengths:
                raise UsageError(
                    f"{axis!r} is no axis; an axis is a dictionary of names and equally long lists of values"
                )

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return tuple(len(next(iter(axis.values()))) for axis in self.axes)

    @property
    def size(self) -> int:
        """The number of points."""
        return math.prod(self.shape)

    def at(self, model: type[Parameters], index: tuple[int, ...]) -> Parameters:
        """The point at `index`, validated."""
        chosen = {name: axis[name][i] for axis, i in zip(self.axes, index, strict=True) for name in axis}
        return model.read({**self.fixed, **chosen})

    def first(self, model: type[Parameters]) -> Parameters:
        """The first point, each of its parameters read; what must hold between them is not looked at."""
        chosen = {name: values[0] for axis in self.axes for name, values in axis.items()}
        return model.read_each({**self.fixed, **chosen})

    def columns(self, model: type[Parameters]) -> dict[str, np.ndarray[Any, Any]]:
        """Exact values as object arrays that broadcast to `shape`; all points are checked."""
        import numpy as np

        columns = self.exact_columns(model)
        for _, message, _ in violations(model, columns):
            raise UsageError(message)
        return {
            name: column if isinstance(column, np.ndarray) else _array(column)
            for name, column in model.derive(columns).items()
        }

    def exact_columns(self, model: type[Parameters]) -> dict[str, np.ndarray[Any, Any]]:
        """As `columns`, but for what must hold between parameters, and what follows from them."""
        import numpy as np

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
    """What does not hold: the constraint, a message for its first point, and the share of such points."""
    import numpy as np

    for constraint in model.constraints:
        used = {name: columns[name] for name in constraint.names}
        if any(is_absent(value) for value in used.values()):
            continue
        good = np.asarray(constraint.holds(SimpleNamespace(**used)), dtype=bool)
        if not good.all():
            arrays = dict(zip(used, np.broadcast_arrays(*used.values()), strict=True))
            bad = np.argwhere(~np.broadcast_to(good, next(iter(arrays.values())).shape))[0]
            point = {name: array[tuple(bad)] for name, array in arrays.items()}
            yield constraint, constraint.message(SimpleNamespace(**point)), 1 - float(good.mean())


def _array(value: object) -> np.ndarray[Any, Any]:
    import numpy as np

    array = np.empty((), dtype=object)
    array[()] = value
    return array


def _read_all(model: type[Parameters], name: str, values: Sequence[Any]) -> list[int | Fraction]:
    """The numbers of an axis, read as the model reads that field; what is exact already is not read again."""
    if name not in model.model_fields:
        raise UsageError(model.unknown(name))
    if is_whole(model, name):
        return [value if type(value) is int else parse_integer(value, name) for value in values]
    return [value if type(value) is Fraction else parse_exact(value, name) for value in values]


@cache
def is_number(model: type[Parameters], name: str) -> bool:
    """Whether a parameter takes numbers."""
    return not {Fraction, int}.isdisjoint(_kinds(model.model_fields[name].annotation))


def is_whole(model: type[Parameters], name: str) -> bool:
    """Whether a parameter takes whole numbers only; a UsageError if it takes no numbers at all."""
    if not is_number(model, name):
        raise UsageError(f"{name} is not a number, so it cannot be an axis; make a grid for each {name}")
    return Fraction not in _kinds(model.model_fields[name].annotation)


def _kinds(annotation: Any) -> set[Any]:
    """The plain types in an annotation such as `Exact | None`."""
    parts = get_args(annotation)
    return {kind for part in parts for kind in _kinds(part)} if parts else {annotation}
