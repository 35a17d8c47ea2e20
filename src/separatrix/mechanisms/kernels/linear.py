"""Linear attention, normalised: the paper's."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from separatrix.core.numbers.logforms import Flint, LogForm
from separatrix.core.tensors import Float, Tensor
from separatrix.mechanisms._base import ScoreMechanism
from separatrix.mechanisms._blocks import divide
from separatrix.mechanisms._methods import attention_method
from separatrix.mechanisms._types import Attended, CallOptions, Floats, Keys, Queries, Values
from separatrix.mechanisms.decoding import Answers, NewTokens, Past
from separatrix.mechanisms.features._base import decode_from_sums
from separatrix.mechanisms.features.identity import IdentityFeatures


class Linear(ScoreMechanism):
    """`u = <q,k>`, `f = u / <u,1>` [paper].

    Weights may be negative, and a row whose scores sum to zero has no answer (it divides by zero): on the
    constructions here all logits are positive.
    """

    name = "linear"
    formula = "<q,k> / sum <q,k>"
    source = "[paper] arXiv 2310.11685"
    fixed_state = True
    homogeneous = True

    def score(self, logits: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return logits

    def log_ratio(self, base: Floats, step: Floats) -> Floats:
        # log1p keeps the digits of a small step.
        ratio: Floats = np.log1p(step / base)
        return ratio

    def ratio(self, base: LogForm, step: LogForm) -> Flint:
        return (base + step).over(base)

    @cached_property
    def feature_map(self) -> IdentityFeatures:
        """The feature map with the same scores: its causal form is linear in the tokens."""
        return IdentityFeatures()

    def example_state(self, tokens: int, k: Keys, v: Values) -> tuple[Tensor, ...]:
        return self.feature_map.summarise(k, v)

    def decode(self, past: Past | None, new: NewTokens) -> tuple[Answers, Past]:
        """Decode from the sums of `k (v, 1)ᵀ`."""
        return decode_from_sums(self, self.feature_map, past, new)

    @attention_method
    def __call__(self, q: Queries, k: Keys, v: Values, options: CallOptions) -> Attended:
        """Compute `q (kᵀ v) / q (kᵀ 1)`, linear in the tokens; with causal, by running sums."""
        if options.causal and options.first + q.shape[-2] == k.shape[-2]:
            return self.feature_map(q, k, v, causal=True, **options.positions())
        if options.causal:  # queries beyond the last key, or fewer than there are keys
            return super().__call__(q, k, v, causal=True, **options.positions())
        keys = k if options.counts is None else k * options.counts[..., None]
        return divide(q @ (keys.mT @ v), q @ keys.sum(-2)[..., None])
