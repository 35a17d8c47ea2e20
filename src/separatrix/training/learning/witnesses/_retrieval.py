"""Retrieval: queries and keys for symbols, such that a query weighs the key of its own symbol most."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from separatrix.core.tensors import torch
from separatrix.training.learning.witnesses._codes import Codes, spread_codes
from separatrix.training.learning.witnesses._families import Family, cooling, family_of, features_to_inputs

if TYPE_CHECKING:
    from separatrix.mechanisms import Mechanism

SERIES = 8.0
"""The logit of a symbol with itself where the kernel is a series."""


@dataclass(frozen=True)
class Retrieval:
    """What a symbol asks with, and what it is found by.

    In the last channel a key may be of the token itself, and not of the one that is to be found: where
    `weight` is not 0, a token that asks gives itself so large a score, and the row a positive sum.
    """

    query: Codes
    key: Codes
    weight: float = 0.0


def retrievals(mechanism: Mechanism, symbols: int, channels: int, tokens: int) -> Iterator[Retrieval]:
    """Ways to tell so many symbols apart in so many channels, among so many tokens.

    - Sharp: directions far apart, at logits so large that all others together weigh a twentieth.
    - Sums, delta rules and powers: the same directions. In a sum the others interfere, by their overlaps.
    - Series: the same, at logits whose last term is the largest.
    - Rectified: logits less the largest overlap, so that nothing but the own symbol is above 0.
    - Features: directions without negative entries, from several beginnings; ten times as long as a unit, so
      that a key of zeros, whose features may be 1, weighs less.
    """
    family = family_of(mechanism)
    if family is Family.SHARP:
        codes = spread_codes(symbols, channels)
        size = cooling(mechanism, tokens) * (math.log(tokens) + 3) / (1 - largest_overlap(codes))
        yield Retrieval(size * codes, codes)
    elif family is Family.SUM and mechanism.normalised and symbols > channels:
        codes = spread_codes(symbols, channels - 1) if channels > 1 else torch.zeros(symbols, 0)
        yield Retrieval(with_channel(codes, 1), with_channel(codes, 0), weight=10.0 * tokens)
    elif family in (Family.SUM, Family.DELTA, Family.POWER):
        codes = spread_codes(symbols, channels)
        yield Retrieval(codes, codes)
    elif family is Family.SERIES:
        codes = spread_codes(symbols, channels)
        yield Retrieval(SERIES * codes, codes)
    elif family is Family.RECTIFIED:
        codes = spread_codes(symbols, channels)
        yield Retrieval(codes, codes)
        if channels > 1 and symbols > channels:
            codes = spread_codes(symbols, channels - 1)
            yield Retrieval(with_channel(codes, -largest_overlap(codes)), with_channel(codes, 1))
    elif family is Family.FEATURES:
        for seed in range(3) if symbols > channels else range(1):
            codes = features_to_inputs(mechanism, 10 * spread_codes(symbols, channels, True, seed))
            yield Retrieval(codes, codes)


def largest_overlap(codes: Codes) -> float:
    """The largest inner product of two of them, or 0 where all are negative."""
    return max(0.0, float((codes @ codes.T).fill_diagonal_(0).max()))


def with_channel(codes: Codes, number: float) -> Codes:
    """The codes with one more channel, the same number for all.

    >>> with_channel(torch.eye(2), 3).tolist()
    [[1.0, 0.0, 3.0], [0.0, 1.0, 3.0]]
    """
    return torch.cat([codes, torch.full((len(codes), 1), float(number))], dim=-1)
