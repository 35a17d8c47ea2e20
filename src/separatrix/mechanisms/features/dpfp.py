"""Deterministic parameter-free projection."""

from __future__ import annotations

from typing import ClassVar

from separatrix.core.parameters import Constraint, Natural
from separatrix.core.tensors import torch
from separatrix.mechanisms.features._base import (
    FeatureMechanism,
    FeatureParameters,
    Features,
    Side,
    Tokens,
)


class DpfpParameters(FeatureParameters):
    """How many neighbours each coordinate is multiplied with."""

    owner = "dpfp"
    nu: Natural = 3
    constraints: ClassVar[tuple[Constraint, ...]] = (
        Constraint(
            ("nu",),
            lambda p: 1 <= p.nu <= 1000,
            lambda p: f"nu={p.nu} is out of range; nu must be between 1 and 1000",
        ),
    )


class Dpfp(FeatureMechanism):
    """`phi(x) = [r * roll(r, j) for j = 1..nu]` with `r = [relu(x), relu(-x)]` [rec].

    Products of neighbours: 2 · width · nu features, few of which are not 0. Its authors also divide
    phi by its sum, with the delta rule; that is not done here. From nu = 2 · width on, shifts repeat.

    >>> x = torch.tensor([2.0, 3.0]).reshape(1, 1, 1, 2)
    >>> Dpfp(nu=1).features(x, "key").flatten().tolist()
    [0.0, 6.0, 0.0, 0.0]
    """

    name = "dpfp"
    formula = "<phi(q),phi(k)> / sum <phi(q),phi(k)>, phi_{j,i}(x) = r_i r_{i-j}, r = [relu(x), relu(-x)]"
    source = "[rec] DPFP, arXiv 2102.11174"
    schema = DpfpParameters
    parameters: DpfpParameters

    def features(self, x: Tokens, side: Side) -> Features:
        halves = torch.cat([x.relu(), (-x).relu()], dim=-1)
        shifted = [halves * halves.roll(j, dims=-1) for j in range(1, self.parameters.nu + 1)]
        return torch.cat(shifted, dim=-1)
