"""Which known mechanism another one behaves like, by what both do with the same tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from separatrix.mechanisms import Causality, Mechanism, examples, mechanism_named

LENGTH, WIDTH = 600, 8
"""Long enough for windows and blocks of the usual sizes to leave something out."""
SCALES = (0.3, 1.0, 3.0)
"""Tokens are tried at several sizes: mechanisms that agree on small logits part on large ones."""
SAME, NEAR = 1e-9, 0.05
"""Up to these distances a mechanism is another one, or near it."""


@dataclass(frozen=True)
class Likeness:
    """A known mechanism and how far it is: 0 is the same, 2 the opposite."""

    mechanism: str
    distance: float


def nearest_words(found: Sequence[Likeness], causal: bool = False) -> str:
    """Which known mechanism is near, in a sentence; that none is, where the nearest is not.

    Where a mechanism only looks back, the others were asked with a `causal` mask.

    >>> nearest_words([Likeness("softmax", 0.0), Likeness("linear", 0.4)])
    'on the tokens tried it is softmax.'
    >>> nearest_words([Likeness("softmax", 0.0), Likeness("retention", 0.4)], causal=True)
    'on the tokens tried it is softmax with a causal mask.'
    >>> nearest_words([Likeness("softmax", 0.31)])
    'it is like none of the known mechanisms; the nearest, softmax, differs by 31% of the results.'
    """
    if not found:
        return ""
    same = [_masked(each.mechanism, causal) for each in found[:3] if each.distance <= SAME]
    if same:
        return f"on the tokens tried it is {' and '.join(same)}."
    first, name = found[0], _masked(found[0].mechanism, causal)
    apart = f"{100 * first.distance:.2g}% of the results"
    if first.distance <= NEAR:
        return f"it is near {name}, and differs from it by {apart}."
    return f"it is like none of the known mechanisms; the nearest, {name}, differs by {apart}."


def _masked(name: str, causal: bool) -> str:
    """A known mechanism as it was asked; of one that only looks back by itself, no mask is spoken of."""
    masked = causal and mechanism_named(name).causality is Causality.EITHER
    return f"{name} with a causal mask" if masked else name


@torch.no_grad()
def likenesses(mechanism: Mechanism) -> list[Likeness]:
    """Every other known mechanism that can be asked the same question, nearest first; none if it breaks."""
    causal = mechanism.causality is Causality.ALWAYS
    wrong = Causality.NEVER if causal else Causality.ALWAYS
    known = [
        example
        for example in examples()
        if example.causality is not wrong and example.spelled != mechanism.spelled
    ]
    try:
        ours = [mechanism.fitted(*probe(scale), causal=causal) for scale in SCALES]
    except Exception:  # a stranger's mechanism may raise anything; the standings say what
        return []
    distances = [
        Likeness(other.spelled, _distance(ours, _compute_results(type(other), other.spelled, causal)))
        for other in known
    ]
    return sorted(distances, key=lambda like: round(like.distance, 9))


def probe(scale: float) -> tuple[Tensor, Tensor, Tensor]:
    """Seeded positive keys and queries, signed values."""
    generator = torch.Generator().manual_seed(7)
    q, k = torch.rand((2, 1, 1, LENGTH, WIDTH), generator=generator, dtype=torch.float64) * scale
    v = torch.randn((1, 1, LENGTH, WIDTH), generator=generator, dtype=torch.float64)
    return q, k, v


@lru_cache(maxsize=256)
def _compute_results(kind: type[Mechanism], spelled: str, causal: bool) -> tuple[Tensor, ...]:
    """Compute the results of a known mechanism on the probe, once per process.

    The class is part of the key, so that a mechanism that is replaced under the same name is computed again.
    """
    mechanism = mechanism_named(spelled)
    return tuple(mechanism(*probe(scale), causal=causal) for scale in SCALES)


def _distance(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> float:
    """The size of the difference over the mean size of both, the worst over the scales."""
    return max(
        float(2 * (a - b).norm() / (a.norm() + b.norm()).clamp_min(1e-300))
        for a, b in zip(ours, theirs, strict=True)
    )
