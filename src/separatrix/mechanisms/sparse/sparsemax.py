"""Sparsemax: the nearest point of the simplex."""

from __future__ import annotations

from separatrix.core.tensors import torch
from separatrix.mechanisms.kernels._streamed import Copies, Logits, PerRow, StreamedMechanism, safe_divide


class Sparsemax(StreamedMechanism):
    """`f = max(<q,k> - tau, 0)`, tau such that `<f,1> = 1`: the projection on the simplex (arXiv 1602.02068).

    A key of count c gets `c max(<q,k> - tau, 0)`, as its copies would together. A query that sees nothing
    (all counts 0) gets zeros.

    >>> from separatrix.mechanisms import mechanism_named
    >>> logits = torch.tensor([1.0, 0.5, -1.0]).reshape(1, 1, 3, 1)
    >>> mechanism_named("sparsemax")(torch.ones(1, 1, 1, 1), logits, torch.eye(3)[None, None]).flatten()
    tensor([0.7500, 0.2500, 0.0000])
    """

    name = "sparsemax"
    formula = "max(<q,k> - tau, 0), tau such that they sum to 1"
    source = "[rec] arXiv 1602.02068"
    family = "sparse"

    def weights(self, logits: Logits, copies: Copies) -> Logits:
        z = subtract_top(logits, copies)
        support = _support(z.detach(), copies)
        above, tau = _threshold(z, support)
        return support * (above - tau).relu()


def subtract_top(logits: Logits, copies: Copies) -> Logits:
    """Subtract the largest visible logit; keys that are not visible get 0."""
    visible = copies > 0
    top = logits.detach().masked_fill(~visible, -torch.inf).amax(-1, keepdim=True)
    return (logits - top).where(visible, 0)


def _support(z: Logits, copies: Copies) -> Logits:
    """Return the copies of the keys above tau: from too low a tau, keys are dropped until none has to be."""
    fewest = copies.where(copies > 0, torch.inf).amin(-1, keepdim=True)
    support = copies * (z > -1 / fewest)
    while True:
        above, tau = _threshold(z, support)
        smaller_support = support * (above > tau)
        if torch.equal(smaller_support, support):
            return support
        support = smaller_support


def _threshold(z: Logits, support: Logits) -> tuple[Logits, PerRow]:
    """Return z and the tau at which the support sums to 1, both less the z of the key with the most copies.

    With c copies of it, tau is only about 1/c below: the difference would drown in a larger number.
    """
    above = z - z.detach().gather(-1, support.argmax(-1, keepdim=True))
    return above, safe_divide((support * above).sum(-1, keepdim=True) - 1, support.sum(-1, keepdim=True))
