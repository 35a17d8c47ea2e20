"""Scalable softmax: sharper for longer inputs."""

from __future__ import annotations

from fractions import Fraction

from separatrix.core.parameters import exact
from separatrix.core.tensors import torch
from separatrix.mechanisms._methods import attention_method
from separatrix.mechanisms._types import Attended, CallOptions, Keys, Queries, Values
from separatrix.mechanisms.kernels._streamed import Copies, Logits, StreamedMechanism, count_visible, softmax
from separatrix.mechanisms.kernels.softmax import Softmax


class LogNSoftmax(StreamedMechanism):
    """`f = softmax(scale log(n) <q,k>)`, n the number of keys the query sees (arXiv 2501.19399).

    Softmax with bounded logits spreads over n keys; a logit that grows like log n does not. A query that sees
    one token copies it, and one that sees none (all counts 0) gets zeros.

    >>> from separatrix.mechanisms import mechanism_named
    >>> logits = torch.tensor([1.0, 0.0, 0.0, 0.0]).reshape(1, 1, 4, 1)
    >>> weight = mechanism_named("logn-softmax")(torch.ones(1, 1, 1, 1), logits, logits)
    >>> round(weight.item(), 4)  # 4 / (4 + 3)
    0.5714
    """

    name = "logn-softmax"
    formula = "exp(scale log(n) <q,k>) / sum exp(scale log(n) <q,k>)"
    source = "[rec] scalable softmax, arXiv 2501.19399, without its learned scale"
    scale: Fraction = exact(1, at_least=0, at_most=1000)
    """The factor of log n."""

    def weights(self, logits: Logits, copies: Copies) -> Logits:
        return softmax(float(self.scale) * count_visible(copies).log() * logits, copies)

    @attention_method
    def __call__(self, q: Queries, k: Keys, v: Values, options: CallOptions) -> Attended:
        """Use torch's fused softmax on scaled queries; counts and positions go through the definition."""
        positions = options.positions()
        if options.counts is not None or positions:
            return super().__call__(q, k, v, options.counts, options.causal, **positions)
        # Scaled queries have scaled logits, so the fused kernel needs no factor for each row.
        n = torch.full((q.shape[-2], 1), float(k.shape[-2]), dtype=q.dtype, device=q.device)
        if options.causal:
            n = torch.arange(1, len(n) + 1, dtype=q.dtype, device=q.device)[:, None].minimum(n)
        return Softmax()(float(self.scale) * n.log() * q, k, v, causal=options.causal)
