"""Comparisons of results: within rounding, relative to the largest number, with the place of the difference."""

from __future__ import annotations

import torch
from torch import Tensor

from separatrix.contract._base import Broken, NotFinite, required_precision

SLACK = 64
"""Two ways to compute a number may differ by this many units of rounding."""


def rounding_bound(dtype: torch.dtype, slack: float = SLACK) -> float:
    """Return the tolerance for two ways to compute a number in `dtype`."""
    return slack * max(torch.finfo(dtype).eps, torch.finfo(required_precision()).eps)


def require_close(actual: Tensor, reference: Tensor, tolerance: float, message: str) -> None:
    """Raise Broken unless two results agree within the tolerance, times the largest reference if above 1."""
    if actual.shape != reference.shape:
        raise Broken(f"{message}: shape {tuple(actual.shape)}, expected {tuple(reference.shape)}")
    actual, reference = actual.detach().double(), reference.detach().double()
    require_finite(reference, f"{message} (expected value)")
    require_finite(actual, message)
    if not actual.numel():
        return
    # Relative to the largest result, not to each: small results are differences of large terms.
    limit = tolerance * largest_size(reference)
    gap = (actual - reference).abs()
    if gap.max().item() > limit:
        raise Broken(f"{message}: off by {gap.max().item():.3g}, allowed {limit:.1g}, at {locate_largest(gap)}")


def largest_size(reference: Tensor) -> float:
    """Return the largest absolute value, or 1 if that is smaller: tolerances are relative to it."""
    return max(1.0, reference.abs().max().item())


def require_finite(actual: Tensor, message: str) -> None:
    """Raise NotFinite if there is a NaN or an infinity."""
    bad = ~actual.isfinite()
    if bad.any():
        place = locate_largest(bad.double())
        raise NotFinite(f"{message}: {int(bad.sum())} of {bad.numel()} numbers are not finite, the first at {place}")


def locate_largest(size: Tensor) -> str:
    """Return the position of the largest number, in words."""
    index = torch.unravel_index(size.argmax(), size.shape)
    names = ("batch", "head", "token", "feature")
    return ", ".join(f"{name} {int(i)}" for name, i in zip(names, index, strict=False)) or "the only number"
