"""Duplication: every token is repeated, and somebody should notice."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from separatrix.constructions._base import Label
from separatrix.constructions._exact import (
    ONE,
    Description,
    ExactConstruction,
    ExactParameters,
    Kind,
)
from separatrix.core.parameters import Constraint, Exact, Natural, between


class DuplicationParameters(ExactParameters):
    """How often every one of n tokens is repeated in D0 and in D1."""

    owner = "duplication"
    tau: Exact = Fraction(3, 2)
    r0: Natural = 1
    r1: Natural = 2
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *ExactParameters.constraints,
        between("r0", 1, 10**6),
        between("r1", 1, 10**6),
    )


class Duplication(ExactConstruction):
    """The same tokens r0 times (D0) or r1 times (D1)."""

    name = "duplication"
    title = "Every token is there once (D0) or twice (D1)."
    section = (6, 2)
    provenance = "[ours] docs/theory.md 6.2"
    description = (
        "n tokens of width 1, each r0 times in D0 and r1 times in D1, so that there are n r0 or n r1 of "
        "them. One has key 2/n and carries 2, the others have key 1/n and carry 1; the query is 1, logits "
        "are plain numbers. Weights that depend on proportions alone (softmax, and every normalised score "
        "of the logit; not logn-softmax, sparsemax or topk) give both labels the same row, so no reader "
        "tells them apart. Unnormalised linear attention is multiplied by r: about 1 and about 2, with "
        "tau=1.5 between them. Linear wins."
    )
    schema = DuplicationParameters
    example: ClassVar[dict[str, object]] = {"n": 100, "m": 12}
    parameters: DuplicationParameters
    logit_base = None

    def dense_width(self) -> int:
        return super().dense_width() * max(self.parameters.r0, self.parameters.r1)

    def describe(self, label: Label) -> Description:
        times = self.parameters.r1 if label else self.parameters.r0
        key, value = Fraction(1, self.n), ONE
        few = Kind((2 * key,), (2 * value,), times)
        return Description(((ONE,),), (few, Kind((key,), (value,), (self.n - 1) * times)))
