"""Second-order Taylor features."""

from __future__ import annotations

import math

from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms.features._base import (
    FeatureMechanism,
    Features,
    KeyParts,
    QueryParts,
    Side,
    Tokens,
)


class Based(FeatureMechanism):
    """`phi(x) = [1, x, vec(x xᵀ)/sqrt 2]`, so that `<phi(q),phi(k)> = 1 + <q,k> + <q,k>²/2` [rec].

    The kernel of `taylor:order=2`, linear in the tokens. Of the two equal entries of `x xᵀ` off the
    diagonal one is kept, times sqrt 2: the same kernel from half the features. Based scales logits by
    1/sqrt(width) and adds sliding windows; neither is done here.

    >>> x = torch.tensor(2.0).reshape(1, 1, 1, 1)
    >>> phi = Based().features(x, "key")
    >>> round((phi @ phi.mT).item(), 5)
    13.0
    """

    name = "based"
    formula = "T(<q,k>) / sum T(<q,k>), T(z) = 1 + z + z^2/2, by features"
    source = "[rec] Based, arXiv 2402.18668"
    coordinate_free = True
    takes_first = False  # its scores of few tokens begin with the first

    def features(self, x: Tokens, side: Side) -> Features:
        """Feature by feature for all tokens, which lie side by side then."""
        x = x.mT.contiguous()
        mixed = [x[..., i : i + 1, :] * x[..., i + 1 :, :] for i in range(x.shape[-2] - 1)]
        return torch.cat([torch.ones_like(x[..., :1, :]), x, x.square() / math.sqrt(2), *mixed], dim=-2).mT

    def kernel(self, q: QueryParts, k: KeyParts) -> Float[Tensor, "batch heads parts queries keys"]:
        logits = q @ k.mT
        return torch.addcmul(1 + logits, logits, logits, value=0.5)
