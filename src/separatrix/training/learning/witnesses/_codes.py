"""Codes: directions for many symbols in few channels, as far from each other as they can be."""

from __future__ import annotations

from functools import lru_cache

from separatrix.core.tensors import Float, Tensor, functional, torch

Codes = Float[Tensor, "symbols channels"]

STEPS, RATE, POWER = 500, 0.05, 3
"""Of the descent; overlaps count by this power, so that the largest matter most."""


@lru_cache(maxsize=64)
def spread_codes(symbols: int, channels: int, positive: bool = False, seed: int = 0) -> Codes:
    """Unit vectors whose positive overlaps are small; with `positive`, none of them has a negative entry.

    With as many channels as symbols they are the axes. In fewer they are found by gradient descent on the
    sum of `max(<c_i, c_j>, 0)^3`: a negative overlap does no harm to a memory that adds up, since it speaks
    against a wrong answer. Nothing of the task is used but the two numbers.

    >>> spread_codes(2, 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    >>> codes = spread_codes(3, 2)  # three directions in the plane
    >>> max(float(codes[i] @ codes[j]) for i, j in ((0, 1), (0, 2), (1, 2))) < 0.02
    True
    """
    if symbols <= channels:
        return torch.eye(channels)[:symbols]
    free = torch.randn(symbols, channels, generator=torch.Generator().manual_seed(seed))
    own = torch.eye(symbols, dtype=torch.bool)
    with torch.enable_grad():
        free.requires_grad_()
        descent = torch.optim.Adam([free], lr=RATE)
        for step in range(STEPS):
            descent.param_groups[0]["lr"] = RATE * (1 - step / STEPS)
            codes = functional.normalize(free.abs() if positive else free, dim=-1)
            energy = (codes @ codes.T).masked_fill(own, 0).clamp(min=0).pow(POWER).sum()
            descent.zero_grad()
            energy.backward()  # type: ignore[no-untyped-call]
            descent.step()
    return functional.normalize(free.detach().abs() if positive else free.detach(), dim=-1)
