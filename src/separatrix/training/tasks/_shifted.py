"""Tasks in which one of n Gaussian tokens is shifted far enough to stand out."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from separatrix.core.parameters import exact, natural
from separatrix.training.tasks._base import Task
from separatrix.training.tasks._proofs import LINEAR_KERNEL_MODELS

ANGLES = NORMS = 500
"""Nodes of the integral over directions, and norms at which it is computed; others are interpolated."""


class ShiftedTokenTask(Task):
    """n tokens of dz normal numbers, one of which is shifted by A = strength sqrt(2 ln n)."""

    n: int = natural(64, at_least=4, at_most=4096)
    dz: int = natural(4, at_least=1, at_most=1024)
    strength: Fraction = exact("1.5", at_least=Fraction(1, 1000), at_most=1000)
    example: ClassVar[dict[str, object]] = {"n": 16}
    outputs = 2
    proved_for = LINEAR_KERNEL_MODELS

    @property
    def shift(self) -> float:
        """A. The largest of n normal numbers is about sqrt(2 ln n)."""
        return float(self.strength) * math.sqrt(2 * math.log(self.n))


def log_norm_ratio(vectors: NDArray[Any], shift: float) -> NDArray[np.float64]:
    """Return the log likelihood ratio of a token of this norm being shifted, plus shift²/2.

    It is log E exp(shift <u, z>) over uniform directions u, for vectors z of shape (…, dz): all evidence for
    a shift in an unknown direction.
    """
    from scipy.special import logsumexp

    # einsum accumulates in float64 without a float64 copy of the vectors.
    square = np.einsum("...d,...d->...", vectors, vectors, dtype=np.float64)
    k, dz = shift * np.sqrt(square), vectors.shape[-1]
    if dz == 1:
        return np.asarray(np.logaddexp(k, -k) - math.log(2))
    angles = (np.arange(ANGLES) + 0.5) * math.pi / ANGLES
    density = (dz - 2) * np.log(np.sin(angles))  # of the angle between u and z, up to a constant
    grid = np.linspace(0, k.max(), NORMS)
    values = logsumexp(density + grid[:, None] * np.cos(angles), axis=1) - logsumexp(density)
    return np.asarray(np.interp(k, grid, values))
