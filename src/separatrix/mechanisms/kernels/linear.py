"""Linear attention, normalised: the paper's."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from separatrix.core.numbers.logforms import Flint, LogForm
from separatrix.core.tensors import Float, Tensor
from separatrix.mechanisms._base import (
    Attended,
    Counts,
    Floats,
    Keys,
    Present,
    Queries,
    ScoreMechanism,
    Values,
    divided,
    form,
)
from separatrix.mechanisms.decoding import Answered, Past
from separatrix.mechanisms.features._base import decode_from_sums
from separatrix.mechanisms.features.identity import IdentityFeatures


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

    @cached_property
    def features(self) -> IdentityFeatures:
        """The feature map with the same scores: its causal form is linear in the tokens."""
        return IdentityFeatures()

    @property
    def fixed_state(self) -> bool:
        return True

    def example_state(self, tokens: int, k: Keys, v: Values) -> tuple[Tensor, ...]:
        return self.features.remembered(k, v)

    def decode(
        self,
        past: Past | None,
        q: Queries,
        k: Keys,
        v: Values,
        present: Present | None = None,
        *,
        skipped: int = 0,
        **extras: Any,
    ) -> tuple[Answered, Past]:
        """From the sums of `k (v, 1)ᵀ`."""
        return decode_from_sums(self, self.features, past, q, k, v, present, skipped, extras)

    @form
    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        """`q (kᵀ v) / q (kᵀ 1)`: linear in the tokens; with causal, running sums."""
        if causal and more.get("first", 0) + q.shape[-2] == k.shape[-2]:
            return self.features(q, k, v, causal=True, **more)
        if causal:  # queries beyond the last key, or fewer than there are keys
            return super().__call__(q, k, v, counts, causal, **more)
        weighted = k if counts is None else k * counts[..., None]
        return divided(q @ (weighted.mT @ v), q @ weighted.sum(-2)[..., None])
