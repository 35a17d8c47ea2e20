"""The parameter points of one construction: the product of what its parameters take, made as it is needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from separatrix.constructions import Construction
from separatrix.constructions.lengths import nearest_lengths
from separatrix.parameters import UsageError
from separatrix.parameters.grid import violations
from separatrix.sweeps.values import Values, spelled

Array = np.ndarray[Any, Any]
Complain = Callable[[tuple[str, ...], str], None]
"""Hears which parameters do not go together, and why."""


def refuse(_: tuple[str, ...], message: str) -> None:
    """Complain by raising."""
    raise UsageError(message)


@dataclass(frozen=True)
class Points:
    """A grid over the parameters of one construction."""

    kind: type[Construction]
    base: Mapping[str, str]
    """Every parameter of the first point as it is spelled."""
    axes: tuple[Values, ...]
    """Those that take more than one value."""
    n: Array | None
    """Where n is a range: for each point the admissible number of tokens nearest to it."""

    @property
    def count(self) -> int:
        """The number of points."""
        return math.prod(len(axis.values) for axis in self.axes)

    def __iter__(self) -> Iterator[dict[str, str]]:
        names = [axis.name for axis in self.axes]
        texts = [[spelled(value) for value in axis.values] for axis in self.axes]
        if self.n is None:
            for chosen in product(*texts):
                yield {**self.base, **dict(zip(names, chosen, strict=True))}
            return
        lengths = np.vectorize(spelled, otypes=[object])(self.n)
        for place in np.ndindex(*(len(axis.values) for axis in self.axes)):
            chosen = tuple(column[i] for column, i in zip(texts, place, strict=True))
            n = lengths[tuple(i if size > 1 else 0 for i, size in zip(place, lengths.shape, strict=True))]
            yield {**self.base, **dict(zip(names, chosen, strict=True)), "n": n}

    @property
    def first(self) -> Construction:
        """The construction at the first point."""
        return self.kind.read(next(iter(self)))


def points_of(
    kind: type[Construction], given: Sequence[Values], complain: Complain = refuse
) -> Iterator[Points]:
    """One grid for each choice of what is not a number; `complain` hears of points that cannot be."""
    words = [each for each in given if not each.numeric]
    numbers = [each for each in given if each.numeric]
    for chosen in product(*(each.values for each in words)):
        fixed = dict(zip((each.name for each in words), chosen, strict=True))
        yield _grid(kind, fixed, numbers, complain)


def _grid(
    kind: type[Construction], fixed: Mapping[str, Any], numbers: Sequence[Values], complain: Complain
) -> Points:
    first = {**fixed, **{each.name: each.values[0] for each in numbers}}
    parameters = kind.schema.read_each(first)
    axes = tuple(each for each in numbers if len(each.values) > 1)
    columns = {name: _array([getattr(parameters, name)]).reshape(()) for name in kind.schema.model_fields}
    for place, axis in enumerate(axes):
        columns[axis.name] = _along(axis.values, place, len(axes))
    spaced = any(axis.name == "n" and axis.spaced for axis in axes)
    every = [(axis.name, axis.values) for axis in axes]
    n = nearest_lengths(kind, first, every, columns["n"]) if spaced else None
    if n is not None:
        columns["n"] = n
    for constraint, message, share in violations(kind.schema, columns):
        complain(constraint.names, f"{message} (so at {share:.0%} of the points)" if axes else message)
    base = {name: str(value) for name, value in parameters.shown().items()}
    if n is not None:
        base["n"] = spelled(n.flat[0])
    return Points(kind, base, axes, n if any(axis.name == "n" for axis in axes) else None)


def _along(values: Sequence[Any], place: int, axes: int) -> Array:
    return _array(values).reshape(tuple(-1 if i == place else 1 for i in range(axes)))


def _array(values: Sequence[Any]) -> Array:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
