"""What must be kept of the tokens read so far to decode the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.decoding import CACHE, STATE, WINDOW, Kept

if TYPE_CHECKING:
    import torch

__all__ = ["CACHE", "STATE", "WINDOW", "Kept", "kept"]


def kept(mechanism: Mechanism, tokens: int, heads: int, width: int, dtype: torch.dtype) -> Kept:
    """What the heads of one layer keep of so many tokens, at the sizes that the mechanism can take.

    The bytes are those that a layer's cache really holds (`Mechanism.kept_after`): states in float32 at
    least, keys and values in `dtype`, and the per-token extras that the mechanism still needs.

    >>> import torch
    >>> from separatrix.mechanisms import mechanism_named
    >>> for name in ("softmax", "window:size=8", "elu", "delta"):
    ...     print(name, kept(mechanism_named(name), 1000, heads=2, width=4, dtype=torch.bfloat16))
    softmax Kept(bytes=32000, kind='cache of all keys and values')
    window:size=8 Kept(bytes=224, kind='cache of the keys and values that later tokens can still read')
    elu Kept(bytes=160, kind='state of fixed size')
    delta Kept(bytes=128, kind='state of fixed size')
    """
    return mechanism.kept_after(
        tokens,
        mechanism.fixed_heads or heads,
        mechanism.fixed_width or width,
        mechanism.fixed_features or mechanism.fixed_width or width,
        dtype,
    )
