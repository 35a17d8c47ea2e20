"""The tokens attention is asked about: literal or counted, where the special one stands, what fits memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from separatrix.constructions import Construction, Exchangeable, Label, Tokens
from separatrix.core.errors import EngineRefusal
from separatrix.core.tensors import torch
from separatrix.exact.outputs.attention import ELEMENTS
from separatrix.mechanisms import Mechanism

WORD = 64
GIB = 1 << 30
LARGEST_COUNTED = 10**300
"""The largest n as a float64 count."""

TokensAt = Callable[[Label, int], Tokens]
"""The tokens of a label, with the special one at a place."""


def literal_tokens(construction: Construction, mechanism: Mechanism, dtype: torch.dtype) -> TokensAt:
    """All n tokens one by one, or an EngineRefusal where they do not fit memory."""
    item = torch.finfo(dtype).bits // 8
    per_token = 2 * 4 * (construction.dense_width() + construction.m)
    scores = 0 if mechanism.streams else 2 * construction.n
    needed = construction.n * (per_token + scores) * item + 4 * ELEMENTS * item
    what = f"n={construction.n:,} tokens of width {construction.dense_width():,}"
    _refuse_if_too_large("dense", needed, what, ("grouped",) if mechanism.takes_counts else ())
    return lambda label, place: construction.dense(label, place, dtype)


def counted_tokens(
    construction: Construction, mechanism: Mechanism, dtype: torch.dtype, columns: int
) -> TokensAt:
    """Distinct tokens with their counts, seen through so many `columns` of signs, or an EngineRefusal."""
    if not mechanism.takes_counts:
        raise EngineRefusal(f"{mechanism.spelled} does not take counts", ("dense",))
    if not construction.has_groups:
        raise EngineRefusal("no two tokens are equal here, so there are no groups", ("dense",))
    if construction.n > LARGEST_COUNTED:
        raise EngineRefusal("counts of so many tokens do not fit", ("certified",))
    width, groups = construction.dense_width(), construction.group_count()
    needed = 8 * 2 * (3 * groups * width + groups * groups + columns * (groups + width))
    _refuse_if_too_large("grouped", needed, f"the groups of {construction.name}", ("closed",))
    return lambda label, place: construction.groups(label, dtype, place)


def by_counts(construction: Construction, mechanism: Mechanism) -> bool:
    """Whether distinct tokens with counts will do."""
    return mechanism.takes_counts and construction.has_groups and construction.n <= LARGEST_COUNTED


def _refuse_if_too_large(engine: str, needed: int, what: str, instead: tuple[str, ...]) -> None:
    """Raise before memory is touched, saying how much it would take and what to do instead."""
    free, needed = available_bytes(), min(needed, 10**30)
    if needed > 0.9 * free:
        reason = f"the {engine} engine would need {needed / GIB:,.1f} GiB for {what}"
        but = f"{free / GIB:,.1f} GiB are free{'' if instead else ': take a smaller n'}"
        raise EngineRefusal(f"{reason}, and {but}", instead)


def available_bytes() -> int:
    """Memory that can be taken without swapping."""
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def place_matters(construction: Construction, mechanism: Mechanism) -> bool:
    """Whether the answer may depend on the place of the special token; if not, all draws may share one.

    >>> from separatrix.constructions.rough import Rough, Spike
    >>> from separatrix.mechanisms import mechanism_named
    >>> spike, rough = (kind.read(kind.example) for kind in (Spike, Rough))
    >>> [place_matters(each, mechanism_named("softmax")) for each in (spike, rough)]
    [False, True]
    >>> place_matters(spike, mechanism_named("window:size=8"))
    True
    """
    n, width = construction.n, construction.dense_width()
    if construction.exchangeable is Exchangeable.NOT:
        return True
    if not mechanism.order_free(n, width):
        asked_last = mechanism.past_order_free(n, width) and construction.dense(0, 0, torch.float32).last
        return not asked_last or coordinates_matter(construction, mechanism)
    return coordinates_matter(construction, mechanism)


def coordinates_matter(construction: Construction, mechanism: Mechanism) -> bool:
    """Whether the place shows even in tokens that are counted, and so have no order."""
    if construction.exchangeable is not Exchangeable.COORDINATES:
        return False
    return not mechanism.free_of_coordinates(construction.n, construction.dense_width())


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
