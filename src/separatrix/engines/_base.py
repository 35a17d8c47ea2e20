"""What every engine returns."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

import numpy as np

from separatrix.errors import EngineRefusal

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Outcome:
    """The probabilities over the reader's random signs, and how they are known."""

    engine: str
    evidence: str
    """In words: exact, or sampled with what interval."""
    p0: Fraction | float
    """P[one neuron fires on D0], any row."""
    p1: Fraction | float
    only: Fraction | float
    """P[one neuron fires on D1 and not on D0]; on neither it fires with probability 1 - p0 - only."""
    fire_d0: float
    """P[F(D0) > 0]."""
    fire_d1: float
    distinguish: float
    """P[F(D0) = 0 and F(D1) > 0]."""
    interval: tuple[float, float]
    """Contains `distinguish`; equal ends where it is exact."""
    v0: float
    """The largest pre-activation of D0 with all signs +, in units of sqrt(log n)."""
    v1: float
    margin: float
    """v1 - v0; from `certified` to full relative accuracy, else to that of float64 sums.

    0 where these show none."""
    error: float = 0.0
    """How far the ends of the interval may be off by rounding. Fractions, where there are any, are not."""

    @property
    def q(self) -> Fraction | float:
        """P[one neuron fires on neither]."""
        return 1 - self.p0 - self.only

    @property
    def bits(self) -> float:
        """The significant bits needed to tell the labels apart."""
        return significant_bits(self.v1, self.margin)


@overload
def significant_bits(v1: float, margin: float) -> float: ...
@overload
def significant_bits(v1: Array, margin: Array) -> Array: ...
def significant_bits(v1: Array | float, margin: Array | float) -> Array | float:
    """`log2(|v1| / |margin|)`; infinite where the labels are equal, NaN where either is not known.

    >>> significant_bits(8.0, -1.0), significant_bits(8.0, 0.0), significant_bits(8.0, float("nan"))
    (3.0, inf, nan)
    >>> significant_bits(np.array([8.0, 0.0]), np.array([-1.0, 0.0])).tolist()
    [3.0, inf]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(np.equal(margin, 0), np.inf, np.log2(np.abs(v1) / np.abs(margin)))
    return found if isinstance(margin, np.ndarray) else float(found)


__all__ = ["EngineRefusal", "Outcome", "significant_bits"]
