"""Rotary positions, for any mechanism: queries and keys are rotated by their positions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from separatrix.core.parameters import exact
from separatrix.core.tensors import Float, Int64, Tensor, torch
from separatrix.mechanisms._methods import attention_method, upcast
from separatrix.mechanisms._types import Attended, CallOptions, Keys, Queries, Values
from separatrix.mechanisms.decoding import Answers, DecodingMemory, NewTokens, Past, positions_of
from separatrix.mechanisms.positional._wrapper import WrapperMechanism


class Rotary(WrapperMechanism):
    """The mechanism `inner` on `R_i q_i` and `R_j k_j`: logits are `<q_i, R_{j-i} k_j>` (arXiv 2104.09864).

    R_t rotates channels 2c and 2c + 1 by the angle `t base^(-2c/width)`, where t is the position of the token
    among those present; of an odd width the last channel stays. `inner` is any mechanism, with one parameter
    at most as in rotary:inner=power:beta=4. It takes the extras of that mechanism; if they are not given,
    they come from the keys before the rotation. Logits then have both signs, which not every kernel supports.

    >>> from separatrix.mechanisms import mechanism_named
    >>> rotate(torch.tensor([[[[1.0, 0.0], [1.0, 0.0]]]]), first=0)[0, 0, 1]
    tensor([0.5403, 0.8415])
    >>> mechanism_named("rotary:inner=gla").causality.name
    'ALWAYS'
    """

    name = "rotary"
    formula = "another mechanism on R_i q_i and R_j k_j, R_t turning pairs of channels by t base^(-2c/width)"
    source = "[rec] RoFormer, arXiv 2104.09864"
    base: Fraction = exact(10_000, at_least=1, at_most=10**12)
    """The slowest pair of channels rotates by about 1/base per token."""

    def __init__(self, /, **parameters: object) -> None:
        super().__init__(**parameters)
        vars(self).update(causality=self.inner_mechanism.causality)

    def sensitivity(self, q: Queries, k: Keys, causal: bool = False, order: int = 0) -> float:
        return self.inner_mechanism.sensitivity(*self._rotate(q, k, 0), causal, order)

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        q, k = self._rotate(q, k, options.first)
        positions = options.positions()
        return self.inner_mechanism.definition(q, k, v, causal=options.causal, **positions, **extras)

    @attention_method
    def __call__(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        """Compute the fast form of the inner mechanism."""
        q, k = self._rotate(q, k, options.first)
        return self.inner_mechanism(q, k, v, causal=options.causal, **options.positions(), **extras)

    @property
    def fixed_state(self) -> bool:
        return self.inner_mechanism.fixed_state

    def decoding_memory(self, tokens: int, heads: int, width: int, features: int, dtype: torch.dtype) -> DecodingMemory:
        return self.inner_mechanism.decoding_memory(tokens, heads, width, features, dtype)

    def decode(self, past: Past | None, new: NewTokens) -> tuple[Answers, Past]:
        """Rotate tokens once, as they are read; the memory of the inner mechanism is then enough."""
        extras, positions = new.all_extras(self), positions_of(past, new.k, new.present)
        q, k = (rotate(upcast(x)[0], positions, float(self.base)).to(x.dtype) for x in (new.q, new.k))
        return self.inner_mechanism.decode(past, replace(new, q=q, k=k, extras=extras))

    def _rotate(self, q: Queries, k: Keys, first: int) -> tuple[Queries, Keys]:
        return rotate(q, first, float(self.base)), rotate(k, 0, float(self.base))


def rotate(
    x: Float[Tensor, "batch heads tokens width"], first: int | Int64[Tensor, "batch tokens"], base: float = 1e4
) -> Float[Tensor, "batch heads tokens width"]:
    """Rotate each pair of channels by angle times position, counted from `first` or as given."""
    pairs, width = x.shape[-1] // 2, x.shape[-1]
    # Positions and angles are in float64: an angle of 1e5 in float32 is off by up to 0.004.
    if isinstance(first, int):
        positions = torch.arange(first, first + x.shape[-2], dtype=torch.float64, device=x.device)[None]
    else:
        positions = first.double()
    speeds = base ** (-2 * torch.arange(pairs, dtype=torch.float64, device=x.device) / width)
    angles = positions[:, None, :, None] * speeds
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first_channels, second_channels = x[..., 0 : 2 * pairs : 2], x[..., 1 : 2 * pairs : 2]
    turned_first = cos * first_channels - sin * second_channels
    turned_second = sin * first_channels + cos * second_channels
    rotation = torch.stack([turned_first, turned_second], dim=-1).flatten(-2)
    return torch.cat([rotation, x[..., 2 * pairs :]], dim=-1)
