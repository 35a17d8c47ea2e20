"""Attention whose weights are a function of one query's logits, computed a block of queries at a time."""

from __future__ import annotations

from abc import abstractmethod

from separatrix.mechanisms import _base
from separatrix.mechanisms._base import (
    Attended,
    Counts,
    Keys,
    Mechanism,
    Queries,
    Values,
    check_request,
    widened,
)
from separatrix.tensors import Float, Tensor, torch

Logits = Float[Tensor, "*rows keys"]
PerRow = Float[Tensor, "*rows 1"]
Copies = Float[Tensor, "*#rows keys"]
"""How many tokens a key stands for in the eyes of a query: its count, or 0 where it is not seen."""


class StreamedMechanism(Mechanism):
    """`f = weights(<q,k_1>, ..., <q,k_n>)`, output `f v`, for weights of any kind."""

    family = "score kernel"
    coordinate_free = True

    @abstractmethod
    def weights(self, logits: Logits, copies: Copies) -> Logits:
        """The weight of every key, all its copies taken together; 0 where there are none."""

    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False
    ) -> Attended:
        check_request(self, counts, causal)
        dtype, (q, k, v) = v.dtype, widened(q, k, v)
        logits = q @ k.mT
        return (self.weights(logits, copies_seen(logits, counts, causal)) @ v).to(dtype)

    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False
    ) -> Attended:
        """The definition, a block of queries at a time: memory stays linear in the tokens."""
        check_request(self, counts, causal)
        dtype, (q, k, v) = v.dtype, widened(q, k, v)
        step = rows_at_once(k)
        out = []
        for start in range(0, q.shape[-2], step):
            logits = q[..., start : start + step, :] @ k.mT
            out.append(self.weights(logits, copies_seen(logits, counts, causal, start)) @ v)
        return torch.cat(out, dim=-2).to(dtype)


def rows_at_once(k: Keys) -> int:
    """How many queries make a block whose scores fit the streaming budget."""
    return max(1, _base.BLOCK // (k.shape[-2] * k.shape[0] * k.shape[1]))


def copies_seen(logits: Logits, counts: Counts | None, causal: bool, start: int = 0) -> Copies:
    """The copies of every key that the queries from place `start` on see."""
    if counts is not None:
        return counts[..., None, :].to(logits.dtype)
    rows, keys = logits.shape[-2:]
    if causal:
        return logits.new_ones(rows, keys).tril(start)
    return logits.new_ones(1, keys)


def softmax_of(logits: Logits, copies: Copies) -> Logits:
    """`copies exp(logit) / sum`, and zeros for a query that sees nothing.

    >>> softmax_of(torch.zeros(1, 3), torch.tensor([[1.0, 3.0, 0.0]]))
    tensor([[0.2500, 0.7500, 0.0000]])
    """
    logits = logits.masked_fill(copies <= 0, -torch.inf)
    # The shift cancels, so derivatives of every order stay right when it is taken for a constant.
    top = logits.detach().amax(-1, keepdim=True)
    scores = copies * (logits - top.masked_fill(top == -torch.inf, 0)).exp()
    return over(scores, scores.sum(-1, keepdim=True))


def over(top: Float[Tensor, "*#shape"], bottom: Float[Tensor, "*#shape"]) -> Tensor:
    """`top / bottom`, and `top` where the bottom is 0: there the top is 0 as well."""
    return top / bottom.masked_fill(bottom == 0, 1)
