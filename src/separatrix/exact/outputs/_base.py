"""The interface of attention outputs, independent of the arithmetic they are computed in."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from separatrix.constructions import Label

Array = np.ndarray[Any, Any]
Ends = tuple[Fraction, Fraction]
"""Lower and upper bounds of a number."""


@dataclass(frozen=True)
class Feature:
    """A run of features with equal values in every row: the first, counted from 1, and their number."""

    first: int
    copies: int = 1

    @property
    def text(self) -> str:
        """The features as text: `7`, or `3-101`."""
        return str(self.first) if self.copies == 1 else f"{self.first}-{self.first + self.copies - 1}"


@dataclass(frozen=True)
class RowDifference:
    """The squared distance of D0 and D1 in rows with equal differences, in squared units of the margin."""

    rows: int
    """The number of these rows."""
    square: Fraction
    """Its nearest number where it is a ball."""


class Outputs(ABC):
    """The distinct output rows of D0 and D1, in units of the margin; row k of both is the same query."""

    proves: ClassVar[bool]
    """Whether the bounds are rigorous rather than an allowance for rounding."""
    features: tuple[Feature, ...]
    evidence: str
    """A description of the arithmetic."""
    counts: tuple[int, int]
    """The number of rows of each label."""
    probe_weights: tuple[Fraction, ...]
    """The weights that define the margin: all signs +, or the signs of one token."""
    unit: Ends
    """The unit of the margin, in the units of the tokens."""

    @property
    @abstractmethod
    def has_equal_rows(self) -> bool:
        """Whether both labels provably have equal rows with equal multiplicities."""

    @property
    @abstractmethod
    def differ(self) -> bool:
        """Whether at least one value certainly differs between the labels."""

    @property
    @abstractmethod
    def offsets(self) -> tuple[Array, Array]:
        """Rows of D0 and of D1 minus the first row of D0, in float64.

        A feature with several copies is multiplied by the square root of their number, so that distances
        equal those of the full rows.
        """

    @property
    @abstractmethod
    def differences(self) -> Array:
        """Rows of D1 minus rows of D0, as precisely as they are known; empty if their numbers differ."""

    @property
    @abstractmethod
    def row_differences(self) -> tuple[RowDifference, ...]:
        """The differences of D1's rows from D0's rows for the same queries; empty if their numbers differ."""

    @abstractmethod
    def reading(self, label: Label, weights: Sequence[Fraction]) -> Ends:
        """Return bounds of the largest <w, row> over the rows; all copies of a feature share its weight."""

    @abstractmethod
    def entries(self, label: Label, nearest: bool) -> tuple[Array, Array]:
        """Return lower and upper bounds of every value in the units of the tokens, as float64.

        With `nearest` both are rounded to the nearest float64 instead of outwards.
        """

    def probe(self, label: Label) -> Ends:
        """Return bounds of the reading that defines the margin, in the units of the tokens."""
        read = self.reading(label, self.probe_weights)
        products = [x * unit for x in read for unit in self.unit]
        return min(products), max(products)

    def length(self, weights: Sequence[Fraction]) -> float:
        """Return the Euclidean length of w, with all copies of each feature."""
        squares = (feature.copies * w * w for feature, w in zip(self.features, weights, strict=True))
        return math.sqrt(sum(squares, Fraction(0)))

    def gap(self, weights: Sequence[Fraction]) -> Ends:
        """Return bounds of the reading of D1 minus the reading of D0."""
        (low0, high0), (low1, high1) = (self.reading(label, weights) for label in (0, 1))
        return low1 - high0, high1 - low0
