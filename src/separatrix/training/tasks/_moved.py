"""What tasks share in which one token among n is moved so far that it is hard to miss."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from separatrix.core.parameters import Constraint, Exact, Natural, Parameters, between

if TYPE_CHECKING:
    from numpy.typing import NDArray

ANGLES = NORMS = 500
"""Nodes of the integral over directions, and norms at which it is computed; others are interpolated."""


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


def log_ratio_of_norm(vectors: NDArray[Any], shift: float) -> NDArray[np.float64]:
    """The logarithm of how much more likely a token of this norm is if it is moved by `shift`, plus shift²/2.

    It is log E exp(shift <u, z>) over uniform directions u, for vectors z of shape (…, dz): everything that
    can be known of whether a token is moved without knowing the direction.
    """
    from scipy.special import logsumexp

    square = np.einsum("...d,...d->...", vectors, vectors, dtype=np.float64)  # without a copy in float64
    k, dz = shift * np.sqrt(square), vectors.shape[-1]
    found: NDArray[np.float64]
    if dz == 1:
        found = np.logaddexp(k, -k) - math.log(2)
        return found
    angles = (np.arange(ANGLES) + 0.5) * math.pi / ANGLES
    density = (dz - 2) * np.log(np.sin(angles))  # of the angle between u and z, up to a constant
    grid = np.linspace(0, k.max(), NORMS)
    values = np.array([logsumexp(density + at * np.cos(angles)) for at in grid]) - logsumexp(density)
    found = np.interp(k, grid, values)
    return found
