"""The grouped engine: distinct tokens with counts, sampled signs; for mechanisms that accept counts."""

from __future__ import annotations

from separatrix.constructions import Construction
from separatrix.exact.engines.drawing import sample, sample_places
from separatrix.exact.engines.outcome import EngineRefusal, Outcome
from separatrix.exact.engines.sampling import Sampling
from separatrix.exact.outputs.tokens import coordinates_matter, counted_tokens
from separatrix.mechanisms import Mechanism

LARGEST_DRAWN = 10**18
"""The largest n for which the signs of whole groups are sampled."""


def solve(construction: Construction, mechanism: Mechanism, sampling: Sampling | None = None) -> Outcome:
    """Sample the reader on token groups."""
    sampling = sampling or Sampling()
    if sampling.dtype not in ("float64", "float32"):
        raise EngineRefusal(f"counts do not fit {sampling.dtype}", ("dense",))
    if construction.signs == construction.n > LARGEST_DRAWN:
        raise EngineRefusal("signs of so many tokens cannot be drawn", ("closed",))
    tokens = counted_tokens(construction, mechanism, sampling.torch_dtype, construction.m)
    draw = sample_places if coordinates_matter(construction, mechanism) else sample
    return draw("grouped", construction, mechanism, tokens, sampling)
