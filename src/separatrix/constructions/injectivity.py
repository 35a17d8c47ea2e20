"""Injectivity: the same question, asked twice as loudly."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from separatrix.constructions._base import Label
from separatrix.constructions._blocks import amplitude
from separatrix.constructions._exact import (
    ONE,
    ZERO,
    Description,
    ExactConstruction,
    ExactParameters,
    Kind,
)
from separatrix.core.parameters import Constraint, Exact, between


class InjectivityParameters(ExactParameters):
    """The query of D0, what D1 multiplies it by, and how far the asked key is above the rest."""

    owner = "injectivity"
    query: Exact = Fraction(3, 4)
    factor: Exact = Fraction(2)
    gap: Exact = ONE
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *ExactParameters.constraints,
        amplitude("query"),
        between("factor", Fraction(1, 10**6), 10**6),
        between("gap", 0, 10**6),
    )


class Injectivity(ExactConstruction):
    """D0 asks with q, D1 with `factor` q; the tokens are the same."""

    name = "injectivity"
    title = "The query is q (D0) or a multiple of it (D1); the tokens are the same."
    section = (6, 1)
    provenance = "[rec] docs/theory.md 6.1, after arXiv 2412.06590"
    description = (
        "n tokens of width 1. One has key 1+gap and carries 1, the others have key 1 and carry 0; keys are "
        "in units of log n. D0 asks with q=query, D1 with factor times that. What is read is the weight of "
        "the one token. A normalised mechanism whose score is positively homogeneous in the query gives "
        "both labels the same row, so no reader at all tells them apart; softmax gives 1/(1+(n-1)n^(-q "
        "gap)), which crosses 1/2 near q gap = 1."
    )
    schema = InjectivityParameters
    example: ClassVar[dict[str, object]] = {"n": 1000, "m": 12}
    parameters: InjectivityParameters

    def describe(self, label: Label) -> Description:
        p = self.parameters
        query = p.query * p.factor if label else p.query
        return Description(((query,),), (Kind((1 + p.gap,), (ONE,)), Kind((ONE,), (ZERO,), self.n - 1)))
