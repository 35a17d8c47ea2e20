"""Feature maps whose scores fade with the distance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms._methods import fill_extras, full_precision
from separatrix.mechanisms._positions import presence_mask, zero_absent
from separatrix.mechanisms._types import Attended, Keys, Queries, Values
from separatrix.mechanisms.features._base import CHUNK, FeatureMechanism, LogFeatureMechanism, Side, Tokens
from separatrix.mechanisms.features._memory import ScaledFeatures, multiplicity_of


class FadedFeatures(LogFeatureMechanism):
    """`u_ij = <phi(q_i), phi(k_j)> exp(-slope (i - j))`, with the features of another mechanism.

    The factor is `exp(-slope i) exp(slope j)`: one more logarithm of queries and of keys, which is passed on
    as one more channel. Time stays linear in the tokens.

    Later tokens need the sums of the features, which decay by `exp(-slope)` from token to token: positions
    are counted from the last token before, so that neither a counter nor large numbers are needed. If the
    features of the other mechanism have logarithms, their references decay instead.
    """

    name = "faded features"

    def __init__(self, inner: FeatureMechanism, outer: Mechanism) -> None:
        super().__init__()
        self.inner = inner
        vars(self).update(extras=outer.extras, takes_first=False, takes_present=False)

    @property
    def is_normalised(self) -> bool:
        return self.inner.is_normalised

    def map_tokens(self, q: Queries, k: Keys, extras: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        q, k = self.inner.map_tokens(q, k, extras)
        positions = torch.arange(max(q.shape[-2], k.shape[-2]), dtype=q.dtype, device=q.device)
        falls = extras["slopes"].to(q)[:, None, None] * positions[:, None]
        return _append_channel(q, -falls[:, : q.shape[-2]]), _append_channel(k, falls[:, : k.shape[-2]])

    def scale_features(self, x: Tokens, side: Side) -> ScaledFeatures:
        factors, logs = self.inner.scale_features(x[..., :-1], side)
        return ScaledFeatures(factors, x[..., -1:] if logs is None else logs + x[..., -1:])

    def summarise(self, k: Keys, v: Values, present: Tensor | None = None, **extras: Any) -> tuple[Tensor, ...]:
        sums, reference = super().summarise(k, v, present, **extras)
        return self._decay_state(sums, reference, self._falls(k, v, present, extras)[..., -1:, :], v)

    def continue_from(
        self, state: Sequence[Tensor], q: Queries, k: Keys, v: Values, present: Tensor | None = None, **extras: Any
    ) -> tuple[Attended, tuple[Tensor, ...]]:
        with full_precision(v):
            falls = self._falls(k, v, present, extras)[..., -1:, :]
            wide_q, wide_k, wide_v, multiplicity, dtype = self._prepare(q, k, v, present, extras)
            # In float64, as in `_prepare`: falls grow with the run, at the cost of float32's digits.
            sums, *references = (part.double() for part in state)
            # Features without logarithms have no reference: the falls are the only ones, and start at 0.
            reference = references[0] if references else sums.new_zeros(*sums.shape[:-2], 1, 1)
            tokens = (wide_q, wide_k, wide_v, multiplicity)
            out, sums, reference = self._read_run(CHUNK, *tokens, sums, reference)
            return out.to(dtype), self._decay_state(sums, reference, falls, v)

    def _prepare(
        self, q: Tensor, k: Tensor, v: Tensor, present: Tensor | None, extras: dict[str, Any]
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None, torch.dtype]:
        """Return tokens in float64, with their falls since the last token before that is present."""
        falls, dtype = self._falls(k, v, present, extras), v.dtype
        q, k, v = (x.double() for x in (q, k, v))
        k, v = zero_absent(present, k, v)
        q, k = self.inner.map_tokens(q, k, fill_extras(self, q, k, v, extras))
        q, k = _append_channel(q, -falls), _append_channel(k, falls)
        return q, k, v, multiplicity_of(k, None, present), dtype

    def _falls(
        self, k: Tensor, v: Tensor, present: Tensor | None, extras: dict[str, Any]
    ) -> Float[Tensor, "#batch heads tokens 1"]:
        """Return the slope of each head times the position of each token, counted from 1."""
        slopes = fill_extras(self, k, k, v, extras)["slopes"].double()
        return slopes[:, None, None] * presence_mask(present, k).cumsum(-1)[:, None, :, None]

    def _decay_state(self, sums: Tensor, reference: Tensor, fall: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        """Return the state after these tokens, in float32 at least: sums, and references if there are any."""
        reference = reference - fall
        dtype = torch.promote_types(v.dtype, torch.float32)
        if not isinstance(self.inner, LogFeatureMechanism):
            return ((sums * reference.mT.exp()).to(dtype),)
        return sums.to(dtype), reference.to(dtype)


def _append_channel(x: Tensor, channel: Tensor) -> Tensor:
    return torch.cat([x, channel.expand(*x.shape[:-1], 1)], dim=-1)
