"""Softmax with a sink: one more logit in the normaliser, so that a query can ignore all keys."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from separatrix.core.parameters import exact
from separatrix.core.tensors import torch
from separatrix.mechanisms.extras import SINK
from separatrix.mechanisms.kernels._streamed import Copies, Logits, StreamedMechanism, safe_divide


class SoftmaxSink(StreamedMechanism):
    """`f = exp(<q,k>) / (exp(sink) + sum exp(<q,k>))`: softmax with one more key, whose value is 0.

    sink=0 is the zero sink of StreamingLLM (arXiv 2309.17453), sink=none softmax. gpt-oss learns one logit
    for each head: `sink` of shape (heads,). StreamingLLM itself does something else: it keeps the first
    tokens visible beside a window, as window-global does, or learns one more first token, whose value is not
    0.

    >>> from separatrix.mechanisms import mechanism_named
    >>> one = torch.ones(1, 1, 1, 1)
    >>> mechanism_named("softmax-sink")(0 * one, one, one).item()
    0.5
    """

    name = "softmax-sink"
    formula = "exp(<q,k>) / (exp(sink) + sum exp(<q,k>))"
    source = "[rec] arXiv 2309.17453; one logit per head as in gpt-oss"
    sink: Fraction | str = exact(0, at_least=-(10**6), at_most=10**6, word="none")
    """The logit of the sink, or none."""
    extras = (SINK,)

    @property
    def is_normalised(self) -> bool:
        return self.sink == "none"

    @property
    def sink_logit(self) -> float:
        """The logit of the sink; minus infinity for none."""
        return -torch.inf if isinstance(self.sink, str) else float(self.sink)

    def weights(self, logits: Logits, copies: Copies, **extras: Any) -> Logits:
        sink = extras["sink"].to(logits)[:, None, None]
        logits = logits.masked_fill(copies <= 0, -torch.inf)
        # The shift cancels, so derivatives of every order stay right when it is treated as a constant.
        top = logits.detach().amax(-1, keepdim=True).maximum(sink.detach())
        # Without a visible key and a sink, infinity minus infinity would not be a number.
        top = top.masked_fill(top == -torch.inf, 0)
        scores = copies * (logits - top).exp()
        return safe_divide(scores, scores.sum(-1, keepdim=True) + (sink - top).exp())
