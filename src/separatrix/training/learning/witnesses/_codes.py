"""Codes for symbols: queries and keys such that a query weights the key of its own symbol most."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from separatrix.core.tensors import Float, Tensor, functional, torch
from separatrix.mechanisms import Mechanism
from separatrix.training.learning.witnesses._families import Family, family_of, invert_features, logit_factor

Codes = Float[Tensor, "symbols channels"]

STEPS, RATE, POWER = 500, 0.05, 3
"""Of the gradient descent; overlaps count by this power, so that the largest dominate."""
SERIES_LOGIT = 8.0
"""The logit of a symbol with itself if the kernel is a series."""


@lru_cache(maxsize=64)
def spread_codes(symbols: int, channels: int, positive: bool = False, seed: int = 0) -> Codes:
    """Return unit vectors with small positive overlaps; with `positive`, without negative entries.

    With at least as many channels as symbols they are the axes. With fewer they minimise the sum of
    `max(<c_i, c_j>, 0)^3` by gradient descent: negative overlaps do no harm to a memory that sums, since they
    count against wrong answers.

    >>> spread_codes(2, 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    >>> codes = spread_codes(3, 2)  # three directions in the plane
    >>> max(float(codes[i] @ codes[j]) for i, j in ((0, 1), (0, 2), (1, 2))) < 0.02
    True
    """
    if symbols <= channels:
        return torch.eye(channels)[:symbols]
    vectors = torch.randn(symbols, channels, generator=torch.Generator().manual_seed(seed))
    diagonal = torch.eye(symbols, dtype=torch.bool)
    # Witnesses are written under `torch.no_grad`, but this descent needs gradients.
    with torch.enable_grad():
        vectors.requires_grad_()
        descent = torch.optim.Adam([vectors], lr=RATE)
        for step in range(STEPS):
            descent.param_groups[0]["lr"] = RATE * (1 - step / STEPS)
            codes = functional.normalize(vectors.abs() if positive else vectors, dim=-1)
            energy = (codes @ codes.T).masked_fill(diagonal, 0).clamp(min=0).pow(POWER).sum()
            descent.zero_grad()
            energy.backward()  # type: ignore[no-untyped-call]
            descent.step()
    return functional.normalize(vectors.detach().abs() if positive else vectors.detach(), dim=-1)


@dataclass(frozen=True)
class QueryKeyCodes:
    """The queries and keys of symbols.

    If `self_score` is not 0, the last channel of a key is of the token itself instead of the token to be
    found: a query gives itself this large score, so that the sum of the scores is positive.
    """

    query: Codes
    key: Codes
    self_score: float = 0.0


def retrieval_codes(mechanism: Mechanism, symbols: int, channels: int, tokens: int) -> Iterator[QueryKeyCodes]:
    """Yield ways to distinguish symbols in this number of channels, among this number of tokens.

    - Sharp: spread directions, with logits so large that all other tokens together weigh a twentieth.
    - Sums, delta rules and powers: the same directions. In a sum, overlapping codes interfere.
    - Series: the same, at logits where the last term dominates.
    - Rectified: logits minus the largest overlap, so that only a symbol's own key is above 0.
    - Features: directions without negative entries, from several starting points; ten times as long as a
      unit vector, so that a key of zeros, whose features may be 1, weighs less.
    """
    family = family_of(mechanism)
    if family is Family.SHARP:
        codes = spread_codes(symbols, channels)
        scale = logit_factor(mechanism, tokens) * (math.log(tokens) + 3) / (1 - largest_overlap(codes))
        yield QueryKeyCodes(scale * codes, codes)
    elif family is Family.SUM and mechanism.is_normalised and symbols > channels:
        codes = spread_codes(symbols, channels - 1) if channels > 1 else torch.zeros(symbols, 0)
        yield QueryKeyCodes(append_channel(codes, 1), append_channel(codes, 0), self_score=10.0 * tokens)
    elif family in (Family.SUM, Family.DELTA, Family.POWER, Family.RECTIFIED):
        codes = spread_codes(symbols, channels)
        yield QueryKeyCodes(codes, codes)
        if family is Family.RECTIFIED and symbols > channels > 1:
            codes = spread_codes(symbols, channels - 1)
            yield QueryKeyCodes(append_channel(codes, -largest_overlap(codes)), append_channel(codes, 1))
    elif family is Family.SERIES:
        codes = spread_codes(symbols, channels)
        yield QueryKeyCodes(SERIES_LOGIT * codes, codes)
    elif family is Family.FEATURES:
        for seed in range(3) if symbols > channels else range(1):
            codes = invert_features(mechanism, 10 * spread_codes(symbols, channels, True, seed))
            yield QueryKeyCodes(codes, codes)


def largest_overlap(codes: Codes) -> float:
    """Return the largest inner product of two codes, or 0 if all are negative."""
    return max(0.0, float((codes @ codes.T).fill_diagonal_(0).max()))


def append_channel(codes: Codes, number: float) -> Codes:
    """Append a channel with the same number for all codes.

    >>> append_channel(torch.eye(2), 3).tolist()
    [[1.0, 0.0, 3.0], [0.0, 1.0, 3.0]]
    """
    return torch.cat([codes, torch.full((len(codes), 1), float(number))], dim=-1)
