"""Attention outputs by the strongest arithmetic that applies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from separatrix.constructions import Construction
from separatrix.core.errors import EngineRefusal
from separatrix.exact.outputs._base import Outputs
from separatrix.exact.outputs.floats import FloatOutputs
from separatrix.exact.outputs.proved import proved_outputs
from separatrix.exact.outputs.tokens import draw_places, place_matters
from separatrix.mechanisms import Mechanism

PLACES = 3
PLACES_SEED = 0
"""If the position of the special token matters, this many seeded positions are tried."""


def strongest_outputs(construction: Construction, mechanism: Mechanism) -> Sequence[tuple[Outputs, int]]:
    """Return outputs with the position of the special token: proved ones, or else in float64.

    There is one entry if all positions give the same output, or else one for each of a few positions.
    """
    try:
        return [(proved_outputs(construction, mechanism), 0)]
    except EngineRefusal:
        places = draw_special_places(construction, mechanism)
        return [(FloatOutputs(construction, mechanism, place), place) for place in places]


def draw_special_places(construction: Construction, mechanism: Mechanism) -> list[int]:
    """Return a few places of the special token in order; only the first place if the answer depends on none."""
    if not place_matters(construction, mechanism):
        return [0]
    return sorted(set(draw_places(np.random.default_rng(PLACES_SEED), construction.n, PLACES)))
