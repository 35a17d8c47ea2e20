"""Random Fourier features for softmax."""

from __future__ import annotations

import math

from separatrix.core.parameters import Constraint
from separatrix.core.tensors import torch
from separatrix.mechanisms.features._base import Side, Tokens
from separatrix.mechanisms.features._memory import ScaledFeatures
from separatrix.mechanisms.features._random import RandomFeatureMechanism, gaussian


class Rff(RandomFeatureMechanism):
    """`phi(x) = exp(|x|²/2) [cos(Wx), sin(Wx)] / sqrt(m)`, W of m Gaussian rows [rec].

    `exp(<q,k>) = exp(|q|²/2) exp(|k|²/2) E cos(<w,q-k>)`. `features` counts sines and cosines, 2m. Weights
    may be negative, and normalisers near 0, if the average is far from its mean: the keys of Random Feature
    Attention have length 1, for which it is more stable; here they are used as given.

    >>> x = torch.full((1, 1, 1, 4), 0.25)
    >>> phi = Rff().compute_features(x, "key")
    >>> round((phi @ phi.mT).item() / math.exp(0.25), 5)
    1.0
    """

    name = "rff"
    formula = "<phi(q),phi(k)> / sum <phi(q),phi(k)>, phi(x) = exp(|x|^2/2) [cos(Wx), sin(Wx)] / sqrt(m)"
    source = "[rec] Random Feature Attention, arXiv 2103.02143"
    relations = (
        Constraint(
            ("features",),
            lambda values: values.features % 2 == 0,
            lambda values: f"features={values.features} is odd; half of them are sines and half are cosines",
        ),
    )

    def scale_features(self, x: Tokens, side: Side) -> ScaledFeatures:
        frequencies = self.features // 2
        angles = x @ gaussian(frequencies, x.shape[-1], self.seed).to(x).mT
        waves = torch.cat([angles.cos(), angles.sin()], dim=-1) / math.sqrt(frequencies)
        return ScaledFeatures(waves, x.square().sum(-1, keepdim=True) / 2)
