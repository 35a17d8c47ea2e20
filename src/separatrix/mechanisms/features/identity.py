"""No feature map at all: linear attention, normalised or not."""

from __future__ import annotations

from separatrix.mechanisms.features._base import FeatureMechanism, Features, Side, Tokens


class IdentityFeatures(FeatureMechanism):
    """`phi(x) = x`: normalised this is `linear`, with a causal form that is linear in the tokens [rec].

    With normalised=no it is the linear attention of in-context learning, arXiv 2212.07677.

    >>> import torch
    >>> x = torch.tensor([1.0, 3.0]).reshape(1, 1, 2, 1)
    >>> IdentityFeatures()(x, x, x).flatten().tolist()
    [2.5, 2.5]
    >>> IdentityFeatures(normalised=False)(x, x, x).flatten().tolist()
    [10.0, 30.0]
    """

    name = "identity-features"
    formula = "<q,k> / sum <q,k>, or <q,k> with normalised=no"
    source = "[rec] linear attention: arXiv 2310.11685 normalised, arXiv 2212.07677 not"
    coordinate_free = True

    def compute_features(self, x: Tokens, side: Side) -> Features:
        return x
