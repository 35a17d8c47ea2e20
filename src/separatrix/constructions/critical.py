"""Critical scaling: how fast logits must grow for a token to find itself."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from separatrix.constructions._base import Label
from separatrix.constructions._blocks import GROWING_SPIKE, amplitude
from separatrix.constructions._exact import (
    ONE,
    ZERO,
    Description,
    ExactConstruction,
    ExactParameters,
    Kind,
)
from separatrix.core.parameters import Constraint, Exact, between


class CriticalParameters(ExactParameters):
    """The logit scale gamma, the inner product rho, and what the token itself carries."""

    owner = "critical"
    gamma: Exact = Fraction(2)
    rho: Exact = Fraction(1, 4)
    a0: Exact = ZERO
    a1: Exact = ONE
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *ExactParameters.constraints,
        amplitude("gamma"),
        between("rho", 0, 1),
        between("a0", 0, 10**6),
        between("a1", 0, 10**6),
        GROWING_SPIKE,
    )


class Critical(ExactConstruction):
    """A token among n-1 others, all inner products rho, at the logit scale gamma log n."""

    name = "critical"
    title = "A token looks for itself among n-1 others of inner product rho."
    section = (6, 6)
    provenance = "[rec] docs/theory.md 6.6, after arXiv 2510.05554"
    description = (
        "A query has inner product 1 with its own token and rho with the n-1 others; logits are gamma log "
        "n times that. Its own token carries a0=0 in D0 and a1=1 in D1, the others carry 0. Only inner "
        "products matter, so keys have width 1. Softmax gives its own token f = "
        "1/(1+(n-1)n^(-gamma(1-rho))): as n grows f tends to 1 for gamma above gamma_c = 1/(1-rho), to 0 "
        "below, and to 1/2 at gamma_c."
    )
    schema = CriticalParameters
    example: ClassVar[dict[str, object]] = {"n": 1000, "m": 12}
    parameters: CriticalParameters

    def describe(self, label: Label) -> Description:
        p = self.parameters
        own = Kind((p.gamma,), (p.a1 if label else p.a0,))
        return Description(((ONE,),), (own, Kind((p.gamma * p.rho,), (ZERO,), self.n - 1)))
