"""Outputs rounded to a number format: to nearest, ties to even, with subnormals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from separatrix.constructions import Label
from separatrix.core.documents import Document
from separatrix.core.numbers.formats import SIGNIFICANT_BITS, last_place, round_to_format
from separatrix.exact.outputs._base import Array, Ends, Outputs

Bounds = tuple[Array, Array]
LABELS: tuple[Label, Label] = (0, 1)


@dataclass(frozen=True)
class StoredOutputs(Document):
    """The outputs of both labels in one number format."""

    same: bool | None
    """Whether every value of every row is equal in D0 and D1; None if rounding is not certain."""
    ulps: float | None
    """The largest difference of two values, in units in the last place of the larger one."""
    same_probe: bool | None
    """Whether the reading that defines the margin is the same number in this format."""


def store_outputs(outputs: Outputs) -> dict[str, StoredOutputs]:
    """Compare the outputs of both labels in every number format."""
    return {name: store_in_format(outputs, name) for name in SIGNIFICANT_BITS}


def store_in_format(outputs: Outputs, name: str) -> StoredOutputs:
    """Compare the outputs of both labels in one format, such as `bf16`."""
    if outputs.has_equal_rows:
        return StoredOutputs(True, 0.0, True)
    rows = [_in_format(outputs.entries(label, name == "fp64"), name) for label in LABELS]
    if len(rows[0][0]) != len(rows[1][0]):  # every row of D1 against the nearest of D0
        nearest = np.abs(rows[1][0][:, None] - rows[0][0][None]).max(-1).argmin(1)
        rows[0] = rows[0][0][nearest], rows[0][1][nearest]
    is_same, ulps = _difference(rows[0], rows[1], name)
    # Equal values in different numbers of rows: neither equal outputs nor a certain difference.
    if is_same and outputs.counts[0] != outputs.counts[1]:
        is_same = None
    return StoredOutputs(is_same, ulps, same_number(outputs.probe(0), outputs.probe(1), name))


def same_number(first: Ends, second: Ends, name: str) -> bool | None:
    """Whether two numbers are equal in a format; None if rounding is not certain.

    >>> from fractions import Fraction
    >>> third = Fraction(1, 3), Fraction(1, 3)
    >>> near = Fraction(1, 3) + Fraction(1, 1000), Fraction(1, 3) + Fraction(1, 1000)
    >>> [same_number(third, near, name) for name in ("bf16", "fp16")]
    [True, False]
    """
    nearest = name == "fp64"
    rounded_ends = []
    for low, high in ([np.array(float(end)) for end in number] for number in (first, second)):
        out = (low, high) if nearest else (np.nextafter(low, -np.inf), np.nextafter(high, np.inf))
        rounded_ends.append(_in_format(out, name))
    return _difference(rounded_ends[0], rounded_ends[1], name)[0]


def _in_format(bounds: Bounds, name: str) -> Bounds:
    """Return both bounds of every value, rounded to the format."""
    low, high = bounds
    return bounds if name == "fp64" else (round_to_format(low, name), round_to_format(high, name))


def _difference(first: Bounds, second: Bounds, name: str) -> tuple[bool | None, float | None]:
    """Return whether all values are equal (None if not certain), and the largest certain difference."""
    # A value is certain if both of its bounds round to the same number.
    sure = (first[0] == first[1]) & (second[0] == second[1])
    differs = sure & (first[0] != second[0])
    if not differs.any():
        return (True, 0.0) if sure.all() else (None, None)
    with np.errstate(invalid="ignore"):
        steps = np.abs(second[0] - first[0]) / last_place(np.maximum(np.abs(first[0]), np.abs(second[0])), name)
    largest = float(steps[differs].max())
    return False, largest if np.isfinite(largest) else None
