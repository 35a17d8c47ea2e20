"""Performer's positive random features."""

from __future__ import annotations

import math

from separatrix.mechanisms.features._base import Side, Tokens
from separatrix.mechanisms.features._memory import ScaledFeatures
from separatrix.mechanisms.features._random import RandomFeatureMechanism, orthogonal


class Favor(RandomFeatureMechanism):
    """`phi_i(x) = exp(<w_i,x> - |x|²/2) / sqrt(m)`: `<phi(q),phi(k)>` is `exp(<q,k>)` on average [rec].

    The m directions w are Gaussian and orthogonal within each block of `width`. Its authors scale logits by
    1/sqrt(width) and add 1e-4 to every feature; neither is done here.

    >>> import torch
    >>> q, favor = torch.full((1, 1, 1, 4), 0.25), Favor(features=4096)
    >>> kernel = favor.compute_features(q, "query") @ favor.compute_features(q, "key").mT
    >>> abs(kernel.item() / math.exp(0.25) - 1) < 0.05
    True
    """

    name = "favor"
    formula = "<phi(q),phi(k)> / sum <phi(q),phi(k)>, phi_i(x) = exp(<w_i,x> - |x|^2/2) / sqrt(features)"
    source = "[rec] FAVOR+ of Performer, arXiv 2009.14794"

    def scale_features(self, x: Tokens, side: Side) -> ScaledFeatures:
        directions = orthogonal(self.features, x.shape[-1], self.seed).to(x)
        square = x.square().sum(-1, keepdim=True)
        # The logarithm of the factor 1/sqrt(m) is -log(m)/2.
        return ScaledFeatures(None, x @ directions.mT - (square + math.log(self.features)) / 2)
