"""Feature maps whose scores fade with the distance."""

from __future__ import annotations

from separatrix.mechanisms._base import Keys, Mechanism, Queries
from separatrix.mechanisms.features._base import (
    FeatureMechanism,
    LogFeatureMechanism,
    Scaled,
    Side,
    Tokens,
)
from separatrix.tensors import Tensor, torch


class FadedFeatures(LogFeatureMechanism):
    """`u_ij = <phi(q_i), phi(k_j)> exp(-slope (i - j))`, with the features of another mechanism.

    The factor is `exp(-slope i) exp(slope j)`: one more logarithm of queries and of keys, which travels as
    one more channel. Time stays linear in the tokens.
    """

    name = "faded features"

    def __init__(self, inner: FeatureMechanism, outer: Mechanism) -> None:
        super().__init__()
        self.inner = inner
        vars(self).update(extras=outer.extras, takes_first=False, takes_present=False)

    @property
    def normalised(self) -> bool:
        return self.inner.normalised

    def mapped(self, q: Queries, k: Keys, extras: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        slopes = extras["slopes"].to(q)[:, None, None]
        q, k = self.inner.mapped(q, k, extras)
        return _with_channel(q, -slopes), _with_channel(k, slopes)

    def scaled(self, x: Tokens, side: Side) -> Scaled:
        factors, logs = self.inner.scaled(x[..., :-1], side)
        return factors, x[..., -1:] if logs is None else logs + x[..., -1:]


def _with_channel(x: Tensor, slopes: Tensor) -> Tensor:
    """Tokens with the slope times their place as one more channel."""
    places = torch.arange(x.shape[-2], dtype=x.dtype, device=x.device)[:, None]
    return torch.cat([x, (slopes * places).expand(*x.shape[:-1], 1)], dim=-1)
