"""Elementwise exponential features."""

from __future__ import annotations

from separatrix.mechanisms.features._base import LogFeatureMechanism, Side, Tokens
from separatrix.mechanisms.features._memory import ScaledFeatures


class ExpFeatures(LogFeatureMechanism):
    """`phi(x) = exp(x)`, elementwise: scores are `sum_i exp(q_i + k_i)` [rec].

    At width 1 the query cancels, and the weights are the softmax of the keys.

    >>> import torch
    >>> x = torch.tensor([0.0, 1e4]).reshape(1, 1, 2, 1)
    >>> ExpFeatures()(x, x, x).flatten().tolist()
    [10000.0, 10000.0]
    """

    name = "exp-features"
    formula = "<phi(q),phi(k)> / sum <phi(q),phi(k)>, phi(x) = exp(x)"
    source = "[rec] the exp map compared in Hedgehog, arXiv 2402.04347; a relative: arXiv 1812.01243"
    coordinate_free = True

    def scale_features(self, x: Tokens, side: Side) -> ScaledFeatures:
        return ScaledFeatures(None, x)
