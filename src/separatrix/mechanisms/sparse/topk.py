"""Top-k attention: softmax over the largest logits."""

from __future__ import annotations

from separatrix.core.parameters import natural
from separatrix.core.tensors import torch
from separatrix.mechanisms.kernels._streamed import Copies, Logits, PerRow, StreamedMechanism, softmax

ULPS = 16
"""Logits this close, in units of the rounding of the row's largest, count as equal."""


class TopK(StreamedMechanism):
    """`f = softmax(<q,k>)` over the k largest logits, 0 elsewhere (arXiv 2106.06899).

    All keys that tie with the k-th largest get a weight, so that the order of tokens does not matter; equal
    keys may get logits that differ in the last digits, so ties hold up to rounding. A key of count c counts c
    times. A query that sees nothing (all counts 0) gets zeros.

    >>> from separatrix.mechanisms import mechanism_named
    >>> logits = torch.tensor([3.0, 2.0, 2.0, 1.0]).reshape(1, 1, 4, 1)
    >>> one, eye = torch.ones(1, 1, 1, 1), torch.eye(4)[None, None]
    >>> mechanism_named("topk:k=1")(one, logits, eye).flatten()
    tensor([1., 0., 0., 0.])
    >>> (mechanism_named("topk:k=2")(one, logits, eye) > 0).flatten()
    tensor([ True,  True,  True, False])
    """

    name = "topk"
    formula = "softmax(<q,k>) over the k largest logits and their ties"
    source = "[rec] arXiv 2106.06899; ties [ours]"
    family = "sparse"
    k: int = natural(8, at_least=1)
    """The number of keys that get a weight."""

    def weights(self, logits: Logits, copies: Copies) -> Logits:
        visible = logits.detach().masked_fill(copies <= 0, -torch.inf)
        slack = rounding_slack(visible.masked_fill(copies <= 0, 0))
        return softmax(logits, copies * (visible >= _kth_largest(visible, copies, self.k) - slack))


def rounding_slack(scores: Logits) -> PerRow:
    """Return the difference in each row up to which scores count as equal."""
    return ULPS * torch.finfo(scores.dtype).eps * scores.abs().amax(-1, keepdim=True)


def _kth_largest(visible: Logits, copies: Copies, k: int) -> PerRow:
    """Return the k-th largest logit, copies counted, or the smallest if there are fewer.

    It is among the k largest keys, since each stands for one token or more.
    """
    top = visible.topk(min(k, visible.shape[-1]), -1)
    number = copies.expand(visible.shape).gather(-1, top.indices).cumsum(-1)
    rank = (number < k).sum(-1, keepdim=True).clamp(max=number.shape[-1] - 1)
    return top.values.gather(-1, rank)
