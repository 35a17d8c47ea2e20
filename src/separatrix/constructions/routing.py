"""Routing on a circle: the finest pattern that n keys can carry."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

from separatrix.constructions._base import Label
from separatrix.constructions._blocks import amplitude
from separatrix.constructions._exact import (
    HALF,
    ONE,
    Description,
    ExactConstruction,
    ExactParameters,
    Kind,
)
from separatrix.core.parameters import Constraint, Exact, between

LIFT = 1.25
"""Added to every cosine, so that all logits are positive."""


class RoutingParameters(ExactParameters):
    """n keys on a circle, the scale of the logits, the level b and the pattern a."""

    owner = "routing"
    tau: Exact = ONE
    scale: Exact = Fraction(15)
    a: Exact = ONE
    b: Exact = HALF
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *ExactParameters.constraints,
        between("n", 4, 4096),
        Constraint(("n",), lambda p: p.n % 2 == 0, lambda p: f"n={p.n} is odd; try n={p.n + 1}"),
        amplitude("scale"),
        amplitude("a"),
        between("b", 0, 10**6),
    )


class Routing(ExactConstruction):
    """n keys evenly on a circle; D1's values alternate between b+a and b-a."""

    name = "routing"
    title = "Values are level (D0) or alternate around a circle of keys (D1)."
    section = (6, 3)
    provenance = "[ours] docs/theory.md 6.3"
    description = (
        "n keys (n even) stand evenly on a circle: logits are scale (1.25 + cos(2 pi j/n)), in units of log "
        "n; the largest is the first. Every token carries b in D0; in D1 they carry b+a and b-a in turn. A "
        "kernel that is a polynomial of degree below n/2 in the logit (linear, power of a whole beta, "
        "taylor) holds no frequency n/2, so its weights cancel the pattern exactly: both labels give b. "
        "Softmax passes a times the ratio of the Bessel-like sums I_(n/2)/I_0 at the scale of the logits. "
        "The cosines are not rational: no certified engine."
    )
    schema = RoutingParameters
    example: ClassVar[dict[str, object]] = {"n": 8, "m": 12}
    parameters: RoutingParameters
    rational = False
    step = 2
    step_name = "2"

    def describe(self, label: Label) -> Description:
        p, scale = self.parameters, float(self.parameters.scale)
        pattern = p.a if label else Fraction(0)
        kinds = []
        for j in range(self.n):
            angle = 2 * math.pi * j / self.n
            key = (scale * LIFT, scale * math.cos(angle), scale * math.sin(angle))
            kinds.append(Kind(key, (p.b + (-1) ** j * pattern,)))
        return Description(((1.0, 1.0, 0.0),), tuple(kinds))
