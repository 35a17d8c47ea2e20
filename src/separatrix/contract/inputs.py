"""What mechanisms are tried on: small seeded tokens, and the bounds results are held to."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from separatrix.contract._base import Broken
from separatrix.mechanisms import Causality, Mechanism

BATCH, HEADS, WIDTH, FEATURES = 2, 3, 5, 7
LENGTH = 13
LENGTHS = (1, 2, 7, 33, 66)
"""One token, odd lengths, and lengths beyond the usual chunk sizes."""
SLACK = 64
"""Two ways to the same number may differ by this many units of rounding."""


def tokens(
    queries: int = LENGTH,
    keys: int | None = None,
    dtype: torch.dtype = torch.float64,
    signed: bool = False,
    shape: tuple[int, int, int, int] = (BATCH, HEADS, WIDTH, FEATURES),
    seed: int = 1,
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values; positive unless `signed`, since some kernels need positive logits."""
    generator = torch.Generator().manual_seed(seed)
    batch, heads, width, features = shape
    keys = queries if keys is None else keys

    def draw(*size: int) -> Tensor:
        if signed:
            return torch.randn(size, generator=generator, dtype=torch.float64).to(dtype)
        return (torch.rand(size, generator=generator, dtype=torch.float64) + 0.1).to(dtype)

    return (
        draw(batch, heads, queries, width),
        draw(batch, heads, keys, width),
        draw(batch, heads, keys, features),
    )


def modes(mechanism: Mechanism) -> tuple[bool, ...]:
    """The values of `causal` that a mechanism takes."""
    return {
        Causality.EITHER: (False, True),
        Causality.ALWAYS: (True,),
        Causality.NEVER: (False,),
    }[mechanism.causality]


def attender(mechanism: Mechanism, causal: bool) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """The fast form as a function of tokens alone."""
    return lambda q, k, v: mechanism(q, k, v, causal=causal)


def rounding(dtype: torch.dtype, slack: float = SLACK) -> float:
    """The bound for two ways to the same number in `dtype`."""
    return slack * torch.finfo(dtype).eps


def require_equal(found: Tensor, expected: Tensor, bound: float, what: str) -> None:
    """Broken unless `found` is `expected` within `bound`, times the largest number expected if above 1."""
    if found.shape != expected.shape:
        raise Broken(f"{what}: shape {tuple(found.shape)}, expected {tuple(expected.shape)}")
    found, expected = found.detach().double(), expected.detach().double()
    require_finite(expected, f"{what} (expected value)")
    require_finite(found, what)
    if not found.numel():
        return
    allowed = bound * max(1.0, expected.abs().max().item())
    gap = (found - expected).abs()
    if gap.max().item() > allowed:
        raise Broken(f"{what}: off by {gap.max().item():.3g}, allowed {allowed:.1g}, at {place_of(gap)}")


def require_finite(found: Tensor, what: str) -> None:
    """Broken if there is a NaN or an infinity."""
    bad = ~found.isfinite()
    if bad.any():
        first = place_of(bad.double())
        raise Broken(
            f"{what}: {int(bad.sum())} of {bad.numel()} numbers are not finite, the first at {first}"
        )


def place_of(size: Tensor) -> str:
    """Where the largest number stands, in words."""
    index = torch.unravel_index(size.argmax(), size.shape)
    names = ("batch", "head", "token", "feature")
    return ", ".join(f"{name} {int(i)}" for name, i in zip(names, index, strict=False)) or "the only number"
