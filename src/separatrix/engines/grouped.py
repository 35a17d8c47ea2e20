"""Distinct tokens and their counts: sampled signs at any n, for any mechanism that takes counts."""

from __future__ import annotations

from separatrix.constructions import Construction, Label, Tokens
from separatrix.engines._base import EngineRefusal, Outcome
from separatrix.engines.sampling import Sampling, sample, sample_places
from separatrix.mechanisms import Mechanism
from separatrix.outputs.memory import LARGEST_COUNTED, group_bytes, refuse_if_too_large
from separatrix.outputs.places import coordinates_matter

LARGEST_DRAWN = 10**18
"""The largest n where signs are drawn for whole groups."""


def solve(construction: Construction, mechanism: Mechanism, sampling: Sampling | None = None) -> Outcome:
    """Sample the reader on token groups."""
    sampling = sampling or Sampling()
    if not mechanism.takes_counts:
        raise EngineRefusal(f"{mechanism.spelled} does not take counts; use --engine dense")
    if sampling.dtype not in ("float64", "float32"):
        raise EngineRefusal(f"counts do not fit {sampling.dtype}; use --engine dense")
    if not construction.has_groups:
        raise EngineRefusal("no two tokens are equal here, so there are no groups; use --engine dense")
    if construction.n > (LARGEST_DRAWN if construction.signs == construction.n else LARGEST_COUNTED):
        raise EngineRefusal("counts of so many tokens do not fit; use --engine exact")
    refuse_if_too_large("grouped", group_bytes(construction), f"the groups of {construction.name}", "exact")
    dtype = sampling.torch_dtype

    def tokens(label: Label, place: int) -> Tokens:
        return construction.groups(label, dtype, place)

    draw = sample_places if coordinates_matter(construction, mechanism) else sample
    return draw("grouped", construction, mechanism, tokens, sampling)
