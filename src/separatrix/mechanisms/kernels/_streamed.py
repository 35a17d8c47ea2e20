"""Attention whose weights are a function of one query's logits, computed a block of queries at a time."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms._blocks import attend_by_blocks
from separatrix.mechanisms._methods import attention_method
from separatrix.mechanisms._types import Attended, CallOptions, Counts, Keys, Queries, Values

Logits = Float[Tensor, "*rows keys"]
PerRow = Float[Tensor, "*rows 1"]
Copies = Float[Tensor, "*#rows keys"]
"""The multiplicity of each key for a query: its count, or 0 if the query does not see it."""


class StreamedMechanism(Mechanism):
    """`f = weights(<q,k_1>, ..., <q,k_n>)`, output `f v`, for weights of any kind."""

    family = "score kernel"
    coordinate_free = True
    takes_first = True
    takes_present = True

    @abstractmethod
    def weights(self, logits: Logits, copies: Copies) -> Logits:
        """Return the weight of all copies of each key together; 0 if there are none. Extras follow."""

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        logits = q @ k.mT
        copies = _count_copies(logits, options.counts, options.visible_keys(range(q.shape[-2]), k))
        return self.weights(logits, copies, **extras) @ v

    @attention_method
    def __call__(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        """Compute the definition in blocks of queries: memory stays linear in the tokens."""

        def attend(rows: range, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None, *values: Tensor) -> Tensor:
            logits = q @ k.mT
            copies = _count_copies(logits, counts, options.visible_keys(rows, k))
            return self.weights(logits, copies, **dict(zip(extras, values, strict=True))) @ v

        return attend_by_blocks(attend, q, k, v, options.counts, *extras.values())


def _count_copies(logits: Logits, counts: Counts | None, visible: Tensor | None) -> Copies:
    """Return the multiplicity of each key that the queries see."""
    copies = logits.new_ones(1, logits.shape[-1]) if counts is None else counts[..., None, :].to(logits.dtype)
    return copies if visible is None else copies * visible


def count_visible(copies: Copies) -> PerRow:
    """Return the number of keys that each query sees, at least 1."""
    return copies.sum(-1, keepdim=True).clamp(min=1)


def softmax(logits: Logits, copies: Copies) -> Logits:
    """Return `copies exp(logit) / sum`, and zeros for a query that sees nothing.

    >>> softmax(torch.zeros(1, 3), torch.tensor([[1.0, 3.0, 0.0]]))
    tensor([[0.2500, 0.7500, 0.0000]])
    """
    logits = logits.masked_fill(copies <= 0, -torch.inf)
    # The shift cancels, so derivatives of every order stay right when it is treated as a constant.
    top = logits.detach().amax(-1, keepdim=True)
    scores = copies * (logits - top.masked_fill(top == -torch.inf, 0)).exp()
    return safe_divide(scores, scores.sum(-1, keepdim=True))


def safe_divide(x: Float[Tensor, "*#shape"], total: Float[Tensor, "*#shape"]) -> Tensor:
    """Return `x / total`, and `x` where the total is 0: there x is 0 as well."""
    return x / total.masked_fill(total == 0, 1)
