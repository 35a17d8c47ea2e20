"""Duplication: every token is repeated, which should be noticed."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from separatrix.constructions._base import Label, reader_threshold
from separatrix.constructions._exact import ONE, Description, ExactConstruction, TokenGroup
from separatrix.core.parameters import natural


class Duplication(ExactConstruction):
    """Every token is there once (D0) or twice (D1).

    n tokens of width 1, each r0 times in D0 and r1 times in D1, so that there are n r0 or n r1 of them. One
    has key 2/n and carries 2, the others have key 1/n and carry 1; the query is 1, logits are plain numbers.
    Weights that depend on proportions alone (softmax, and every normalised score of the logit; not
    logn-softmax, sparsemax or topk) give both labels the same row, so no reader tells them apart.
    Unnormalised linear attention is multiplied by r: about 1 and about 2, with tau=1.5 between them. Linear
    wins.
    """

    name = "duplication"
    section = (6, 2)
    provenance = "[ours] docs/theory.md 6.2"
    example: ClassVar[dict[str, object]] = {"n": 100, "m": 12}
    tau: Fraction = reader_threshold("3/2")
    r0: int = natural(1, at_least=1, at_most=10**6)
    r1: int = natural(2, at_least=1, at_most=10**6)
    logit_base = None

    def dense_width(self) -> int:
        # Memory is estimated as n times this width, but a label has n r0 or n r1 tokens.
        return super().dense_width() * max(self.r0, self.r1)

    def describe(self, label: Label) -> Description:
        times, key = self.r1 if label else self.r0, Fraction(1, self.n)
        double = TokenGroup((2 * key,), (2 * ONE,), times)
        return Description(((ONE,),), (double, TokenGroup((key,), (ONE,), (self.n - 1) * times)))
