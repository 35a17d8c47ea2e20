"""Taylor attention: softmax with the exponential cut off."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from flint import arb, fmpq

from separatrix.core.numbers.logforms import Flint, LogForm
from separatrix.core.parameters import Constraint, Natural, Parameters
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms._base import Floats, ScoreMechanism

LARGE = 300.0
"""Sums of powers of larger logits may overflow; they are scaled down."""


class TaylorParameters(Parameters):
    """The degree of the last term kept."""

    owner = "taylor"
    order: Natural
    constraints: ClassVar[tuple[Constraint, ...]] = (
        Constraint(
            ("order",),
            lambda p: 1 <= p.order <= 1000,
            lambda p: f"order={p.order} is out of range; order must be between 1 and 1000",
        ),
    )


class Taylor(ScoreMechanism):
    """`u = sum of <q,k>^i / i! for i = 0..order`, `f = u / <u,1>` [ours].

    Any fixed order goes blind on the spike as n grows. For odd orders a negative logit may give a
    negative weight.
    """

    name = "taylor"
    formula = "T(<q,k>) / sum T(<q,k>), T(z) = sum_{i<=order} z^i/i!"
    source = "[ours] docs/theory.md 3.10; order 2 as in Based, arXiv 2402.18668"
    schema = TaylorParameters
    example: ClassVar[dict[str, object]] = {"order": 2}
    parameters: TaylorParameters

    def _horner(self, logit: Any, one: Any) -> Any:
        """The sum, from the inside out: 1 + z(1 + z/2(1 + z/3(...)))."""
        total = one
        for i in range(self.parameters.order, 0, -1):
            total = one + total * logit / i
        return total

    def score(self, logits: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        score: Tensor = self._horner(logits, torch.ones_like(logits))
        return score

    @property
    def roundings(self) -> float:
        """Three for each term of two sums of positive numbers."""
        return 8.0 + 6.0 * self.parameters.order

    def log_ratio(self, base: Floats, step: Floats) -> Floats:
        # (T(x+s) - T(x)) / s is a sum of divided differences, all of one sign: nothing cancels.
        divided, term = np.zeros_like(base + step), np.ones_like(base)
        difference, lower = divided, term
        logit = np.maximum(base, base + step)
        large = bool(np.any(logit > LARGE))
        for i in range(1, self.parameters.order + 1):
            if large:  # only the quotient matters: all are made smaller as the next term grows
                smaller = np.minimum(1.0, i / np.maximum(logit, 1.0))
                divided, term, difference, lower = (
                    smaller * each for each in (divided, term, difference, lower)
                )
            divided = (divided * (base + step) + term) / i
            term = term * base / i
            difference, lower = difference + divided, lower + term
        left = lower > 1e-200
        ratio: Floats = np.log1p(step * difference / np.where(left, lower, 1.0))
        if not np.all(left):  # beside T(x+s) hardly anything is left of T(x)
            ratio = np.where(left, ratio, self._log_score(base + step) - self._log_score(base))
        return ratio

    def _log_score(self, logit: Floats) -> Floats:
        """log T of positive logits, whatever their size."""
        term, logarithm = np.ones_like(logit), np.zeros_like(logit)
        total = term
        for i in range(1, self.parameters.order + 1):
            larger = np.maximum(1.0, logit / i)
            term, total = term * (logit / i / larger), total / larger
            total, logarithm = total + term, logarithm + np.log(larger)
        found: Floats = logarithm + np.log(total)
        return found

    def ratio(self, base: LogForm, step: LogForm) -> Flint:
        if step.is_zero():
            return fmpq(1)
        quotient: Flint = self._horner((base + step).ball(), arb(1)) / self._horner(base.ball(), arb(1))
        return quotient
