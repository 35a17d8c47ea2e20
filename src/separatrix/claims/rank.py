"""Theory 6.4, rank: a score matrix of few features is no permutation."""

from __future__ import annotations

import math

import scipy

from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import Points, point
from separatrix.core.tensors import Tensor, torch
from separatrix.mechanisms import Mechanism, Softmax, mechanism_named
from separatrix.mechanisms.features._base import FeatureMechanism

MAPS = ("identity-features", "relu-features", "elu", "hedgehog", "dpfp", "based", "favor:features=16")
WIDTH, TOKENS = 3, 96
SMALLEST = 1e-10
"""Singular values below this share of the largest are rounding."""


def weights(mechanism: Mechanism, q: Tensor, k: Tensor) -> Tensor:
    """The attention matrix, one row a query."""
    matrix: Tensor = mechanism.definition(q, k, torch.eye(TOKENS, dtype=q.dtype)[None, None])[0, 0]
    return matrix


def rank(matrix: Tensor) -> int:
    """The number of singular values that are not rounding."""
    found = torch.linalg.svdvals(matrix)
    return int((found > SMALLEST * found[0]).sum())


def from_permutation(matrix: Tensor) -> float:
    """The Frobenius distance to the nearest permutation matrix."""
    rows, columns = scipy.optimize.linear_sum_assignment(matrix.numpy(), maximize=True)
    nearest = torch.zeros_like(matrix)
    nearest[rows, columns] = 1
    return float((matrix - nearest).norm())


@claim("feature-rank", "6.4", "ours")
def feature_rank() -> Finding:
    """rank(phi(Q) phi(K)ᵀ), rows divided by their sums or not, is at most the number r of features at any n,
    so it stays sqrt(n - r) away from every permutation (Frobenius norm; Eckart and Young); softmax routes
    one.

    Random tokens through every map; then a ring of tokens, each asking for the next, through softmax.
    """
    draw = torch.Generator().manual_seed(0)
    q, k = (torch.randn(1, 1, TOKENS, WIDTH, generator=draw, dtype=torch.float64) for _ in range(2))
    points = Points(map_point(each, q, k) for each in MAPS)
    ranks, routed = ", ".join(f"{x:.0f}" for x in points.values("rank")), routing_point()
    return Points([*points, routed]).conclude(
        f"{TOKENS} random tokens of width {WIDTH}: rank {ranks} for {', '.join(MAPS)}, so "
        f"{points.smallest('away'):.1f} or more from every permutation; softmax on tokens of width 2 has "
        f"rank {TOKENS} and comes within {Points([routed]).largest('away'):.0e} of one",
        f"rank {points.smallest('room'):.0f} to {points.largest('room'):.0f} below the number r of "
        f"features; distance {points.smallest('excess'):.2f} or more above sqrt(n - r)",
    )


def map_point(name: str, q: Tensor, k: Tensor) -> Point:
    """Holds if the rank is at most the number of features, and permutations are as far off as that says."""
    mechanism = mechanism_named(name)
    assert isinstance(mechanism, FeatureMechanism)
    features, matrix = mechanism.features(k, "key").shape[-1], weights(mechanism, q, k)
    found, away = rank(matrix), from_permutation(matrix)
    excess = away - math.sqrt(TOKENS - min(features, TOKENS))
    return point(
        {"mechanism": name, "n": TOKENS, "width": WIDTH, "features": features},
        found <= features < TOKENS and excess >= 0,
        rank=found,
        room=features - found,
        away=away,
        excess=excess,
    )


def routing_point() -> Point:
    """Holds if softmax routes every token of a ring to the next one."""
    angles = 2 * math.pi * torch.arange(TOKENS, dtype=torch.float64) / TOKENS
    ring = 100 * torch.stack([angles.cos(), angles.sin()], -1)[None, None]
    matrix = weights(Softmax(), ring, ring.roll(1, -2))
    found, away = rank(matrix), from_permutation(matrix)
    holds = found == TOKENS and away < 1e-6
    return point({"mechanism": "softmax", "n": TOKENS, "width": 2}, holds, rank=found, away=away)
