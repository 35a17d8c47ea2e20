"""Power attention: the kernel between linear and softmax."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np
from flint import arb, fmpq

from separatrix.core.numbers.logforms import Flint, LogForm, power, rational
from separatrix.core.parameters import exact
from separatrix.core.tensors import Float, Tensor
from separatrix.mechanisms._base import ScoreMechanism
from separatrix.mechanisms._types import Floats


class Power(ScoreMechanism):
    """`u = <q,k>^beta`, `f = u / <u,1>`; beta = 1 is linear [ours].

    Separates the spike only if beta is about log n / log(R/r) or more. A fractional beta needs positive
    logits.
    """

    name = "power"
    formula = "<q,k>^beta / sum <q,k>^beta"
    source = "[ours] docs/theory.md 3.10; polynomial attention as in PolySketchFormer, arXiv 2310.01655"
    homogeneous = True
    example: ClassVar[dict[str, object]] = {"beta": 4}
    beta: Fraction = exact(above=0, at_most=10**6)
    """The degree."""

    def score(self, logits: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        beta = self.beta
        return logits ** (beta.numerator if beta.denominator == 1 else float(beta))

    def log_ratio(self, base: Floats, step: Floats) -> Floats:
        # log1p keeps the digits of a small step, whose loss a large beta would magnify.
        ratio: Floats = float(self.beta) * np.log1p(step / base)
        return ratio

    def ratio(self, base: LogForm, step: LogForm) -> Flint:
        quotient, beta = (base + step).over(base), rational(self.beta)
        return power(quotient, beta) if isinstance(quotient, fmpq) else quotient ** arb(beta)
