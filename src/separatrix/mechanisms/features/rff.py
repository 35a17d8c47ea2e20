"""Random Fourier features for softmax."""

from __future__ import annotations

import math
from typing import ClassVar

from separatrix.core.parameters import Constraint
from separatrix.core.tensors import torch
from separatrix.mechanisms.features._base import LogFeatureMechanism, Scaled, Side, Tokens
from separatrix.mechanisms.features._random import RandomParameters, gaussian


class RffParameters(RandomParameters):
    """How many features, an even number, and from which seed."""

    owner = "rff"
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *RandomParameters.constraints,
        Constraint(
            ("features",),
            lambda p: p.features % 2 == 0,
            lambda p: f"features={p.features} is odd; half of them are sines and half are cosines",
        ),
    )


class Rff(LogFeatureMechanism):
    """`phi(x) = exp(|x|²/2) [cos(Wx), sin(Wx)] / sqrt(m)`, W of m Gaussian rows [rec].

    `exp(<q,k>) = exp(|q|²/2) exp(|k|²/2) E cos(<w,q-k>)`. `features` counts sines and cosines, 2m.
    Weights may be negative, and normalisers near 0, where the average is far from its mean: the keys
    of Random Feature Attention have length 1, for which it is steadier; here they are as given.

    >>> x = torch.full((1, 1, 1, 4), 0.25)
    >>> phi = Rff().features(x, "key")
    >>> round((phi @ phi.mT).item() / math.exp(0.25), 5)
    1.0
    """

    name = "rff"
    formula = "<phi(q),phi(k)> / sum <phi(q),phi(k)>, phi(x) = exp(|x|^2/2) [cos(Wx), sin(Wx)] / sqrt(m)"
    source = "[rec] Random Feature Attention, arXiv 2103.02143"
    schema = RffParameters
    parameters: RffParameters

    def scaled(self, x: Tokens, side: Side) -> Scaled:
        half = self.parameters.features // 2
        angles = x @ gaussian(half, x.shape[-1], self.parameters.seed).to(x).mT
        waves = torch.cat([angles.cos(), angles.sin()], dim=-1) / math.sqrt(half)
        return waves, x.square().sum(-1, keepdim=True) / 2
