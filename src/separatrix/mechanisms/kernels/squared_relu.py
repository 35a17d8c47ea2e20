"""Squared ReLU attention."""

from __future__ import annotations

from separatrix.mechanisms.kernels._streamed import Copies, Logits, StreamedMechanism, count_visible


class SquaredRelu(StreamedMechanism):
    """`f = max(<q,k>, 0)^2 / n`, not normalised; n is the number of keys the query sees (arXiv 2309.08586).

    A query without a positive logit gets zeros. The gated unit of FLASH (arXiv 2202.10447) divides by n
    before it squares, in public code: its weights are these over n once more, and fade as 1/n^2.

    >>> import torch
    >>> from separatrix.mechanisms import mechanism_named
    >>> k = torch.tensor([4.0, -4.0]).reshape(1, 1, 2, 1)
    >>> mechanism_named("squared-relu")(torch.ones(1, 1, 1, 1), k, torch.ones(1, 1, 2, 1)).item()
    8.0
    """

    name = "squared-relu"
    formula = "max(<q,k>, 0)^2 / n"
    source = "[rec] arXiv 2309.08586; the gated unit of FLASH, arXiv 2202.10447, has 1/n^2 for 1/n"
    is_normalised = False

    def weights(self, logits: Logits, copies: Copies) -> Logits:
        return copies * logits.relu().square() / count_visible(copies)
