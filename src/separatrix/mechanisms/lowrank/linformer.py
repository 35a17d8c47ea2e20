"""Linformer: keys and values projected to a fixed number."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

from separatrix.core.parameters import Constraint, Natural, Parameters
from separatrix.core.tensors import Float, Tensor, functional, torch
from separatrix.mechanisms._base import (
    Attended,
    Causality,
    Counts,
    Keys,
    Mechanism,
    Queries,
    Values,
    form,
)
from separatrix.mechanisms._limits import SEED
from separatrix.mechanisms.extras import KEY_PROJECTION, VALUE_PROJECTION, Sizes

Projection = Float[Tensor, "rank keys"]


class LinformerParameters(Parameters):
    """How many summaries of the keys, and from which seed."""

    owner = "linformer"
    rank: Natural = 64
    seed: Natural = 0
    constraints: ClassVar[tuple[Constraint, ...]] = (
        Constraint(
            ("rank",),
            lambda p: 1 <= p.rank <= 1 << 20,
            lambda p: f"rank={p.rank} is out of range; rank must be between 1 and {1 << 20}",
        ),
        SEED,
    )


class Linformer(Mechanism):
    """`softmax(q (E k)ᵀ) (F v)`, with E and F of rank × n numbers from N(0, 1/rank) [rec].

    E and F are learned in Linformer, and can be given, (rank, keys). Else they are the random ones of its
    theorem, drawn for the seed and the number of keys. The weights on the values, `softmax(q (E k)ᵀ) F`,
    need not add up to 1.

    >>> x = torch.ones(1, 1, 5, 2)
    >>> Linformer(rank=3)(x, x, x).shape
    torch.Size([1, 1, 5, 2])
    """

    name = "linformer"
    formula = "softmax(q (E k)^T) F v, E and F random, rank x n"
    source = "[rec] Linformer, arXiv 2006.04768"
    family = "low rank"
    schema = LinformerParameters
    parameters: LinformerParameters
    causality = Causality.NEVER
    permutation_equivariant = False
    takes_counts = False
    extras = (KEY_PROJECTION, VALUE_PROJECTION)

    @property
    def normalised(self) -> bool:
        return False

    def projections(self, keys: int) -> tuple[Projection, Projection]:
        """E and F, in float64."""
        return _drawn(self.parameters.rank, keys, self.parameters.seed)

    def sizes(self, q: Queries, k: Keys, v: Values) -> Sizes:
        return replace(super().sizes(q, k, v), rank=self.parameters.rank)

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        of_keys, of_values = (more[name].to(v) for name in "EF")
        weights: Tensor = (q @ (of_keys @ k).mT).softmax(-1) @ of_values
        return weights @ v

    @form
    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        """torch's kernel on the summaries: memory is linear in the tokens."""
        of_keys, of_values = (more[name].to(v) for name in "EF")
        return functional.scaled_dot_product_attention(q, of_keys @ k, of_values @ v, scale=1.0)


@lru_cache(maxsize=8)
def _drawn(rank: int, keys: int, seed: int) -> tuple[Projection, Projection]:
    generator = torch.Generator().manual_seed(seed)
    both = torch.randn(2, rank, keys, generator=generator, dtype=torch.float64) / math.sqrt(rank)
    return both[0], both[1]
