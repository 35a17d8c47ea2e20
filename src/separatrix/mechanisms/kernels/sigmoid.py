"""Sigmoid attention: every key is weighted independently."""

from __future__ import annotations

from fractions import Fraction

from separatrix.core.parameters import exact
from separatrix.core.tensors import torch
from separatrix.mechanisms.kernels._streamed import Copies, Logits, StreamedMechanism, count_visible


class Sigmoid(StreamedMechanism):
    """`f = sigmoid(<q,k> + bias)`, not normalised; bias = -log n by default (arXiv 2409.04431).

    n is the number of keys the query sees; with it, equal small logits get weights of about 1/n. A query that
    sees nothing (all counts 0) gets zeros.

    >>> from separatrix.mechanisms import mechanism_named
    >>> one = torch.ones(1, 1, 1, 1)
    >>> mechanism_named("sigmoid")(0 * one, one, one).item()
    0.5
    """

    name = "sigmoid"
    formula = "sigmoid(<q,k> + bias), bias = -log n unless given"
    source = "[rec] arXiv 2409.04431"
    bias: Fraction | None = exact(None, at_least=-(10**6), at_most=10**6)
    """Added to the logits; -log n if it is not given."""
    is_normalised = False

    def weights(self, logits: Logits, copies: Copies) -> Logits:
        bias = -count_visible(copies).log() if self.bias is None else float(self.bias)
        return copies * torch.sigmoid(logits + bias)
