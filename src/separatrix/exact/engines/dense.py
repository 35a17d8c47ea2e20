"""The dense engine: all n tokens, any mechanism, sampled signs. The other engines are checked against it."""

from __future__ import annotations

from separatrix.constructions import Construction, Label
from separatrix.core.tensors import torch
from separatrix.exact.engines.drawing import sample, sample_places
from separatrix.exact.engines.outcome import Outcome
from separatrix.exact.engines.sampling import Sampling
from separatrix.exact.outputs.attention import probe_peak
from separatrix.exact.outputs.tokens import literal_tokens, place_matters
from separatrix.mechanisms import Mechanism


def solve(construction: Construction, mechanism: Mechanism, sampling: Sampling | None = None) -> Outcome:
    """Sample the reader on literal tokens."""
    sampling = sampling or Sampling()
    tokens = literal_tokens(construction, mechanism, sampling.torch_dtype)
    draw = sample_places if place_matters(construction, mechanism) else sample
    return draw("dense", construction, mechanism, tokens, sampling)


def probe(construction: Construction, mechanism: Mechanism, label: Label, dtype: torch.dtype) -> float:
    """Return the pre-activation that defines the margin, computed in `dtype` throughout."""
    return probe_peak(mechanism, construction.dense(label, 0, dtype))
