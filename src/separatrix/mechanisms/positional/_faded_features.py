"""Feature maps whose scores fade with the distance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms._base import Attended, Keys, Mechanism, Queries, Values
from separatrix.mechanisms._places import which_present
from separatrix.mechanisms._request import filled, full_precision
from separatrix.mechanisms.features._base import (
    CHUNK,
    FeatureMechanism,
    LogFeatureMechanism,
    Scaled,
    Side,
    Tokens,
    times_there,
)


class FadedFeatures(LogFeatureMechanism):
    """`u_ij = <phi(q_i), phi(k_j)> exp(-slope (i - j))`, with the features of another mechanism.

    The factor is `exp(-slope i) exp(slope j)`: one more logarithm of queries and of keys, which travels as
    one more channel. Time stays linear in the tokens.

    What later tokens need are the sums of the features, which decay by `exp(-slope)` from token to token:
    places are counted from the last token before, so that neither a counter nor large numbers are needed.
    Where the features of the other mechanism have logarithms, it is their references that decay.
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
        q, k = self.inner.mapped(q, k, extras)
        places = torch.arange(max(q.shape[-2], k.shape[-2]), dtype=q.dtype, device=q.device)
        falls = extras["slopes"].to(q)[:, None, None] * places[:, None]
        return _with_channel(q, -falls[:, : q.shape[-2]]), _with_channel(k, falls[:, : k.shape[-2]])

    def scaled(self, x: Tokens, side: Side) -> Scaled:
        factors, logs = self.inner.scaled(x[..., :-1], side)
        return factors, x[..., -1:] if logs is None else logs + x[..., -1:]

    def remembered(
        self, k: Keys, v: Values, present: Tensor | None = None, **extras: Any
    ) -> tuple[Tensor, ...]:
        sums, reference = super().remembered(k, v, present, **extras)
        return self._decayed(sums, reference, self._falls(k, v, present, extras)[..., -1:, :], v)

    def read_on(
        self,
        state: Sequence[Tensor],
        q: Queries,
        k: Keys,
        v: Values,
        present: Tensor | None = None,
        **extras: Any,
    ) -> tuple[Attended, tuple[Tensor, ...]]:
        with full_precision(v):
            falls = self._falls(k, v, present, extras)[..., -1:, :]
            wide_q, wide_k, wide_v, times, dtype = self._ready(q, k, v, present, extras)
            sums, *references = (part.double() for part in state)
            reference = references[0] if references else sums.new_zeros(*sums.shape[:-2], 1, 1)
            out, sums, reference = self._passed(CHUNK, wide_q, wide_k, wide_v, times, sums, reference)
            return out.to(dtype), self._decayed(sums, reference, falls, v)

    def _ready(
        self, q: Tensor, k: Tensor, v: Tensor, present: Tensor | None, extras: dict[str, Any]
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None, torch.dtype]:
        """Tokens in float64 with their falls since the last token before; absent ones are no distance."""
        falls, dtype = self._falls(k, v, present, extras), v.dtype
        q, k, v = (x.double() for x in (q, k, v))
        if present is not None:
            k, v = (x.masked_fill(~present[:, None, :, None], 0) for x in (k, v))
        q, k = self.inner.mapped(q, k, filled(self, q, k, v, extras))
        return _with_channel(q, -falls), _with_channel(k, falls), v, times_there(k, None, present), dtype

    def _falls(
        self, k: Tensor, v: Tensor, present: Tensor | None, extras: dict[str, Any]
    ) -> Float[Tensor, "#batch heads tokens 1"]:
        """The slope of each head times the place of each token, counted from 1."""
        slopes = filled(self, k, k, v, extras)["slopes"].double()
        return slopes[:, None, None] * which_present(present, k).cumsum(-1)[:, None, :, None]

    def _decayed(self, sums: Tensor, reference: Tensor, fall: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        """The state after these tokens, in float32 at least: sums, and references if features have such."""
        reference = reference - fall
        dtype = torch.promote_types(v.dtype, torch.float32)
        if not isinstance(self.inner, LogFeatureMechanism):
            return ((sums * reference.mT.exp()).to(dtype),)
        return sums.to(dtype), reference.to(dtype)


def _with_channel(x: Tensor, channel: Tensor) -> Tensor:
    """Tokens with one more channel."""
    return torch.cat([x, channel.expand(*x.shape[:-1], 1)], dim=-1)
