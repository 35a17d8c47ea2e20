"""All n tokens, any mechanism, sampled signs: the engine the others are checked against."""

from __future__ import annotations

from separatrix.constructions import Construction, Label, Tokens
from separatrix.engines._base import Outcome
from separatrix.engines.sampling import Sampling, sample, sample_places
from separatrix.mechanisms import Mechanism
from separatrix.outputs.attention import View
from separatrix.outputs.memory import dense_bytes, refuse_if_too_large
from separatrix.outputs.places import place_matters
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


def probe(construction: Construction, mechanism: Mechanism, label: Label, dtype: torch.dtype) -> float:
    """The pre-activation that margins are measured on, with every step in `dtype`."""
    tokens = construction.dense(label, 0, dtype)
    view = View(mechanism, tokens, columns=0)
    view.peaks(lambda tokens: tokens.probe[:, None], tokens.probe[None])
    return view.probe
