"""The numbers of tokens a construction admits: the one nearest to what was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from separatrix.constructions._base import Construction
from separatrix.core.numbers import parse_exact, parse_integer
from separatrix.core.parameters import Parameters
from separatrix.core.parameters.grid import is_number, is_whole

Array = np.ndarray[Any, Any]


def admissible(kind: type[Construction], values: Mapping[str, object]) -> dict[str, object]:
    """The parameters with n moved to the nearest multiple of the construction's step.

    Everything else that is wrong with them is left for the construction to complain of.

    >>> from separatrix.constructions.spike import Spike
    >>> admissible(Spike, {"n": 1060, "d": 102, "m": 1, "a0": 0, "a1": 1, "b": 1, "c": 1})["n"]
    1100
    """
    given, step = dict(values), step_of(kind, values)
    if step is not None and step > 1:
        given["n"] = nearest_multiple(parse_integer(given["n"], "n"), step)
    return given


def nearest_multiple(n: int, step: int) -> int:
    """The multiple of `step` nearest to n, and no fewer than 3 tokens unless n itself is one.

    >>> nearest_multiple(1060, 100), nearest_multiple(1, 100), nearest_multiple(300, 100)
    (1100, 100, 300)
    """
    if n <= 0 or n % step == 0:
        return n
    return max(-(-3 // step), (2 * n + step) // (2 * step)) * step


def nearest_lengths(
    kind: type[Construction],
    first: Mapping[str, object],
    axes: Sequence[tuple[str, Sequence[Any]]],
    wanted: Array,
) -> Array | None:
    """The admissible n nearest to `wanted` at every point of a product of axes; None where no step is known.

    `first` is the first point. What is returned broadcasts to the product, as `wanted` does, and extends
    along those axes alone that the step depends on.
    """
    names = [name for name, _ in axes]
    first = _read_all(kind.schema, first)

    def step_at(point: Mapping[str, object]) -> int | None:
        known = {name: value for name, value in point.items() if name in kind.schema.model_fields}
        return step_of(kind, {**first, **known})

    sizes = [
        len(values) if name != "n" and len({step_at({name: value}) for value in values}) > 1 else 1
        for name, values in axes
    ]
    points = product(*(values[:size] for size, (_, values) in zip(sizes, axes, strict=True)))
    found = [step_at(dict(zip(names, point, strict=True))) for point in points]
    if any(step is None or step < 1 for step in found):
        return None
    steps = np.array(found, dtype=object).reshape(sizes)
    moved = np.frompyfunc(nearest_multiple, 2, 1)(wanted, steps)
    return np.asarray(moved, dtype=object).reshape(np.broadcast_shapes(wanted.shape, steps.shape))


def step_of(kind: type[Construction], values: Mapping[str, object]) -> int | None:
    """What n must be a multiple of at these parameters; None where they do not say."""
    schema = kind.schema
    fields = schema.model_fields
    needed = {name for name, field in fields.items() if field.is_required()}
    if "n" not in values or not needed <= values.keys() <= fields.keys():
        return None
    return kind(schema.model_construct(None, **_read_all(schema, values))).step


def _read_all(schema: type[Parameters], values: Mapping[str, object]) -> dict[str, Any]:
    """The values that are of this schema as exact numbers; what is exact already is not read again."""
    known = schema.model_fields
    return {name: _read(schema, name, value) if name in known else value for name, value in values.items()}


def _read(schema: type[Parameters], name: str, value: object) -> object:
    if type(value) in (int, Fraction) or not is_number(schema, name):
        return value
    return parse_integer(value, name) if is_whole(schema, name) else parse_exact(value, name)
