"""The known mechanisms that are most similar to another one, by their results on the same tokens."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from separatrix.analysis.cards.card import Neighbour
from separatrix.core.tensors import Tensor, torch
from separatrix.mechanisms import Causality, Mechanism, examples, mechanism_named

LENGTH, WIDTH = 600, 8
"""Long enough for windows and blocks of the usual sizes to leave something out."""
SCALES = (0.3, 1.0, 3.0)
"""Tokens are tried at several sizes: mechanisms that agree on small logits part on large ones."""


def find_neighbours(mechanism: Mechanism) -> list[Neighbour]:
    """Return the other known mechanisms that accept the same mask, nearest first; none if it raises."""
    is_causal = mechanism.causality is Causality.ALWAYS
    incompatible = Causality.NEVER if is_causal else Causality.ALWAYS
    with torch.no_grad():
        try:
            results = [mechanism.attend_any_size(*probe(scale), causal=is_causal) for scale in SCALES]
        except Exception:  # a user's mechanism may raise anything; the results on constructions report it
            return []
        neighbours = [
            Neighbour(candidate.spelled, _distance(results, _compute(type(candidate), candidate.spelled, is_causal)))
            for candidate in examples()
            if candidate.causality is not incompatible and candidate.spelled != mechanism.spelled
        ]
    # Rounded, so that mechanisms that are equal but for rounding errors keep the order of the list.
    return sorted(neighbours, key=lambda neighbour: round(neighbour.distance, 9))


def probe(scale: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return seeded positive queries and keys, and signed values."""
    generator = torch.Generator().manual_seed(7)
    q, k = torch.rand((2, 1, 1, LENGTH, WIDTH), generator=generator, dtype=torch.float64) * scale
    v = torch.randn((1, 1, LENGTH, WIDTH), generator=generator, dtype=torch.float64)
    return q, k, v


@lru_cache(maxsize=256)
def _compute(kind: type[Mechanism], spelling: str, causal: bool) -> tuple[Tensor, ...]:
    """Compute the results of a known mechanism on the probe, once per process.

    The class is part of the key, so that a mechanism that is replaced under the same name is computed again.
    """
    mechanism = mechanism_named(spelling)
    return tuple(mechanism(*probe(scale), causal=causal) for scale in SCALES)


def _distance(results: Sequence[Tensor], references: Sequence[Tensor]) -> float:
    """Return the size of the difference over the mean size of both, the worst over the scales."""
    return max(
        float(2 * (a - b).norm() / (a.norm() + b.norm()).clamp_min(1e-300))
        for a, b in zip(results, references, strict=True)
    )
