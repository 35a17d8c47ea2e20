"""In-context linear regression: the answer lies outside what any average can give."""

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
    unit_vector,
)
from separatrix.core.parameters import Constraint, Exact, Natural, between


class RegressionParameters(ExactParameters):
    """n examples in so many directions, and the weight of each direction."""

    owner = "regression"
    tau: Exact = Fraction(2)
    width: Natural = 4
    a0: Exact = Fraction(1, 10)
    a1: Exact = ONE
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *ExactParameters.constraints,
        between("width", 1, 256),
        between("a0", 0, 10**6),
        between("a1", 0, 10**6),
        GROWING_SPIKE,
        Constraint(
            ("n", "width"),
            lambda p: p.n % p.width == 0,
            lambda p: f"n={p.n} is not a multiple of width={p.width}; try n={-(-p.n // p.width) * p.width}",
        ),
    )


class Regression(ExactConstruction):
    """Examples (x, <w,x>) along the axes; the query is the sum of the axes."""

    name = "regression"
    title = "Examples of a linear function of weights a0 (D0) or a1 (D1), asked outside their range."
    section = (6, 9)
    provenance = "[rec] docs/theory.md 6.9, after arXiv 2212.07677"
    description = (
        "n examples (x, y = <w,x>): x runs over the axes of R^width, n/width examples each, and w has a0 "
        "in every coordinate in D0, a1 in D1. Keys are x times width/n (the step of gradient descent), "
        "values are y, the query is (1, ..., 1), logits are plain numbers. Unnormalised linear attention "
        "is one step of gradient descent from 0 and answers <w,x> = width a exactly. Every y is a, so "
        "attention with weights that are not negative and add up to 1 answers a, whatever they are: with "
        "tau above a1 it never fires. Linear wins, and so does the delta rule."
    )
    schema = RegressionParameters
    example: ClassVar[dict[str, object]] = {"n": 1000, "m": 12}
    parameters: RegressionParameters
    logit_base = None
    step_name = "width"

    @property
    def step(self) -> int:
        return self.parameters.width

    def describe(self, label: Label) -> Description:
        p = self.parameters
        value, rate = p.a1 if label else p.a0, Fraction(p.width, self.n)
        kinds = (
            Kind(tuple(rate if x else ZERO for x in unit_vector(i, p.width)), (value,), self.n // p.width)
            for i in range(p.width)
        )
        return Description(((ONE,) * p.width,), tuple(kinds))
