"""The linear transformer's feature map."""

from __future__ import annotations

import math

from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms._recompute import is_transformed
from separatrix.mechanisms.features._base import FeatureMechanism, Features, Side, Tokens

LOG2_E = 1 / math.log(2)


class Elu(FeatureMechanism):
    """`phi(x) = elu(x) + 1`, that is `x + 1` above 0 and `exp(x)` below [rec].

    >>> import torch
    >>> x = torch.tensor([0.0, 1.0]).reshape(1, 1, 2, 1)
    >>> Elu().compute_features(x, "key").flatten().tolist()
    [1.0, 2.0]
    """

    name = "elu"
    formula = "<phi(q),phi(k)> / sum <phi(q),phi(k)>, phi(x) = elu(x) + 1"
    source = "[rec] linear transformers, arXiv 2006.16236"
    coordinate_free = True

    def compute_features(self, x: Tokens, side: Side) -> Features:
        return elu_plus_one(x)


def elu_plus_one(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Return x + 1 above 0 and exp(x) below: `elu(x) + 1` would round small features to 0."""
    # torch's exp2 takes a quarter of the time of its exp on some processors.
    exponential, linear = x.clamp(max=0).mul_(LOG2_E).exp2_(), x.relu()
    # Backward needs the exponential, so it is overwritten only if nothing is recorded.
    if torch.is_grad_enabled() or is_transformed():
        return exponential + linear
    return exponential.add_(linear)
