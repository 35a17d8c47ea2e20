"""Admissible numbers of tokens: the multiple of a construction's step nearest to a requested n."""

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
    """Return the parameters with n moved to the nearest multiple of the construction's step.

    Other faults in the parameters are left for the construction to report.

    >>> from separatrix.constructions.spike import Spike
    >>> admissible(Spike, {"n": 1060, "d": 102, "m": 1, "a0": 0, "a1": 1, "b": 1, "c": 1})["n"]
    1100
    """
    step = step_of(kind, values)
    if step is None or step < 2:
        return dict(values)
    return {**values, "n": nearest_multiple(parse_integer(values["n"], "n"), step)}


def nearest_multiple(n: int, step: int) -> int:
    """Return the multiple of `step` nearest to n, with 3 tokens or more unless n itself is a multiple.

    >>> nearest_multiple(1060, 100), nearest_multiple(1, 100), nearest_multiple(300, 100)
    (1100, 100, 300)
    """
    if n <= 0 or n % step == 0:
        return n
    return max(-(-3 // step), (2 * n + step) // (2 * step)) * step


def nearest_lengths(
    kind: type[Construction], first: Mapping[str, object], axes: Sequence[tuple[str, Sequence[Any]]], lengths: Array
) -> Array | None:
    """Return the admissible n nearest to `lengths` at every point of a product of axes.

    `first` is the first point. The result broadcasts to the product, as `lengths` does, and extends along
    those axes only on which the step depends. It is None if the step is unknown at some point.
    """
    names = [name for name, _ in axes]
    first = _read_numbers(kind.schema, first)

    def step_at(point: Mapping[str, object]) -> int | None:
        changes = {name: value for name, value in point.items() if name in kind.schema.model_fields}
        return step_of(kind, {**first, **changes})

    sizes = [
        len(values) if name != "n" and len({step_at({name: value}) for value in values}) > 1 else 1
        for name, values in axes
    ]
    points = product(*(values[:size] for size, (_, values) in zip(sizes, axes, strict=True)))
    flat_steps = [step_at(dict(zip(names, point, strict=True))) for point in points]
    if any(step is None or step < 1 for step in flat_steps):
        return None
    # Python integers, since n may exceed 64 bits.
    steps = np.array(flat_steps, dtype=object).reshape(sizes)
    nearest = np.frompyfunc(nearest_multiple, 2, 1)(lengths, steps)
    return np.asarray(nearest, dtype=object).reshape(np.broadcast_shapes(lengths.shape, steps.shape))


def step_of(kind: type[Construction], values: Mapping[str, object]) -> int | None:
    """Return the number that n must be a multiple of; None if these parameters do not determine it."""
    fields = kind.schema.model_fields
    required_names = {name for name, field in fields.items() if field.is_required()}
    if "n" not in values or not required_names <= values.keys() <= fields.keys():
        return None
    # Not validated, because n may be inadmissible here: callers need the step to correct it.
    return kind(kind.schema.model_construct(None, **_read_numbers(kind.schema, values))).step


def _read_numbers(schema: type[Parameters], values: Mapping[str, object]) -> dict[str, Any]:
    """Return the values with those of number parameters as exact numbers; exact ones are not read again."""
    numbers = dict(values)
    for name, value in values.items():
        is_read = type(value) in (int, Fraction) or name not in schema.model_fields
        if not is_read and is_number(schema, name):
            numbers[name] = parse_integer(value, name) if is_whole(schema, name) else parse_exact(value, name)
    return numbers
