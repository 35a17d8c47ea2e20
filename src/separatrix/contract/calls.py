"""Calls of a mechanism: all checks call it here, so that extras and sizes are handled in one place.

For mechanisms with extras, every check is run with the default extras and once more with random ones. Random
extras are equal for all elements of a batch, and for the first tokens whatever the number of tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor

from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.extras import Extra, TokenSizes

MAX_EXTRA_TOKENS = 1100
"""Random extras are drawn for this number of tokens, and cut: a prefix of the tokens has the same ones."""

random_extras = ContextVar("random_extras", default=False)
"""Whether mechanisms are called with random extras instead of their defaults."""


@dataclass
class LargestCall:
    """The largest sizes with which mechanisms were called."""

    tokens: int = 0
    width: int = 0


largest_call: ContextVar[LargestCall | None] = ContextVar("largest_call", default=None)
"""Records the largest sizes with which mechanisms are called."""


def call_fast(
    mechanism: Mechanism,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    counts: Tensor | None = None,
    causal: bool = False,
    changed: Tensor | None = None,
    positions: Tensor | None = None,
    **options: Any,
) -> Tensor:
    """Call the fast form, with `first` and `present` as options.

    Where `changed` (batch, tokens) is true, other random extras are used. `positions` are those of the given
    tokens among all tokens for which extras were drawn.
    """
    extras = make_extras(mechanism, q, k, v, changed, positions)
    out = mechanism(q, k, v, counts, causal, **options, **extras)
    if (largest := largest_call.get()) is not None:
        largest.tokens, largest.width = max(largest.tokens, k.shape[-2]), max(largest.width, k.shape[-1])
    return out


def call_definition(
    mechanism: Mechanism, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None = None, causal: bool = False
) -> Tensor:
    """Call the definition."""
    return mechanism.definition(q, k, v, counts, causal, **make_extras(mechanism, q, k, v))


def bind_fast(mechanism: Mechanism, causal: bool) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Return the fast form as a function of q, k and v alone."""
    # A lambda would be one more frame of ours in each call of a user's function.
    return partial(call_fast, mechanism, causal=causal)


FORMS = {"fast form": call_fast, "definition": call_definition}
"""Both forms, by their names in messages."""


def make_extras(
    mechanism: Mechanism,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    changed: Tensor | None = None,
    positions: Tensor | None = None,
) -> dict[str, Any]:
    """Return the extras of a call: none, so that the defaults are used, or random ones."""
    if not random_extras.get():
        return {}
    sizes = mechanism.sizes(q, k, v)
    return {extra.name: _cut_extra(extra, sizes, changed, positions) for extra in mechanism.extras}


def _cut_extra(extra: Extra, sizes: TokenSizes, changed: Tensor | None, positions: Tensor | None) -> Tensor:
    longest = replace(sizes, batch=1, tokens=max(MAX_EXTRA_TOKENS, sizes.tokens))
    if not extra.per_token:
        return _draw_extra(extra, longest, 1)[tuple(slice(size) for size in extra.shape(sizes))]
    if positions is None:
        positions = torch.arange(sizes.tokens)
    value, alternative = (_draw_extra(extra, longest, seed)[..., positions, :] for seed in (1, 2))
    if changed is not None:
        value = torch.where(changed[:, None, :, None], alternative, value)
    return value.expand(sizes.batch, -1, -1, -1)


@lru_cache(maxsize=64)
def _draw_extra(extra: Extra, sizes: TokenSizes, seed: int) -> Tensor:
    return extra.draw(sizes, torch.Generator().manual_seed(seed))
