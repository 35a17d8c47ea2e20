"""Linformer: keys and values projected to a fixed number."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

from separatrix.core.parameters import natural, random_seed
from separatrix.core.tensors import Float, Tensor, functional, torch
from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms._methods import attention_method
from separatrix.mechanisms._positions import Causality
from separatrix.mechanisms._types import Attended, CallOptions, Keys, Queries, Values
from separatrix.mechanisms.extras import KEY_PROJECTION, VALUE_PROJECTION, TokenSizes

Projection = Float[Tensor, "rank keys"]


class Linformer(Mechanism):
    """`softmax(q (E k)ᵀ) (F v)`, with E and F of rank × n numbers from N(0, 1/rank) [rec].

    E and F are learned in Linformer, and can be given, (rank, keys). Else they are the random ones of its
    theorem, drawn for the seed and the number of keys. The weights on the values, `softmax(q (E k)ᵀ) F`, need
    not add up to 1.

    >>> x = torch.ones(1, 1, 5, 2)
    >>> Linformer(rank=3)(x, x, x).shape
    torch.Size([1, 1, 5, 2])
    """

    name = "linformer"
    formula = "softmax(q (E k)^T) F v, E and F random, rank x n"
    source = "[rec] Linformer, arXiv 2006.04768"
    family = "low rank"
    causality = Causality.NEVER
    permutation_equivariant = False
    is_normalised = False
    extras = (KEY_PROJECTION, VALUE_PROJECTION)
    rank: int = natural(64, at_least=1, at_most=1 << 20)
    """The number of summaries of the keys."""
    seed: int = random_seed()
    """The seed of the random projections."""

    def projections(self, keys: int) -> tuple[Projection, Projection]:
        """Return E and F, in float64."""
        return _draw_projections(self.rank, keys, self.seed)

    def sizes(self, q: Queries, k: Keys, v: Values) -> TokenSizes:
        return replace(super().sizes(q, k, v), rank=self.rank)

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        key_projection, value_projection = (extras[name].to(v) for name in "EF")
        weights: Tensor = (q @ (key_projection @ k).mT).softmax(-1) @ value_projection
        return weights @ v

    @attention_method
    def __call__(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        """Apply torch's kernel to the summaries: memory is linear in the tokens."""
        keys, values = extras["E"].to(v) @ k, extras["F"].to(v) @ v
        return functional.scaled_dot_product_attention(q, keys, values, scale=1.0)


@lru_cache(maxsize=8)
def _draw_projections(rank: int, keys: int, seed: int) -> tuple[Projection, Projection]:
    # Drawn in float64, so that all number formats round the same projections.
    generator = torch.Generator().manual_seed(seed)
    projections = torch.randn(2, rank, keys, generator=generator, dtype=torch.float64) / math.sqrt(rank)
    return projections[0], projections[1]
