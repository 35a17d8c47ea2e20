"""Deterministic parameter-free projection."""

from __future__ import annotations

from separatrix.core.parameters import natural
from separatrix.core.tensors import torch
from separatrix.mechanisms.features._base import FeatureMechanism, Features, Side, Tokens


class Dpfp(FeatureMechanism):
    """`phi(x) = [r * roll(r, j) for j = 1..nu]` with `r = [relu(x), relu(-x)]` [rec].

    Products of neighbours: 2 · width · nu features, few of which are not 0. Its authors also divide phi by
    its sum, with the delta rule; that is not done here. From nu = 2 · width on, shifts repeat.

    >>> x = torch.tensor([2.0, 3.0]).reshape(1, 1, 1, 2)
    >>> Dpfp(nu=1).compute_features(x, "key").flatten().tolist()
    [0.0, 6.0, 0.0, 0.0]
    """

    name = "dpfp"
    formula = "<phi(q),phi(k)> / sum <phi(q),phi(k)>, phi_{j,i}(x) = r_i r_{i-j}, r = [relu(x), relu(-x)]"
    source = "[rec] DPFP, arXiv 2102.11174"
    nu: int = natural(3, at_least=1, at_most=1000)
    """The number of neighbours that each coordinate is multiplied with."""

    def compute_features(self, x: Tokens, side: Side) -> Features:
        halves = torch.cat([x.relu(), (-x).relu()], dim=-1)
        return torch.cat([halves * halves.roll(j, dims=-1) for j in range(1, self.nu + 1)], dim=-1)
