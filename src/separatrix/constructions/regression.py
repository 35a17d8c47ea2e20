"""In-context linear regression: the answer lies outside the range of averages."""

from __future__ import annotations

from fractions import Fraction

from separatrix.constructions._base import GROWING_SPIKE, Label, amplitude_or_zero, reader_threshold
from separatrix.constructions._exact import ONE, Description, ExactConstruction, TokenGroup, unit_vector
from separatrix.core.parameters import Constraint, natural


class Regression(ExactConstruction):
    """Examples of a linear function of weights a0 (D0) or a1 (D1), queried outside their range.

    n examples (x, y = <w,x>): x runs over the axes of R^width, n/width examples each, and w has a0 in every
    coordinate in D0, a1 in D1. Keys are x times width/n (the step of gradient descent), values are y, the
    query is (1, ..., 1), logits are plain numbers. Unnormalised linear attention is one step of gradient
    descent from 0 and answers <w,x> = width a exactly. Every y is a, so attention with weights that are not
    negative and add up to 1 answers a, whatever they are: with tau above a1 it never fires. Linear wins, and
    so does the delta rule.
    """

    name = "regression"
    section = (6, 9)
    provenance = "[rec] docs/theory.md 6.9, after arXiv 2212.07677"
    tau: Fraction = reader_threshold(2)
    width: int = natural(4, at_least=1, at_most=256)
    a0: Fraction = amplitude_or_zero("1/10")
    a1: Fraction = amplitude_or_zero(1)
    relations = (
        GROWING_SPIKE,
        Constraint(
            ("n", "width"),
            lambda p: p.n % p.width == 0,
            lambda p: f"n={p.n} is not a multiple of width={p.width}; try n={-(-p.n // p.width) * p.width}",
        ),
    )
    logit_base = None
    step_name = "width"

    @property
    def step(self) -> int:
        return self.width

    def describe(self, label: Label) -> Description:
        value, rate = self.a1 if label else self.a0, Fraction(self.width, self.n)
        groups = (
            TokenGroup(unit_vector(axis, self.width, rate), (value,), self.n // self.width)
            for axis in range(self.width)
        )
        return Description(((ONE,) * self.width,), tuple(groups))
