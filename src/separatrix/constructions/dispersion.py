"""Dispersion: with bounded logits, attention thins out as tokens are added."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from separatrix.constructions._base import Label
from separatrix.constructions._blocks import GROWING_SPIKE
from separatrix.constructions._exact import (
    ONE,
    ZERO,
    Description,
    ExactConstruction,
    ExactParameters,
    Kind,
)
from separatrix.core.parameters import Constraint, Exact, between


class DispersionParameters(ExactParameters):
    """How far one logit is above the others, and what its token carries."""

    owner = "dispersion"
    gap: Exact = Fraction(3)
    a0: Exact = ZERO
    a1: Exact = ONE
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *ExactParameters.constraints,
        between("gap", 0, 10**4),
        between("a0", 0, 10**6),
        between("a1", 0, 10**6),
        GROWING_SPIKE,
    )


class Dispersion(ExactConstruction):
    """One key is `gap` above the rest, at a scale that does not grow with n."""

    name = "dispersion"
    title = "The token of the largest logit carries a0 (D0) or a1 (D1); logits stay bounded."
    section = (6, 5)
    provenance = "[rec] docs/theory.md 6.5, after arXiv 2410.01104"
    description = (
        "n tokens of width 1 and a query 1. One has the logit 1+gap and carries a0=0 in D0, a1=1 in D1; the "
        "others have the logit 1 and carry 0. Logits are plain numbers and do not grow with n, so softmax "
        "gives the one token exp(gap)/(exp(gap)+n-1): it reads it at small n and is blind at large n, as "
        "linear attention is. A temperature that falls like 1/log n (logn-softmax) repairs it for a gap "
        "above 1, leaving out all but the largest logit (hardmax, topk:k=1) for any."
    )
    schema = DispersionParameters
    example: ClassVar[dict[str, object]] = {"n": 1000, "m": 12}
    parameters: DispersionParameters
    logit_base = None

    def describe(self, label: Label) -> Description:
        p = self.parameters
        top = Kind((1 + p.gap,), (p.a1 if label else p.a0,))
        return Description(((ONE,),), (top, Kind((ONE,), (ZERO,), self.n - 1)))
