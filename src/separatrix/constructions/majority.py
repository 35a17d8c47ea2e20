"""Majority: nearly all tokens say the same, and one shouts."""

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
    present,
    unit_vector,
)
from separatrix.core.parameters import Constraint, Exact, Natural, between


class MajorityParameters(ExactParameters):
    """What the many carry, their noise, and how loud the distractor is."""

    owner = "majority"
    a0: Exact = ZERO
    a1: Exact = ONE
    noise: Exact = Fraction(2, 5)
    groups: Natural = 8
    gap: Exact = Fraction(2)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *ExactParameters.constraints,
        between("a0", 0, 10**6),
        between("a1", 0, 10**6),
        between("noise", 0, 10**6),
        between("groups", 1, 11),
        between("gap", 0, 10**6),
        GROWING_SPIKE,
    )


class Majority(ExactConstruction):
    """n-1 noisy tokens carry a0 or a1; one token of a large logit carries nothing."""

    name = "majority"
    title = "All tokens but a loud one carry a0 (D0) or a1 (D1), with noise."
    section = (6, 11)
    provenance = "[ours] docs/theory.md 6.11: averaging under noise"
    description = (
        "n-1 tokens of logit 1 carry a0=0 in D0 and a1=1 in D1 in the first feature, and each carries "
        "noise besides, in the feature of its group (of `groups` nearly equal groups): the reader's "
        "random signs make it noise. One distractor has the logit 1+gap and carries nothing. Logits are "
        "in units of log n. Linear attention averages: the value comes through and the noise shrinks. "
        "Softmax gives the distractor 1/(1+(n-1)n^(-gap)), nearly everything for gap above 1. Linear "
        "wins."
    )
    schema = MajorityParameters
    example: ClassVar[dict[str, object]] = {"n": 1000, "m": 12}
    parameters: MajorityParameters

    def describe(self, label: Label) -> Description:
        p = self.parameters
        value = p.a1 if label else p.a0
        kinds = [Kind((1 + p.gap,), (ZERO,) * (p.groups + 1))]
        for group in range(p.groups):
            noise = tuple(p.noise if x else ZERO for x in unit_vector(group, p.groups))
            count = (self.n - 1) // p.groups + (group < (self.n - 1) % p.groups)
            kinds.append(Kind((ONE,), (value, *noise), count))
        return Description(((ONE,),), present(kinds))
