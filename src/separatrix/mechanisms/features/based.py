"""Second-order Taylor features."""

from __future__ import annotations

import math

from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms.features._base import FeatureMechanism, Features, KeyChunks, QueryChunks, Side, Tokens


class Based(FeatureMechanism):
    """`phi(x) = [1, x, vec(x xᵀ)/sqrt 2]`, so that `<phi(q),phi(k)> = 1 + <q,k> + <q,k>²/2` [rec].

    The kernel of `taylor:order=2`, linear in the tokens. Of the two equal entries of `x xᵀ` off the diagonal
    one is used, times sqrt 2: the same kernel from half the features. Based scales logits by 1/sqrt(width)
    and adds sliding windows; neither is done here.

    >>> x = torch.tensor(2.0).reshape(1, 1, 1, 1)
    >>> phi = Based().compute_features(x, "key")
    >>> round((phi @ phi.mT).item(), 5)
    13.0
    """

    name = "based"
    formula = "T(<q,k>) / sum T(<q,k>), T(z) = 1 + z + z^2/2, by features"
    source = "[rec] Based, arXiv 2402.18668"
    coordinate_free = True
    takes_first = False  # Its scores of few tokens begin with the first.

    def compute_features(self, x: Tokens, side: Side) -> Features:
        """Compute feature by feature for all tokens, which are adjacent in memory then."""
        x = x.mT.contiguous()
        products = [x[..., i : i + 1, :] * x[..., i + 1 :, :] for i in range(x.shape[-2] - 1)]
        squares = x.square() / math.sqrt(2)
        return torch.cat([torch.ones_like(x[..., :1, :]), x, squares, *products], dim=-2).mT

    def direct_scores(self, q: QueryChunks, k: KeyChunks) -> Float[Tensor, "batch heads chunks queries keys"]:
        logits = q @ k.mT
        # The same polynomial as the features', in one pass over the scores and without a temporary square.
        return torch.addcmul(1 + logits, logits, logits, value=0.5)
