"""Top-k attention: softmax over the largest logits."""

from __future__ import annotations

from typing import ClassVar

from separatrix.core.parameters import Constraint, Natural, Parameters
from separatrix.core.tensors import torch
from separatrix.mechanisms._limits import least
from separatrix.mechanisms.kernels._streamed import Copies, Logits, PerRow, StreamedMechanism, softmax_of

ULPS = 16
"""Logits this close, in units of the rounding of the row's largest, count as equal."""


class TopKParameters(Parameters):
    """How many keys are kept."""

    owner = "topk"
    k: Natural = 8
    constraints: ClassVar[tuple[Constraint, ...]] = (least("k", 1),)


class TopK(StreamedMechanism):
    """`f = softmax(<q,k>)` over the k largest logits, 0 elsewhere (arXiv 2106.06899).

    All keys that tie with the k-th largest are kept, so that the order of tokens does not matter; equal
    keys may get logits that differ in the last digits, so ties are read up to rounding. A key that
    stands for c tokens counts c times. A query that sees nothing (all counts 0) gets zeros.

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
    schema = TopKParameters
    parameters: TopKParameters

    def weights(self, logits: Logits, copies: Copies) -> Logits:
        seen = logits.detach().masked_fill(copies <= 0, -torch.inf)
        largest = seen.masked_fill(copies <= 0, 0).abs().amax(-1, keepdim=True)
        slack = ULPS * torch.finfo(logits.dtype).eps * largest
        return softmax_of(logits, copies * (seen >= _kth(seen, copies, self.parameters.k) - slack))


def _kth(seen: Logits, copies: Copies, k: int) -> PerRow:
    """The k-th largest logit, copies counted; the smallest when there are fewer.

    It is among the k largest keys, since each stands for one token or more.
    """
    top = seen.topk(min(k, seen.shape[-1]), -1)
    number = copies.expand(seen.shape).gather(-1, top.indices).cumsum(-1)
    place = (number < k).sum(-1, keepdim=True).clamp(max=number.shape[-1] - 1)
    return top.values.gather(-1, place)
