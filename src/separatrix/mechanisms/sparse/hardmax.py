"""Hardmax: the largest logit takes all."""

from __future__ import annotations

from separatrix.core.tensors import torch
from separatrix.mechanisms.kernels._streamed import Copies, Logits, StreamedMechanism, safe_divide
from separatrix.mechanisms.sparse.topk import rounding_slack


class Hardmax(StreamedMechanism):
    """Equal weights on the keys with the largest logit, 0 elsewhere: softmax at temperature 0 [rec].

    Keys share in proportion to their counts. Equal keys may get logits that differ in the last digits, so
    ties hold up to rounding. A query that sees nothing (all counts 0) gets zeros. The weights are constant
    except where ties appear or break: their derivative is 0 wherever there is one.

    >>> from separatrix.mechanisms import mechanism_named
    >>> logits = torch.tensor([2.0, 1.0, 2.0]).reshape(1, 1, 3, 1)
    >>> mechanism_named("hardmax")(torch.ones(1, 1, 1, 1), logits, torch.eye(3)[None, None]).flatten()
    tensor([0.5000, 0.0000, 0.5000])
    """

    name = "hardmax"
    formula = "1 / (number of largest logits) where <q,k> is the largest, else 0"
    source = "[rec] averaging hard attention, arXiv 2204.06618"
    family = "sparse"

    def weights(self, logits: Logits, copies: Copies) -> Logits:
        visible = logits.detach().masked_fill(copies <= 0, -torch.inf)
        slack = rounding_slack(visible.masked_fill(copies <= 0, 0))
        largest = logits.detach() >= visible.amax(-1, keepdim=True) - slack
        # The logits are overwritten, not replaced, so that they get a gradient of 0 instead of none.
        best = copies * logits.masked_fill(largest, 1).masked_fill(~largest, 0)
        return safe_divide(best, best.sum(-1, keepdim=True))
