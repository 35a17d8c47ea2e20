"""ReLU features."""

from __future__ import annotations

from separatrix.mechanisms.features._base import FeatureMechanism, Features, Side, Tokens


class ReluFeatures(FeatureMechanism):
    """`phi(x) = max(x, 0)` [rec].

    Positively homogeneous: normalised, q and 2q get the same row (theory 6.1).

    >>> import torch
    >>> k = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).reshape(1, 1, 2, 2)
    >>> q = torch.tensor([3.0, 1.0]).reshape(1, 1, 1, 2)
    >>> ReluFeatures()(q, k, k).flatten().tolist(), ReluFeatures()(2 * q, k, k).flatten().tolist()
    ([0.75, 0.25], [0.75, 0.25])
    """

    name = "relu-features"
    formula = "<phi(q),phi(k)> / sum <phi(q),phi(k)>, phi(x) = max(x,0)"
    source = "[rec] as in T2R, arXiv 2103.13076, without its learned map; injectivity: arXiv 2412.06590"
    coordinate_free = True

    def compute_features(self, x: Tokens, side: Side) -> Features:
        return x.relu()
