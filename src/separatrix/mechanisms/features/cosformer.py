"""cosFormer: ReLU features, reweighted by distance."""

from __future__ import annotations

import math

from separatrix.core.tensors import Tensor, torch
from separatrix.mechanisms._types import Keys, Queries
from separatrix.mechanisms.features._base import FeatureMechanism, Features, Side, Tokens


class Cosformer(FeatureMechanism):
    """`u_ij = <relu(q_i), relu(k_j)> cos(pi/2 (i-j)/M)`, M the larger number of queries or keys [rec].

    The cosine of a difference factors, `cos a cos b + sin a sin b`: twice the features. Angles stay below
    pi/2, so the factors are not negative and ReLU may be applied after them. M depends on the number of
    tokens, in the causal form as well: appending tokens changes the weights of earlier rows.

    >>> x = torch.ones(1, 1, 2, 1)
    >>> torch.allclose(Cosformer(normalised="no")(x, x, x), torch.tensor(1 + math.cos(math.pi / 4)))
    True
    """

    name = "cosformer"
    formula = "u / sum u, u = <relu(q_i),relu(k_j)> cos(pi/2 (i-j)/M), M = max(queries, keys)"
    source = "[rec] cosFormer, arXiv 2202.08791"
    permutation_equivariant = False
    takes_first = False
    takes_present = False
    length_free = False

    def map_tokens(self, q: Queries, k: Keys, extras: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        longest = max(q.shape[-2], k.shape[-2])
        angles = torch.arange(longest, dtype=q.dtype, device=q.device)[:, None] * (math.pi / 2 / longest)
        factors = angles.cos(), angles.sin()
        q, k = (torch.cat([x * factor[: x.shape[-2]] for factor in factors], dim=-1) for x in (q, k))
        return q, k

    def compute_features(self, x: Tokens, side: Side) -> Features:
        return x.relu()
