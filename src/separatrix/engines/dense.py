"""All n tokens, any mechanism, sampled signs: the engine the others are checked against."""

from __future__ import annotations

from separatrix.constructions import Construction, Label, Tokens
from separatrix.engines._base import Outcome
from separatrix.engines.memory import refuse_if_too_large
from separatrix.engines.places import place_matters
from separatrix.engines.sampling import ELEMENTS, Sampling, View, sample, sample_places
from separatrix.mechanisms import Mechanism
from separatrix.tensors import torch


def solve(construction: Construction, mechanism: Mechanism, sampling: Sampling | None = None) -> Outcome:
    """Sample the reader on literal tokens."""
    sampling = sampling or Sampling()
    refuse_if_too_large(
        "dense",
        dense_bytes(construction, mechanism, sampling.torch_dtype),
        f"n={construction.n:,} tokens of width {construction.dense_width():,}",
        "grouped" if mechanism.takes_counts else "auto with a smaller n",
    )
    dtype = sampling.torch_dtype

    def tokens(label: Label, place: int) -> Tokens:
        return construction.dense(label, place, dtype)

    draw = sample_places if place_matters(construction, mechanism) else sample
    return draw("dense", construction, mechanism, tokens, sampling)


def dense_bytes(construction: Construction, mechanism: Mechanism, dtype: torch.dtype) -> int:
    """What the engine will hold at its peak: tokens of both labels, and what they are turned into."""
    item = torch.finfo(dtype).bits // 8
    per_token = 2 * 4 * (construction.dense_width() + construction.m)
    scores = 0 if mechanism.streams else 2 * construction.n
    return construction.n * (per_token + scores) * item + 4 * ELEMENTS * item


def probe(construction: Construction, mechanism: Mechanism, label: Label, dtype: torch.dtype) -> float:
    """The pre-activation that margins are measured on, with every step in `dtype`."""
    tokens = construction.dense(label, 0, dtype)
    view = View(mechanism, tokens, columns=0)
    view.peaks(lambda tokens: tokens.probe[:, None], tokens.probe[None])
    return view.probe
