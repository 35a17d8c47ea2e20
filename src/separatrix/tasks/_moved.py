"""What tasks share in which one token among n is moved so far that it is hard to miss."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

from separatrix.parameters import Constraint, Exact, Natural, Parameters, between


class MovedParameters(Parameters):
    """How many tokens there are, how wide they are, and how far one of them is moved."""

    n: Natural = 64
    dz: Natural = 4
    strength: Exact = Fraction(3, 2)
    """The token is moved by A = strength sqrt(2 ln n)."""
    constraints: ClassVar[tuple[Constraint, ...]] = (
        between("n", 4, 4096),
        between("dz", 1, 1024),
        between("strength", Fraction(1, 1000), 1000),
    )

    @property
    def shift(self) -> float:
        """A: the largest of n normal numbers is about sqrt(2 ln n)."""
        return float(self.strength) * math.sqrt(2 * math.log(self.n))
