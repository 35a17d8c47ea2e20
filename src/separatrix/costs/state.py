"""What a mechanism carries from token to token when it decodes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.recurrent._base import RecurrentMechanism

STATE, CACHE = "state, measured", "key-value cache it would have to keep"


def kind_of_state(mechanism: Mechanism) -> str:
    """Whether the bytes are those of a state, or of the cache that stands in for one."""
    return STATE if isinstance(mechanism, RecurrentMechanism) else CACHE


def state_bytes(
    mechanism: Mechanism, lengths: Sequence[int], q: Tensor, k: Tensor, v: Tensor
) -> dict[int, int]:
    """The bytes carried after so many tokens: measured by stepping through them, or those of all k and v."""
    if not isinstance(mechanism, RecurrentMechanism):
        per_token = sum(x.shape[-1] * x.element_size() for x in (k, v))
        return {n: n * per_token for n in lengths}
    found = {}
    with torch.no_grad():
        state = mechanism.init_state(q, v)
        for t in range(max(lengths, default=0)):
            state, _ = mechanism.step(state, q[..., t, :], k[..., t, :], v[..., t, :])
            if t + 1 in lengths:
                found[t + 1] = mechanism.state_bytes(state)
    return found
