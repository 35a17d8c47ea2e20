"""Critical scaling: how fast logits must grow for a token to find itself."""

from __future__ import annotations

from fractions import Fraction

from separatrix.constructions._base import GROWING_SPIKE, Label, amplitude, amplitude_or_zero
from separatrix.constructions._exact import ONE, ZERO, Description, ExactConstruction, TokenGroup
from separatrix.core.parameters import exact


class Critical(ExactConstruction):
    """A token looks for itself among n-1 others of inner product rho.

    A query has inner product 1 with its own token and rho with the n-1 others; logits are gamma log n times
    that. Its own token carries a0=0 in D0 and a1=1 in D1, the others carry 0. Only inner products matter, so
    keys have width 1. Softmax gives its own token f = 1/(1+(n-1)n^(-gamma(1-rho))): as n grows f tends to 1
    for gamma above gamma_c = 1/(1-rho), to 0 below, and to 1/2 at gamma_c.
    """

    name = "critical"
    section = (6, 6)
    provenance = "[rec] docs/theory.md 6.6, after arXiv 2510.05554"
    gamma: Fraction = amplitude(2)
    rho: Fraction = exact("1/4", at_least=0, at_most=1)
    a0: Fraction = amplitude_or_zero(0)
    a1: Fraction = amplitude_or_zero(1)
    relations = (GROWING_SPIKE,)

    def describe(self, label: Label) -> Description:
        target = TokenGroup((self.gamma,), (self.a1 if label else self.a0,))
        return Description(((ONE,),), (target, TokenGroup((self.gamma * self.rho,), (ZERO,), self.n - 1)))
