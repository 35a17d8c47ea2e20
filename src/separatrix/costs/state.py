"""What a mechanism carries from token to token when it decodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.features._base import FeatureMechanism
from separatrix.mechanisms.recurrent._base import RecurrentMechanism, bytes_of

STATE, CACHE = "state, measured", "key-value cache it would have to keep"
SUMS = "sums over the past, all that it needs"
FIRST = 16
"""Tokens after which a state is measured first; once twice as many change nothing, it has its full size."""


@dataclass(frozen=True)
class Kept:
    """What is kept of so many tokens by the heads of one layer, and what that is."""

    bytes: int
    kind: str
    """STATE, CACHE or SUMS."""


def kept(mechanism: Mechanism, tokens: int, heads: int, width: int, dtype: torch.dtype) -> Kept:
    """What the heads of one layer keep of so many tokens in a number format, at the least.

    A state is measured, a cache counted; feature maps need no more than their sums, which are kept, as states
    are, in float32 for 16-bit tokens. The smaller of cache and sums counts.

    >>> from separatrix.mechanisms import mechanism_named
    >>> for name in ("softmax", "window:size=8", "elu", "delta"):
    ...     print(name, kept(mechanism_named(name), 1000, heads=2, width=4, dtype=torch.bfloat16))
    softmax Kept(bytes=32000, kind='key-value cache it would have to keep')
    window:size=8 Kept(bytes=256, kind='key-value cache it would have to keep')
    elu Kept(bytes=160, kind='sums over the past, all that it needs')
    delta Kept(bytes=128, kind='state, measured')
    """
    heads, width = mechanism.fixed_heads or heads, mechanism.fixed_width or width
    if isinstance(mechanism, RecurrentMechanism):
        return Kept(_settled(mechanism, tokens, heads, width, dtype), STATE)
    one = torch.ones(1, heads, 1, width, dtype=dtype)
    cache = cache_bytes(mechanism, tokens, one, one)
    carried = state_bytes(mechanism, [tokens], one, one, one)[tokens]
    return Kept(carried, SUMS) if carried < cache else Kept(cache, CACHE)


def _settled(mechanism: RecurrentMechanism, tokens: int, heads: int, width: int, dtype: torch.dtype) -> int:
    """The bytes of a state after so many tokens, or after as many as it takes to grow no more."""
    length = min(FIRST, tokens)
    while True:
        longer = min(2 * length, tokens)
        some = torch.full((1, heads, longer, width), 1 / width, dtype=dtype)
        found = state_bytes(mechanism, (length, longer), some, some, some)
        if found[length] == found[longer]:
            return found[longer]
        length = longer


def kind_of_state(mechanism: Mechanism) -> str:
    """Whether the bytes are those of a state, or of the cache that stands in for one."""
    summed = isinstance(mechanism, FeatureMechanism) and mechanism.sums_up
    return STATE if summed or isinstance(mechanism, RecurrentMechanism) else CACHE


def state_bytes(
    mechanism: Mechanism, lengths: Sequence[int], q: Tensor, k: Tensor, v: Tensor
) -> dict[int, int]:
    """The bytes carried after so many tokens: of the state, measured, or else those of k and v."""
    if isinstance(mechanism, FeatureMechanism) and mechanism.sums_up:
        with torch.no_grad():
            held = bytes_of(mechanism.remembered(k[..., :1, :], v[..., :1, :]))
        return dict.fromkeys(lengths, held)
    if not isinstance(mechanism, RecurrentMechanism):
        return {n: cache_bytes(mechanism, n, k, v) for n in lengths}
    found = {}
    with torch.no_grad():
        state = mechanism.init_state(q, v)
        for t in range(max(lengths, default=0)):
            state, _ = mechanism.step(state, q[..., t, :], k[..., t, :], v[..., t, :])
            if t + 1 in lengths:
                found[t + 1] = mechanism.state_bytes(state)
    return found


def cache_bytes(mechanism: Mechanism, tokens: int, k: Tensor, v: Tensor) -> int:
    """The bytes of so many keys and values, or of the last that a query can see."""
    per_token = sum(x.shape[-3] * x.shape[-1] * x.element_size() for x in (k, v))
    return per_token * (tokens if mechanism.reach is None else min(tokens, mechanism.reach))
