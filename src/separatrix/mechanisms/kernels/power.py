"""Power attention: the kernel between linear and softmax."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np
from flint import arb, fmpq

from separatrix.core.numbers import format_exact
from separatrix.core.numbers.logforms import Flint, LogForm, power, rational
from separatrix.core.parameters import Constraint, Exact, Parameters
from separatrix.core.tensors import Float, Tensor
from separatrix.mechanisms._base import Floats, ScoreMechanism


class PowerParameters(Parameters):
    """The degree."""

    owner = "power"
    beta: Exact
    constraints: ClassVar[tuple[Constraint, ...]] = (
        Constraint(
            ("beta",),
            lambda p: 0 < p.beta <= 10**6,
            lambda p: f"beta={format_exact(p.beta)} is out of range; beta must be above 0, up to 1000000",
        ),
    )


class Power(ScoreMechanism):
    """`u = <q,k>^beta`, `f = u / <u,1>`; beta = 1 is linear [ours].

    Separates the spike only if beta is about log n / log(R/r) or more. A beta that is not whole
    needs positive logits.
    """

    name = "power"
    formula = "<q,k>^beta / sum <q,k>^beta"
    source = "[ours] docs/theory.md 3.10; polynomial attention as in PolySketchFormer, arXiv 2310.01655"
    schema = PowerParameters
    example: ClassVar[dict[str, object]] = {"beta": 4}
    parameters: PowerParameters

    def score(self, logits: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        beta = self.parameters.beta
        return logits ** (beta.numerator if beta.denominator == 1 else float(beta))

    def log_ratio(self, base: Floats, step: Floats) -> Floats:
        ratio: Floats = float(self.parameters.beta) * np.log1p(step / base)
        return ratio

    def ratio(self, base: LogForm, step: LogForm) -> Flint:
        beta: Fraction = self.parameters.beta
        quotient = (base + step).over(base)
        return (
            power(quotient, rational(beta)) if isinstance(quotient, fmpq) else quotient ** arb(rational(beta))
        )
