"""Tokens in d-2 blocks of t, one of them with a spike: the base class of `spike`, `cross` and `location`."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from separatrix.constructions._base import (
    GROWING_SPIKE,
    Amplitudes,
    Construction,
    Exchangeable,
    Label,
    Probe,
    Tokens,
    amplitude,
    reader_threshold,
    sign_vector_count,
)
from separatrix.core.parameters import Constraint, exact, is_absent, natural
from separatrix.core.tensors import Float, Tensor, torch


def _neighbours(n: int, step: int) -> str:
    below = n - n % step
    return " or ".join(f"n={value}" for value in (below, below + step) if value >= 3)


WHOLE_BLOCKS = Constraint(
    ("n", "d"),
    lambda p: p.n % (p.d - 2) == 0,
    lambda p: f"n={p.n} is not a multiple of d-2={p.d - 2}; try {_neighbours(p.n, p.d - 2)}",
)
EXAMPLE: dict[str, object] = {"n": 1000, "d": 102, "m": 12, "a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1"}
"""The reference point of the paper's construction."""


class BlockConstruction(Construction):
    """n tokens of width d in d-2 equal blocks: dense tokens and groups of the matrix A, which has a spike.

    The spike is a0 in D0 and a1 in D1; b marks a token's block, and every token has c.
    """

    n: int = natural(at_least=3)
    d: int = natural(at_least=4)
    m: int = sign_vector_count()
    a0: Fraction = exact(at_least=0)
    a1: Fraction = amplitude()
    b: Fraction = amplitude()
    c: Fraction = amplitude()
    tau: Fraction = reader_threshold(None)
    relations = (GROWING_SPIKE, WHOLE_BLOCKS)
    step_name = "d−2"
    special = "the spike"

    @classmethod
    def fill_derived(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Fill in tau = c + 1/10 unless tau is given."""
        if is_absent(values["tau"]):
            values["tau"] = values["c"] + Fraction(1, 10)
        return values

    @property
    def exchangeable(self) -> Exchangeable:
        """Blocks are equal, and only its column distinguishes a block."""
        return Exchangeable.TOKENS

    @property
    def step(self) -> int:
        return self.d - 2

    @property
    def signs(self) -> int:
        return self.d

    @property
    def unit(self) -> float:
        return math.sqrt(math.log(self.n))

    def dense_width(self) -> int:
        return self.d

    def group_count(self) -> int:
        return self.d - 1

    @property
    def block_size(self) -> int:
        """t, the tokens in a block."""
        return self.n // (self.d - 2)

    @abstractmethod
    def tokens(self, matrix: Tensor, spike: int, counts: Tensor | None = None) -> Tokens:
        """Return the rows of A as values, with their queries and keys; `spike` is the row of the spike."""

    def dense(self, label: Label, spike: int, dtype: torch.dtype) -> Tokens:
        return self.tokens(self.matrix(label, spike, dtype), spike)

    def token_groups(self, label: Label, dtype: torch.dtype, spike: int = 0) -> Tokens:
        matrix, counts = self.group_matrix(label, dtype, spike)
        return self.tokens(matrix, 0, counts)

    def matrix(self, label: Label, spike: int, dtype: torch.dtype) -> Float[Tensor, "n d"]:
        """Return the n-by-d matrix A of D0 or D1."""
        return self._fill(torch.arange(self.n) // self.block_size, label, spike, dtype)

    def group_matrix(self, label: Label, dtype: torch.dtype, spike: int) -> tuple[Tensor, Tensor]:
        """Return the distinct rows of A, with counts: the spike, its mates, one for each other block."""
        # With blocks of one token the spike has no mates, and their row is left out.
        size, mates = self.block_size, int(self.block_size > 1)
        # The rows of the spike's block come first.
        block = (torch.arange(self.d - 2 + mates) - mates).clamp(min=0)
        rows = self._fill((block + spike // size) % (self.d - 2), label, 0, dtype)
        counts = torch.tensor([float(count) for count in self.group_counts(label)], dtype=dtype)
        return rows, counts

    def _fill(self, block: Tensor, label: Label, spike: int, dtype: torch.dtype) -> Tensor:
        """Return rows of A for tokens of these blocks, with the spike in row `spike`."""
        rows = torch.zeros(len(block), self.d, dtype=dtype)
        rows[torch.arange(len(block)), block + 1] = float(self.b) * self.unit
        rows[:, -1] = float(self.c) * self.unit
        rows[spike, 0] = self.spike(label) * self.unit
        return rows

    def group_counts(self, label: Label) -> tuple[int, ...]:
        size = self.block_size
        return 1, *([size - 1] if size > 1 else []), *[size] * (self.d - 3)

    def spike(self, label: Label) -> float:
        """Return the spike's amplitude, a0 or a1."""
        return float(self.a1 if label else self.a0)

    @classmethod
    def amplitudes(cls, values: Mapping[str, Any]) -> Amplitudes:
        return Amplitudes((values["a0"], values["a1"]), values["b"], values["c"], values["tau"])

    @classmethod
    def probe(cls, values: Mapping[str, Any]) -> Probe:
        """With all signs +, the block signs give b and the last column c, whatever the attention is."""
        return Probe(values["b"] + values["c"], (values["a0"], values["a1"]))
