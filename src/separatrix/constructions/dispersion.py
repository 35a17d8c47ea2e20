"""Dispersion: with bounded logits, attention thins out as tokens are added."""

from __future__ import annotations

from fractions import Fraction

from separatrix.constructions._base import GROWING_SPIKE, Label, amplitude_or_zero
from separatrix.constructions._exact import ONE, ZERO, Description, ExactConstruction, TokenGroup
from separatrix.core.parameters import exact


class Dispersion(ExactConstruction):
    """The token of the largest logit carries a0 (D0) or a1 (D1); logits stay bounded.

    n tokens of width 1 and a query 1. One has the logit 1+gap and carries a0=0 in D0, a1=1 in D1; the others
    have the logit 1 and carry 0. Logits are plain numbers and do not grow with n, so softmax gives the one
    token exp(gap)/(exp(gap)+n-1): it reads it at small n and is blind at large n, as linear attention is. A
    temperature that falls like 1/log n (logn-softmax) repairs it for a gap above 1, leaving out all but the
    largest logit (hardmax, topk:k=1) for any.
    """

    name = "dispersion"
    section = (6, 5)
    provenance = "[rec] docs/theory.md 6.5, after arXiv 2410.01104"
    gap: Fraction = exact(3, at_least=0, at_most=10**4)
    a0: Fraction = amplitude_or_zero(0)
    a1: Fraction = amplitude_or_zero(1)
    relations = (GROWING_SPIKE,)
    logit_base = None

    def describe(self, label: Label) -> Description:
        top = TokenGroup((1 + self.gap,), (self.a1 if label else self.a0,))
        return Description(((ONE,),), (top, TokenGroup((ONE,), (ZERO,), self.n - 1)))
