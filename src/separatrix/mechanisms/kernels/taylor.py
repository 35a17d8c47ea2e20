"""Taylor attention: softmax with the exponential series cut off."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from flint import arb, fmpq

from separatrix.core.numbers.logforms import Flint, LogForm
from separatrix.core.parameters import natural
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms._base import ScoreMechanism
from separatrix.mechanisms._types import Floats

MAX_UNSCALED_LOGIT = 300.0
"""Sums of powers of larger logits may overflow; they are scaled down."""
MIN_SUM = 1e-200
"""Below this, T(x) is too small relative to T(x+s) to divide by."""


class Taylor(ScoreMechanism):
    """`u = sum of <q,k>^i / i! for i = 0..order`, `f = u / <u,1>` [ours].

    Any fixed order goes blind on the spike as n grows. For odd orders a negative logit may give a negative
    weight.
    """

    name = "taylor"
    formula = "T(<q,k>) / sum T(<q,k>), T(z) = sum_{i<=order} z^i/i!"
    source = "[ours] docs/theory.md 3.10; order 2 as in Based, arXiv 2402.18668"
    example: ClassVar[dict[str, object]] = {"order": 2}
    order: int = natural(at_least=1, at_most=1000)
    """The degree of the last term."""

    def _horner(self, logit: Any, unit: Any) -> Any:
        """Evaluate the sum from the inside out: 1 + z(1 + z/2(1 + z/3(...))), 1 the `unit` of its type."""
        total = unit
        for i in range(self.order, 0, -1):
            total = unit + total * logit / i
        return total

    def score(self, logits: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        score: Tensor = self._horner(logits, torch.ones_like(logits))
        return score

    @property
    def polynomial_degree(self) -> int:
        return self.order

    @property
    def roundings(self) -> float:
        """Three for each term of two sums of positive numbers."""
        return 8.0 + 6.0 * self.order

    def log_ratio(self, base: Floats, step: Floats) -> Floats:
        # (T(x+s) - T(x)) / s is a sum of divided differences, all of one sign: nothing cancels.
        divided_difference, term = np.zeros_like(base + step), np.ones_like(base)
        difference, total = divided_difference, term
        logit = np.maximum(base, base + step)
        is_large = bool(np.any(logit > MAX_UNSCALED_LOGIT))
        for i in range(1, self.order + 1):
            if is_large:  # Only the quotient matters: all are scaled down as the next term grows.
                scale = np.minimum(1.0, i / np.maximum(logit, 1.0))
                divided_difference, term = scale * divided_difference, scale * term
                difference, total = scale * difference, scale * total
            divided_difference = (divided_difference * (base + step) + term) / i
            term = term * base / i
            difference, total = difference + divided_difference, total + term
        divisible = total > MIN_SUM
        # log1p keeps the digits of a small step, which a difference of two logarithms would lose.
        ratio: Floats = np.log1p(step * difference / np.where(divisible, total, 1.0))
        if not np.all(divisible):
            ratio = np.where(divisible, ratio, self._log_score(base + step) - self._log_score(base))
        return ratio

    def _log_score(self, logit: Floats) -> Floats:
        """Return log T of positive logits of any size."""
        term, logarithm = np.ones_like(logit), np.zeros_like(logit)
        total = term
        for i in range(1, self.order + 1):
            larger = np.maximum(1.0, logit / i)
            term, total = term * (logit / i / larger), total / larger
            total, logarithm = total + term, logarithm + np.log(larger)
        log_score: Floats = logarithm + np.log(total)
        return log_score

    def ratio(self, base: LogForm, step: LogForm) -> Flint:
        if step.is_zero():
            return fmpq(1)
        quotient: Flint = self._horner((base + step).ball(), arb(1)) / self._horner(base.ball(), arb(1))
        return quotient
