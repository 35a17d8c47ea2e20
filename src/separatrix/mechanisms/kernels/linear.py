"""Linear attention, normalised: the paper's."""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.mechanisms._base import (
    Attended,
    Counts,
    Floats,
    Keys,
    Queries,
    ScoreMechanism,
    Values,
    divided,
    form,
)
from separatrix.numbers.logforms import Flint, LogForm
from separatrix.tensors import Float, Tensor


class Linear(ScoreMechanism):
    """`u = <q,k>`, `f = u / <u,1>` [paper].

    Weights may be negative, and a row whose scores sum to zero has no answer (it divides by zero):
    on the constructions here all logits are positive.
    """

    name = "linear"
    formula = "<q,k> / sum <q,k>"
    source = "[paper] arXiv 2310.11685"

    def score(self, logits: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return logits

    def log_ratio(self, base: Floats, step: Floats) -> Floats:
        ratio: Floats = np.log1p(step / base)
        return ratio

    def ratio(self, base: LogForm, step: LogForm) -> Flint:
        return (base + step).over(base)

    @form
    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        """`q (kᵀ v) / q (kᵀ 1)`: linear in the tokens. Causal rows go through the streamed definition."""
        if causal:
            return super().__call__(q, k, v, counts, causal, **more)
        weighted = k if counts is None else k * counts[..., None]
        return divided(q @ (weighted.mT @ v), q @ weighted.sum(-2)[..., None])
