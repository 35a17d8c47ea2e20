"""Softpick: a softmax whose weights can all be 0."""

from __future__ import annotations

from separatrix.core.tensors import torch
from separatrix.mechanisms.kernels._streamed import Copies, Logits, StreamedMechanism, safe_divide


class Softpick(StreamedMechanism):
    """`f = relu(exp(z) - 1) / sum |exp(z) - 1|`, z = `<q,k>` (arXiv 2504.20966).

    Keys with negative logits get no weight but count in the sum, so that weights add up to at most 1. Against
    a row of zeros the paper adds a small number to the sum (1e-8 in its program, after the division by the
    largest exp); here such a row has weights 0.

    >>> from separatrix.mechanisms import mechanism_named
    >>> logits = torch.tensor([3.0, 2.0, 0.5]).log().reshape(1, 1, 3, 1)
    >>> mechanism_named("softpick")(torch.ones(1, 1, 1, 1), logits, torch.eye(3)[None, None]).flatten()
    tensor([0.5714, 0.2857, 0.0000])
    """

    name = "softpick"
    formula = "relu(exp(<q,k>) - 1) / sum |exp(<q,k>) - 1|"
    source = "[rec] arXiv 2504.20966, without the small number in its sum"
    is_normalised = False

    def weights(self, logits: Logits, copies: Copies) -> Logits:
        # A hidden key must not raise `top`, against which visible ones would then vanish.
        logits = logits.masked_fill(copies <= 0, 0)
        top = logits.detach().amax(-1, keepdim=True).clamp(min=0)
        above, below = logits.clamp(min=0), logits.clamp(max=0)
        # Both are |exp(z) - 1| over exp(top), for one sign of z: neither overflows, nor loses digits near 0.
        positive = -copies * (above - top).exp() * torch.expm1(-above)
        negative = -copies * (-top).exp() * torch.expm1(below)
        return safe_divide(positive, (positive + negative).sum(-1, keepdim=True))
