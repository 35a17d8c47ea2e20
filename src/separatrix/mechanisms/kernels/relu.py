"""ReLU attention: negative logits are ignored."""

from __future__ import annotations

from separatrix.mechanisms.kernels._streamed import Copies, Logits, StreamedMechanism, count_visible


class Relu(StreamedMechanism):
    """`f = max(<q,k>, 0) / n`, not normalised; n is the number of keys the query sees (arXiv 2309.08586).

    A query without a positive logit gets zeros.

    >>> import torch
    >>> from separatrix.mechanisms import mechanism_named
    >>> k = torch.tensor([4.0, -4.0]).reshape(1, 1, 2, 1)
    >>> mechanism_named("relu")(torch.ones(1, 1, 1, 1), k, torch.ones(1, 1, 2, 1)).item()
    2.0
    """

    name = "relu"
    formula = "max(<q,k>, 0) / n"
    source = "[rec] arXiv 2309.08586"
    is_normalised = False

    def weights(self, logits: Logits, copies: Copies) -> Logits:
        return copies * logits.relu() / count_visible(copies)
