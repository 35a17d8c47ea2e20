"""The state that must be kept of the tokens read so far to decode the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.decoding import DecodingMemory

if TYPE_CHECKING:
    import torch


def decoding_state(mechanism: Mechanism, tokens: int, heads: int, width: int, dtype: torch.dtype) -> DecodingMemory:
    """Return the size and the kind of what one layer keeps of this many tokens, at sizes that it supports.

    The bytes are those of a layer's cache (`Mechanism.decoding_memory`): states in float32 at least, keys and
    values in `dtype`, and the per-token extras that the mechanism still needs.

    >>> import torch
    >>> from separatrix.mechanisms import mechanism_named
    >>> for name in ("softmax", "window:size=8", "elu", "delta"):
    ...     memory = decoding_state(mechanism_named(name), 1000, heads=2, width=4, dtype=torch.bfloat16)
    ...     print(name, memory.bytes, memory.kind)
    softmax 32000 cache of all keys and values
    window:size=8 224 cache of the keys and values that later tokens can still read
    elu 160 state of fixed size
    delta 128 state of fixed size
    """
    return mechanism.decoding_memory(
        tokens,
        mechanism.fixed_heads or heads,
        mechanism.fixed_width or width,
        mechanism.fixed_features or mechanism.fixed_width or width,
        dtype,
    )
