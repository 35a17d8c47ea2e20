"""Performer's positive random features."""

from __future__ import annotations

import math

from separatrix.mechanisms.features._base import LogFeatureMechanism, Scaled, Side, Tokens
from separatrix.mechanisms.features._random import RandomParameters, orthogonal


class FavorParameters(RandomParameters):
    """How many features, and from which seed."""

    owner = "favor"


class Favor(LogFeatureMechanism):
    """`phi_i(x) = exp(<w_i,x> - |x|²/2) / sqrt(m)`: `<phi(q),phi(k)>` is `exp(<q,k>)` on average [rec].

    The m directions w are Gaussian and orthogonal within each block of `width`. Its authors scale
    logits by 1/sqrt(width) and add 1e-4 to every feature; neither is done here.

    >>> import torch
    >>> q = torch.full((1, 1, 1, 4), 0.25)
    >>> kernel = Favor(features=4096).features(q, "query") @ Favor(features=4096).features(q, "key").mT
    >>> abs(kernel.item() / math.exp(0.25) - 1) < 0.05
    True
    """

    name = "favor"
    formula = "<phi(q),phi(k)> / sum <phi(q),phi(k)>, phi_i(x) = exp(<w_i,x> - |x|^2/2) / sqrt(features)"
    source = "[rec] FAVOR+ of Performer, arXiv 2009.14794"
    schema = FavorParameters
    parameters: FavorParameters

    def scaled(self, x: Tokens, side: Side) -> Scaled:
        count = self.parameters.features
        directions = orthogonal(count, x.shape[-1], self.parameters.seed).to(x)
        return None, x @ directions.mT - (x.square().sum(-1, keepdim=True) + math.log(count)) / 2
