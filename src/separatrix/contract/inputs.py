"""Inputs of the checks: small seeded tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from separatrix.mechanisms import Causality, Mechanism

# The sizes differ pairwise, so that swapped axes raise an error or change the shape of a result.
BATCH, HEADS, WIDTH, FEATURES = 2, 3, 5, 7
LENGTH = 13
LENGTHS = (1, 2, 7, 33, 66)
"""One token, odd lengths, and lengths above the usual chunk sizes."""
LONG_LENGTHS = (3, 16, 17, 32, 48, 63, 64, 65, 96, 100, 101, 128, 257, 512, 1030)
"""Lengths at and above the usual and the larger chunk sizes, for inputs of NARROW shape."""
NARROW = (1, 1, 3, 2)
"""Batch, heads, width and features of long inputs."""

Shape = tuple[int, int, int, int]
"""Batch, heads, width and features."""


class Tokens(NamedTuple):
    """Queries, keys and values."""

    q: Tensor
    k: Tensor
    v: Tensor

    def map(self, function: Callable[[Tensor], Tensor]) -> Tokens:
        """Apply a function to queries, keys and values."""
        return Tokens(*map(function, self))

    def to(self, dtype: torch.dtype) -> Tokens:
        """Convert all three."""
        return self.map(lambda x: x.to(dtype))

    def rows(self, rows: int | slice | Tensor) -> Tokens:
        """Select some of the tokens, or one."""
        return self.map(lambda x: x[..., rows, :])

    def element(self, i: int) -> Tokens:
        """Select an element of the batch, as a batch of one."""
        return self.map(lambda x: x[i : i + 1])


def draw_tokens(
    queries: int = LENGTH,
    keys: int | None = None,
    dtype: torch.dtype = torch.float64,
    is_signed: bool = False,
    shape: Shape = (BATCH, HEADS, WIDTH, FEATURES),
    seed: int = 1,
) -> Tokens:
    """Draw queries, keys and values; positive by default, since some kernels require positive logits.

    The coordinates of tokens wider than usual are scaled down, so that logits have their usual size.
    """
    generator = torch.Generator().manual_seed(seed)
    batch, heads, width, features = shape
    keys = queries if keys is None else keys

    def draw(*size: int) -> Tensor:
        # Drawn in float64 and then converted: every format sees the same numbers.
        if is_signed:
            return torch.randn(size, generator=generator, dtype=torch.float64).to(dtype)
        return (torch.rand(size, generator=generator, dtype=torch.float64) + 0.1).to(dtype)

    scale = min(1.0, (WIDTH / width) ** 0.5)
    return Tokens(
        scale * draw(batch, heads, queries, width),
        scale * draw(batch, heads, keys, width),
        draw(batch, heads, keys, features),
    )


def fit_shape(
    mechanism: Mechanism, batch: int = BATCH, heads: int = HEADS, width: int = WIDTH, features: int = FEATURES
) -> Shape:
    """Return a shape of tokens, with the sizes that the mechanism requires in place of others."""
    return (batch, mechanism.fixed_heads or heads, mechanism.fixed_width or width, mechanism.fixed_features or features)


def fit_narrow(mechanism: Mechanism) -> Shape:
    """Return the shape of long inputs."""
    return fit_shape(mechanism, *NARROW)


def causal_modes(mechanism: Mechanism) -> tuple[bool, ...]:
    """Return the values of `causal` that a mechanism supports."""
    return {Causality.EITHER: (False, True), Causality.ALWAYS: (True,), Causality.NEVER: (False,)}[mechanism.causality]
