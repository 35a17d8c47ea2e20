"""How the contract calls a mechanism: all checks go through here, so what a call is given is said once.

Every check is run as it is and, for mechanisms that take extras, once more with drawn ones. These are the
same for all elements of a batch, and the first tokens have the same ones however many follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.extras import Extra, TokenSizes
from separatrix.mechanisms.recurrent._base import RecurrentMechanism

MOST_TOKENS = 1100
"""Drawn extras are drawn for so many tokens, and cut."""

_drawn = ContextVar("drawn", default=False)


@dataclass
class Most:
    """The largest sizes that mechanisms were called with."""

    tokens: int = 0
    width: int = 0


_most: ContextVar[Most | None] = ContextVar("most", default=None)


@contextmanager
def sizes_called() -> Iterator[Most]:
    """Note the largest sizes that mechanisms are called with."""
    most = Most()
    before = _most.set(most)
    try:
        yield most
    finally:
        _most.reset(before)


@contextmanager
def extras_drawn(drawn: bool) -> Iterator[None]:
    """Call mechanisms with drawn extras, or with their defaults."""
    before = _drawn.set(drawn)
    try:
        yield
    finally:
        _drawn.reset(before)


def drawing() -> bool:
    """Whether extras are drawn."""
    return _drawn.get()


def fast(
    mechanism: Mechanism,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    counts: Tensor | None = None,
    causal: bool = False,
    changed: Tensor | None = None,
    kept: Tensor | None = None,
    **places: Any,
) -> Tensor:
    """The fast form, with `first` and `present` if these are given.

    Where `changed` (batch, tokens) is true, drawn extras are others. `kept` says which tokens these are of
    all for which extras were drawn.
    """
    out = mechanism(q, k, v, counts, causal, **places, **extras_of(mechanism, q, k, v, changed, kept))
    if (most := _most.get()) is not None:
        most.tokens, most.width = max(most.tokens, k.shape[-2]), max(most.width, k.shape[-1])
    return out


def defined(
    mechanism: Mechanism, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None = None, causal: bool = False
) -> Tensor:
    """The definition."""
    return mechanism.definition(q, k, v, counts, causal, **extras_of(mechanism, q, k, v))


def stepped(mechanism: RecurrentMechanism, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A recurrence token by token."""
    return mechanism.unrolled(q, k, v, **extras_of(mechanism, q, k, v))


def chunked(mechanism: RecurrentMechanism, q: Tensor, k: Tensor, v: Tensor, chunk: int) -> Tensor:
    """A recurrence in runs of tokens."""
    return mechanism.chunked(q, k, v, chunk, **extras_of(mechanism, q, k, v))[0]


FORMS = {"fast form": fast, "definition": defined}
"""Both forms, by the name they have in messages."""


def extras_of(
    mechanism: Mechanism,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    changed: Tensor | None = None,
    kept: Tensor | None = None,
) -> dict[str, Any]:
    """The extras of a call: none, so that defaults stand in, or drawn ones."""
    if not _drawn.get():
        return {}
    sizes = mechanism.sizes(q, k, v)
    return {extra.name: _of_call(extra, sizes, changed, kept) for extra in mechanism.extras}


def _of_call(extra: Extra, sizes: TokenSizes, changed: Tensor | None, kept: Tensor | None) -> Tensor:
    longest = replace(sizes, batch=1, tokens=max(MOST_TOKENS, sizes.tokens))
    if not extra.per_token:
        return _draw(extra, longest, 1)[tuple(slice(size) for size in extra.shape(sizes))]
    these = torch.arange(sizes.tokens) if kept is None else kept
    one, other = (_draw(extra, longest, seed)[..., these, :] for seed in (1, 2))
    found = one if changed is None else torch.where(changed[:, None, :, None], other, one)
    return found.expand(sizes.batch, -1, -1, -1)


@lru_cache(maxsize=64)
def _draw(extra: Extra, sizes: TokenSizes, seed: int) -> Tensor:
    return extra.draw(sizes, torch.Generator().manual_seed(seed))
