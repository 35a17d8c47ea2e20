"""Squared ReLU features."""

from __future__ import annotations

from separatrix.mechanisms.features._base import FeatureMechanism, Features, Side, Tokens


class SquaredReluFeatures(FeatureMechanism):
    """`phi(x) = max(x, 0)^2` [rec].

    >>> import torch
    >>> x = torch.tensor([-1.0, 3.0]).reshape(1, 1, 2, 1)
    >>> SquaredReluFeatures().compute_features(x, "key").flatten().tolist()
    [0.0, 9.0]
    """

    name = "squared-relu-features"
    formula = "<phi(q),phi(k)> / sum <phi(q),phi(k)>, phi(x) = max(x,0)^2"
    source = "[rec] the activation of Primer, arXiv 2109.08668, as a feature map"
    coordinate_free = True

    def compute_features(self, x: Tokens, side: Side) -> Features:
        return x.relu().square()
