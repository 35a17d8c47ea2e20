"""Injectivity: the same query, and a multiple of it."""

from __future__ import annotations

from fractions import Fraction

from separatrix.constructions._base import Label, amplitude, amplitude_or_zero
from separatrix.constructions._exact import ONE, ZERO, Description, ExactConstruction, TokenGroup


class Injectivity(ExactConstruction):
    """The query is q (D0) or a multiple of it (D1); the tokens are the same.

    n tokens of width 1. One has key 1+gap and carries 1, the others have key 1 and carry 0; keys are in units
    of log n. The query is q=query in D0 and factor times that in D1. The reader sees the weight of the one
    token. A normalised mechanism whose score is positively homogeneous in the query gives both labels the
    same row, so no reader at all tells them apart; softmax gives 1/(1+(n-1)n^(-q gap)), which crosses 1/2
    near q gap = 1.
    """

    name = "injectivity"
    section = (6, 1)
    provenance = "[rec] docs/theory.md 6.1, after arXiv 2412.06590"
    query: Fraction = amplitude("3/4")
    factor: Fraction = amplitude(2)
    gap: Fraction = amplitude_or_zero(1)

    def describe(self, label: Label) -> Description:
        query = self.query * self.factor if label else self.query
        groups = (TokenGroup((1 + self.gap,), (ONE,)), TokenGroup((ONE,), (ZERO,), self.n - 1))
        return Description(((query,),), groups)
