"""Majority: nearly all tokens carry the same value, and one has a large logit."""

from __future__ import annotations

from fractions import Fraction

from separatrix.constructions._base import GROWING_SPIKE, Label, amplitude_or_zero
from separatrix.constructions._exact import ONE, ZERO, Description, ExactConstruction, TokenGroup, unit_vector
from separatrix.core.parameters import natural


class Majority(ExactConstruction):
    """All tokens but a loud one carry a0 (D0) or a1 (D1), with noise.

    n-1 tokens of logit 1 carry a0=0 in D0 and a1=1 in D1 in the first feature, and each carries noise
    besides, in the feature of its group (of `groups` nearly equal groups): the reader's random signs make it
    noise. One distractor has the logit 1+gap and carries nothing. Logits are in units of log n. Linear
    attention averages: the value comes through and the noise shrinks. Softmax gives the distractor
    1/(1+(n-1)n^(-gap)), nearly everything for gap above 1. Linear wins.
    """

    name = "majority"
    section = (6, 11)
    provenance = "[ours] docs/theory.md 6.11: averaging under noise"
    a0: Fraction = amplitude_or_zero(0)
    a1: Fraction = amplitude_or_zero(1)
    noise: Fraction = amplitude_or_zero("2/5")
    groups: int = natural(8, at_least=1, at_most=11)
    gap: Fraction = amplitude_or_zero(2)
    relations = (GROWING_SPIKE,)

    def describe(self, label: Label) -> Description:
        value = self.a1 if label else self.a0
        groups = [TokenGroup((1 + self.gap,), (ZERO,) * (self.groups + 1))]
        for group in range(self.groups):
            noise = unit_vector(group, self.groups, self.noise)
            count = (self.n - 1) // self.groups + (group < (self.n - 1) % self.groups)
            groups.append(TokenGroup((ONE,), (value, *noise), count))
        return Description(((ONE,),), tuple(groups))
