"""Random directions, drawn once for a seed."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

from separatrix.core.parameters import Constraint, Natural
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms._limits import SEED
from separatrix.mechanisms.features._base import FeatureParameters


class RandomParameters(FeatureParameters):
    """How many features, and from which seed."""

    owner = "this random feature map"
    features: Natural = 256
    seed: Natural = 0
    constraints: ClassVar[tuple[Constraint, ...]] = (
        Constraint(
            ("features",),
            lambda p: 1 <= p.features <= 1 << 20,
            lambda p: f"features={p.features} is out of range; there must be 1 to {1 << 20}",
        ),
        SEED,
    )


@lru_cache(maxsize=64)
def gaussian(rows: int, width: int, seed: int) -> Float[Tensor, "rows width"]:
    """Independent standard normal directions, in float64."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, width, generator=generator, dtype=torch.float64)


@lru_cache(maxsize=64)
def orthogonal(rows: int, width: int, seed: int) -> Float[Tensor, "rows width"]:
    """Standard normal directions, each by itself, but orthogonal within every `width` of them.

    Q of a QR decomposition is uniform over the rotations only once the diagonal of R is positive;
    without that the estimates are biased.
    """
    generator = torch.Generator().manual_seed(seed)
    blocks = -(-rows // width)
    drawn = torch.randn(blocks, width, width, generator=generator, dtype=torch.float64)
    rotations, triangles = torch.linalg.qr(drawn)
    rotations = rotations * triangles.diagonal(dim1=-2, dim2=-1).sign()[..., None, :]
    lengths = torch.randn(rows, width, generator=generator, dtype=torch.float64).norm(dim=-1, keepdim=True)
    directions: Tensor = rotations.mT.reshape(-1, width)[:rows] * lengths
    return directions
