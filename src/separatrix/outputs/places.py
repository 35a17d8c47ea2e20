"""Where the special token stands, and whether that is anything to a mechanism."""

from __future__ import annotations

import numpy as np

from separatrix.constructions import Construction, Exchangeable
from separatrix.mechanisms import Mechanism

WORD = 64


def place_matters(construction: Construction, mechanism: Mechanism) -> bool:
    """Whether the answer may depend on the place; if not, all draws may share one.

    >>> from separatrix.constructions.rough import Rough, Spike
    >>> from separatrix.mechanisms import mechanism_named
    >>> spike, rough = (kind.read(kind.example) for kind in (Spike, Rough))
    >>> [place_matters(each, mechanism_named("softmax")) for each in (spike, rough)]
    [False, True]
    >>> place_matters(spike, mechanism_named("window:size=8"))
    True
    """
    if construction.exchangeable is Exchangeable.NOT or not mechanism.permutation_equivariant:
        return True
    return coordinates_matter(construction, mechanism)


def coordinates_matter(construction: Construction, mechanism: Mechanism) -> bool:
    """Whether the place shows even in tokens that are counted, and so have no order."""
    return construction.exchangeable is Exchangeable.COORDINATES and not mechanism.coordinate_free


def draw_places(rng: np.random.Generator, n: int, count: int) -> list[int]:
    """Uniform places among n, which may be more than fit an integer of numpy's.

    >>> places = draw_places(np.random.default_rng(0), 10**30, 3)
    >>> [len(str(place)) for place in places]
    [30, 30, 30]
    """
    if n <= 1 << 62:
        return [int(place) for place in rng.integers(n, size=count)]
    length = n.bit_length() // 8 + WORD // 8  # so many more bits that no place is favoured
    return [int.from_bytes(rng.bytes(length), "little") % n for _ in range(count)]


__all__ = ["coordinates_matter", "draw_places", "place_matters"]
