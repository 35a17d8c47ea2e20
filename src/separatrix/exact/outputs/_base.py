"""What attention returns for the two labels, in whatever arithmetic it is known."""

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
"""A number lies between these two."""


@dataclass(frozen=True)
class Feature:
    """Features that hold equal numbers in every row: the first, counted from 1, and how many follow on it."""

    first: int
    copies: int = 1

    @property
    def spelled(self) -> str:
        """`7`, or `3-101`."""
        return str(self.first) if self.copies == 1 else f"{self.first}-{self.first + self.copies - 1}"


class Outputs(ABC):
    """The distinct rows of D0 and D1, in units of the margin; the k-th row of both is the same query."""

    proves: ClassVar[bool]
    """Whether bounds are rigorous, and not an allowance for rounding."""
    features: tuple[Feature, ...]
    evidence: str
    """The arithmetic, in words."""
    counts: tuple[int, int]
    """How many rows each label has."""
    probe_weights: tuple[Fraction, ...]
    """The weights by which margins are measured: all signs +, or those of one token."""
    unit: Ends
    """The unit of the margin, in the units of the tokens."""

    @property
    @abstractmethod
    def same(self) -> bool:
        """Whether both labels provably have equal rows, each as often in one as in the other."""

    @property
    @abstractmethod
    def differ(self) -> bool:
        """Whether some number surely differs between the labels."""

    @property
    @abstractmethod
    def offsets(self) -> tuple[Array, Array]:
        """Every row of D0 and of D1 less the first of D0, in float64, distances as between the rows.

        A feature that stands for many is multiplied by the root of their number.
        """

    @property
    @abstractmethod
    def differences(self) -> Array:
        """Rows of D1 less those of D0, one by one, as precisely as they are known; empty if not as many."""

    @abstractmethod
    def reading(self, label: Label, weights: Sequence[Fraction]) -> Ends:
        """The largest `<w, row>` over the rows, for a weight of each feature (every copy has it)."""

    @abstractmethod
    def entries(self, label: Label, nearest: bool) -> tuple[Array, Array]:
        """Every number of every row in the units of the tokens, from below and from above, as float64.

        With `nearest` both ends are rounded to the nearest float64 instead of outwards.
        """

    def probe(self, label: Label) -> Ends:
        """The reading by which margins are measured, in the units of the tokens."""
        read = self.reading(label, self.probe_weights)
        products = [x * unit for x in read for unit in self.unit]
        return min(products), max(products)

    def length(self, weights: Sequence[Fraction]) -> float:
        """The Euclidean length of w, copies counted."""
        squares = (each.copies * w * w for each, w in zip(self.features, weights, strict=True))
        return math.sqrt(sum(squares, Fraction(0)))

    def gap(self, weights: Sequence[Fraction]) -> Ends:
        """How much larger the reading of D1 is than that of D0, between two numbers."""
        (low0, high0), (low1, high1) = (self.reading(label, weights) for label in (0, 1))
        return low1 - high0, high1 - low0
