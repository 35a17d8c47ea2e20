"""Softmax that sharpens itself where it is too spread out."""

from __future__ import annotations

from separatrix.core.tensors import torch
from separatrix.mechanisms.kernels._streamed import Copies, Logits, PerRow, StreamedMechanism, safe_divide, softmax

POLYNOMIAL = (-0.037, 0.481, -2.3, 4.917, -1.791)
"""The published fit of the inverse temperature to the entropy, highest power first."""


class AdaptiveSoftmax(StreamedMechanism):
    """`f = softmax(beta(H) <q,k>)`, H the entropy of `softmax(<q,k>)` in nats (arXiv 2410.01104).

    `beta = max(poly(H), 1)` if H > 0.5, else 1, as in the paper's own program. Gradients pass through beta.
    The fit is for short inputs: beta is above 1 only for H between 0.85 and 5.94, so 382 equal keys are too
    many. A key of count c is c outcomes of the entropy. A query that sees nothing (all counts 0) gets zeros.

    >>> from separatrix.mechanisms import mechanism_named
    >>> logits = torch.tensor([1.0, 0.0, 0.0, 0.0]).reshape(1, 1, 4, 1)
    >>> one = torch.ones(1, 1, 1, 1)
    >>> round(mechanism_named("softmax")(one, logits, logits).item(), 3)
    0.475
    >>> round(mechanism_named("adaptive-softmax")(one, logits, logits).item(), 3)
    0.63
    """

    name = "adaptive-softmax"
    formula = "softmax(beta(H) <q,k>), H the entropy of softmax(<q,k>), beta = max(poly(H), 1) if H > 0.5 else 1"
    source = "[rec] arXiv 2410.01104, with the coefficients of its program"

    def weights(self, logits: Logits, copies: Copies) -> Logits:
        return softmax(inverse_temperature(entropy(logits, copies)) * logits, copies)


def entropy(logits: Logits, copies: Copies) -> PerRow:
    """Return the entropy of the softmax of the logits, with every copy as an outcome of its own."""
    shares = softmax(logits, copies)
    # The logarithm of a share of 0 must be finite: 0 times it is 0.
    surprise = safe_divide(shares, copies).clamp(min=torch.finfo(logits.dtype).tiny).log()
    return -(shares * surprise).sum(-1, keepdim=True)


def inverse_temperature(entropy: PerRow) -> PerRow:
    """Return beta, by Horner's rule."""
    beta = torch.zeros_like(entropy)
    for coefficient in POLYNOMIAL:
        beta = beta * entropy + coefficient
    return beta.clamp(min=1).where(entropy > 0.5, 1)
