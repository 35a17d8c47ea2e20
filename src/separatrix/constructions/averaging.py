"""q-sparse averaging: the mean of the q values that are asked for."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from separatrix.constructions._base import Label
from separatrix.constructions._exact import (
    ONE,
    ZERO,
    Description,
    ExactConstruction,
    ExactParameters,
    Kind,
    present,
)
from separatrix.core.parameters import Constraint, Exact, Natural, between


class AveragingParameters(ExactParameters):
    """How many keys are asked for, and how far their logits are above the rest."""

    owner = "averaging"
    q: Natural = 8
    gap: Exact = Fraction(2)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *ExactParameters.constraints,
        between("q", 1, 10**300),
        between("gap", 0, 10**6),
        Constraint(
            ("n", "q"),
            lambda p: p.n >= 2 * p.q,
            lambda p: f"n={p.n} is too small for q={p.q}; n must be 2q={2 * p.q} or more",
        ),
    )


class Averaging(ExactConstruction):
    """The q asked tokens carry 1 in D1; in D0 it is q others that do."""

    name = "averaging"
    title = "The mean of the q asked values is 0 (D0) or 1 (D1)."
    section = (6, 7)
    provenance = "[rec] docs/theory.md 6.7, after arXiv 2306.02896"
    description = (
        "q of n tokens are asked for: their logits are 1+gap, those of the others 1, in units of log n. "
        "In D1 the asked tokens carry 1 and the others 0; in D0 q of the others carry 1 and the rest 0, "
        "so that the mean over all tokens is the same. What is wanted is the mean over the asked ones: 0 "
        "or 1. Softmax gives it up to n^(-gap) n/q. How keys and queries get such inner products (width "
        "about q log n) is the paper's subject; here only the logits matter, and the width is 1."
    )
    schema = AveragingParameters
    example: ClassVar[dict[str, object]] = {"n": 1000, "m": 12}
    parameters: AveragingParameters

    def describe(self, label: Label) -> Description:
        q, n, key = self.parameters.q, self.n, 1 + self.parameters.gap
        if label:
            kinds = present((Kind((key,), (ONE,), q), Kind((ONE,), (ZERO,), n - q)))
        else:
            others = (Kind((ONE,), (ONE,), q), Kind((ONE,), (ZERO,), n - 2 * q))
            kinds = present((Kind((key,), (ZERO,), q), *others))
        return Description(((ONE,),), kinds)
