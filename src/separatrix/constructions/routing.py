"""Routing on a circle: the finest pattern that n keys can carry."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

from separatrix.constructions._base import Label, amplitude, amplitude_or_zero, reader_threshold
from separatrix.constructions._exact import ZERO, Description, ExactConstruction, TokenGroup
from separatrix.core.parameters import Constraint, natural

LIFT = 1.25
"""Added to every cosine, so that all logits are positive."""


class Routing(ExactConstruction):
    """Values are level (D0) or alternate around a circle of keys (D1).

    n keys (n even) stand evenly on a circle: logits are scale (1.25 + cos(2 pi j/n)), in units of log n; the
    largest is the first. Every token carries b in D0; in D1 they carry b+a and b-a in turn. A kernel that is
    a polynomial of degree below n/2 in the logit (linear, power of a whole beta, taylor) holds no frequency
    n/2, so its weights cancel the pattern exactly: both labels give b. Softmax passes a times the ratio of
    the Bessel-like sums I_(n/2)/I_0 at the scale of the logits. The cosines are not rational: no certified
    engine.
    """

    name = "routing"
    section = (6, 3)
    provenance = "[ours] docs/theory.md 6.3"
    example: ClassVar[dict[str, object]] = {"n": 8, "m": 12}
    n: int = natural(at_least=4, at_most=4096)
    tau: Fraction = reader_threshold(1)
    scale: Fraction = amplitude(15)
    a: Fraction = amplitude(1)
    b: Fraction = amplitude_or_zero("1/2")
    relations = (Constraint(("n",), lambda p: p.n % 2 == 0, lambda p: f"n={p.n} is odd; try n={p.n + 1}"),)
    rational = False
    has_certificates = False
    step = 2
    step_name = "2"

    def describe(self, label: Label) -> Description:
        scale, pattern = float(self.scale), self.a if label else ZERO
        groups = []
        for j in range(self.n):
            angle = 2 * math.pi * j / self.n
            key = (scale * LIFT, scale * math.cos(angle), scale * math.sin(angle))
            groups.append(TokenGroup(key, (self.b + (-1) ** j * pattern,)))
        return Description(((1.0, 1.0, 0.0),), tuple(groups))
