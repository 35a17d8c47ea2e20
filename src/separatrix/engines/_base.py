"""What every engine returns."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from separatrix.parameters import SeparatrixError


class EngineRefusal(SeparatrixError):
    """This engine does not apply here; the message says why and which one does."""


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
    """v1 - v0; from `certified` to full relative accuracy, else to that of float64 sums."""

    @property
    def q(self) -> Fraction | float:
        """P[one neuron fires on neither]."""
        return 1 - self.p0 - self.only
