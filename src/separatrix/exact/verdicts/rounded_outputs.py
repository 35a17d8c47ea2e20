"""Outputs as a number format keeps them: rounded once to the nearest, ties to even, subnormals and all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from separatrix.constructions import Label
from separatrix.core.documents import Document
from separatrix.core.numbers.formats import SIGNIFICANT_BITS, last_place, rounded
from separatrix.exact.outputs._base import Array, Ends, Outputs

Bounds = tuple[Array, Array]
LABELS: tuple[Label, Label] = (0, 1)


@dataclass(frozen=True)
class Stored(Document):
    """Both labels in one format."""

    same: bool | None
    """Whether every number of every row is the same in D0 and in D1; None where rounding is not certain."""
    ulps: float | None
    """The largest difference of two numbers, in units of the last place of the larger."""
    same_probe: bool | None
    """Whether the reading by which margins are measured is the same number, if it alone is kept."""


def stored(outputs: Outputs) -> dict[str, Stored]:
    """For each format: are the labels still apart once their outputs are kept in it?"""
    return {name: stored_in(outputs, name) for name in SIGNIFICANT_BITS}


def stored_in(outputs: Outputs, name: str) -> Stored:
    """The same for one format, as `bf16`."""
    if outputs.same:
        return Stored(True, 0.0, True)
    rows = [_kept(outputs, label, name) for label in LABELS]
    if len(rows[0][0]) != len(rows[1][0]):  # every row of D1 against the nearest of D0
        nearest = np.abs(rows[1][0][:, None] - rows[0][0][None]).max(-1).argmin(1)
        rows[0] = rows[0][0][nearest], rows[0][1][nearest]
    same, ulps = _difference(rows[0], rows[1], name)
    if same and outputs.counts[0] != outputs.counts[1]:
        same = None
    return Stored(same, ulps, same_number(outputs.probe(0), outputs.probe(1), name))


def same_number(one: Ends, other: Ends, name: str) -> bool | None:
    """Whether two numbers are one and the same in a format; None where rounding is not certain.

    >>> from fractions import Fraction
    >>> third = Fraction(1, 3), Fraction(1, 3)
    >>> near = Fraction(1, 3) + Fraction(1, 1000), Fraction(1, 3) + Fraction(1, 1000)
    >>> [same_number(third, near, name) for name in ("bf16", "fp16")]
    [True, False]
    """
    nearest = name == "fp64"
    kept = []
    for low, high in ([np.array(float(end)) for end in each] for each in (one, other)):
        out = (low, high) if nearest else (np.nextafter(low, -np.inf), np.nextafter(high, np.inf))
        kept.append(_in_format(out, name))
    return _difference(kept[0], kept[1], name)[0]


def _kept(outputs: Outputs, label: Label, name: str) -> Bounds:
    """Both ends of every number, in the format."""
    return _in_format(outputs.entries(label, name == "fp64"), name)


def _in_format(bounds: Bounds, name: str) -> Bounds:
    low, high = bounds
    return bounds if name == "fp64" else (rounded(low, name), rounded(high, name))


def _difference(one: Bounds, other: Bounds, name: str) -> tuple[bool | None, float | None]:
    """Whether all numbers are the same (None: not certain), and the largest difference that is certain."""
    sure = (one[0] == one[1]) & (other[0] == other[1])
    apart = sure & (one[0] != other[0])
    if not apart.any():
        return (True, 0.0) if sure.all() else (None, None)
    with np.errstate(invalid="ignore"):
        steps = np.abs(other[0] - one[0]) / last_place(np.maximum(np.abs(one[0]), np.abs(other[0])), name)
    largest = float(steps[apart].max())
    return False, largest if np.isfinite(largest) else None
