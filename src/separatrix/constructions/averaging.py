"""q-sparse averaging: the mean of the q values that are queried."""

from __future__ import annotations

from fractions import Fraction

from separatrix.constructions._base import Label, amplitude_or_zero
from separatrix.constructions._exact import ONE, ZERO, Description, ExactConstruction, TokenGroup
from separatrix.core.parameters import Constraint, natural


class Averaging(ExactConstruction):
    """The mean of the q queried values is 0 (D0) or 1 (D1).

    q of n tokens are queried: their logits are 1+gap, those of the others 1, in units of log n. In D1 the
    queried tokens carry 1 and the others 0; in D0 q of the others carry 1 and all other tokens 0, so that the
    mean over all tokens is the same. The answer is the mean over the queried tokens: 0 or 1. Softmax gives it
    up to n^(-gap) n/q. How keys and queries get such inner products (width about q log n) is the paper's
    subject; here only the logits matter, and the width is 1.
    """

    name = "averaging"
    section = (6, 7)
    provenance = "[rec] docs/theory.md 6.7, after arXiv 2306.02896"
    q: int = natural(8, at_least=1, at_most=10**300)
    gap: Fraction = amplitude_or_zero(2)
    relations = (
        Constraint(
            ("n", "q"),
            lambda p: p.n >= 2 * p.q,
            lambda p: f"n={p.n} is too small for q={p.q}; n must be 2q={2 * p.q} or more",
        ),
    )

    def describe(self, label: Label) -> Description:
        other_ones = 0 if label else self.q
        queried = TokenGroup((1 + self.gap,), (ONE if label else ZERO,), self.q)
        others = (TokenGroup((ONE,), (ONE,), other_ones), TokenGroup((ONE,), (ZERO,), self.n - self.q - other_ones))
        return Description(((ONE,),), (queried, *others))
