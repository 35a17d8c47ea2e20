"""Feature maps with random directions, drawn once for a seed."""

from __future__ import annotations

from functools import lru_cache

from separatrix.core.parameters import natural, random_seed
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms.features._base import LogFeatureMechanism


class RandomFeatureMechanism(LogFeatureMechanism):
    """A feature map with random directions."""

    features: int = natural(256, at_least=1, at_most=1 << 20)
    """The number of features."""
    seed: int = random_seed()
    """The seed of the directions."""


@lru_cache(maxsize=64)
def gaussian(rows: int, width: int, seed: int) -> Float[Tensor, "rows width"]:
    """Return independent standard normal directions, in float64."""
    # Drawn in float64, so that all number formats round the same directions.
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, width, generator=generator, dtype=torch.float64)


@lru_cache(maxsize=64)
def orthogonal(rows: int, width: int, seed: int) -> Float[Tensor, "rows width"]:
    """Return standard normal directions that are orthogonal within every `width` of them.

    Q of a QR decomposition is uniform over the rotations only once the diagonal of R is positive; without
    that the estimates are biased.
    """
    generator = torch.Generator().manual_seed(seed)
    blocks = -(-rows // width)
    normals = torch.randn(blocks, width, width, generator=generator, dtype=torch.float64)
    rotations, triangles = torch.linalg.qr(normals)
    rotations = rotations * triangles.diagonal(dim1=-2, dim2=-1).sign()[..., None, :]
    lengths = torch.randn(rows, width, generator=generator, dtype=torch.float64).norm(dim=-1, keepdim=True)
    directions: Tensor = rotations.mT.reshape(-1, width)[:rows] * lengths
    return directions
