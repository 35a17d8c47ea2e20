"""Softmax attention."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from separatrix.mechanisms._base import (
    Attended,
    Counts,
    Floats,
    Keys,
    Queries,
    ScoreMechanism,
    Values,
    refuse_counted_causality,
)
from separatrix.parameters.logforms import LogForm, Number

LANES = 16
"""Widths are padded to a multiple of this, which torch's CPU kernel handles fastest."""


class Softmax(ScoreMechanism):
    """`u = exp(<q,k>)`, `f = u / <u,1>` [paper].

    >>> from separatrix.mechanisms import mechanism_named
    >>> one = torch.ones(1, 1, 1, 1)
    >>> mechanism_named("softmax")(one, one, 3 * one).item()
    3.0
    """

    name = "softmax"
    formula = "exp(<q,k>) / sum exp(<q,k>)"
    source = "[paper] arXiv 2310.11685; Vaswani et al. 2017, without 1/sqrt(width)"

    def score(self, logits: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return logits.exp()

    def log_ratio(self, base: Floats, step: Floats) -> Floats:
        return step

    def ratio(self, base: LogForm, step: LogForm) -> Number:
        return step.exp()

    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False
    ) -> Attended:
        refuse_counted_causality(counts, causal)
        logits = q @ k.mT
        if counts is not None:
            logits = logits + counts.log()[..., None, :]
        if causal:
            future = torch.ones_like(logits, dtype=torch.bool).triu(1)
            logits = logits.masked_fill(future, -torch.inf)
        return logits.softmax(-1) @ v

    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False
    ) -> Attended:
        """torch's fused kernel, at one common width: with unequal widths it would fill n-by-n memory.

        Counts enter as one more column, `<(q, 1), (k, log count)>`, since a mask would be n-by-n too.
        """
        refuse_counted_causality(counts, causal)
        features = v.shape[-1]
        if counts is not None:
            q = pad(q, (0, 1), value=1.0)
            k = torch.cat([k, counts.log().expand(k.shape[:-1])[..., None]], dim=-1)
        if max(q.shape[-1], features) != min(q.shape[-1], features):
            width = -(-max(q.shape[-1], features) // LANES) * LANES
            q, k, v = (pad(x, (0, width - x.shape[-1])) for x in (q, k, v))
        return scaled_dot_product_attention(q, k, v, is_causal=causal, scale=1.0)[..., :features]
