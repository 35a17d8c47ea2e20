"""Token sets for the engines: dense or grouped, within memory, and the position of the special token."""

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
"""A function that returns the tokens of a label, with the special token at a position."""


def literal_tokens(construction: Construction, mechanism: Mechanism, dtype: torch.dtype) -> TokensAt:
    """Return all n tokens, or raise an EngineRefusal if they do not fit into memory."""
    item = torch.finfo(dtype).bits // 8
    per_token = 2 * 4 * (construction.dense_width() + construction.m)
    scores = 0 if mechanism.streams else 2 * construction.n
    bytes_needed = construction.n * (per_token + scores) * item + 4 * ELEMENTS * item
    subject = f"n={construction.n:,} tokens of width {construction.dense_width():,}"
    _refuse_if_too_large("dense", bytes_needed, subject, ("grouped",) if mechanism.takes_counts else ())
    return lambda label, place: construction.dense(label, place, dtype)


def counted_tokens(construction: Construction, mechanism: Mechanism, dtype: torch.dtype, columns: int) -> TokensAt:
    """Return distinct tokens with counts for `columns` sign vectors, or raise an EngineRefusal."""
    if not mechanism.takes_counts:
        raise EngineRefusal(f"{mechanism.spelled} does not accept counts", ("dense",))
    if not construction.has_groups:
        raise EngineRefusal("no two tokens are equal here, so there are no groups", ("dense",))
    if construction.n > LARGEST_COUNTED:
        raise EngineRefusal("counts of so many tokens do not fit", ("certified",))
    width, groups = construction.dense_width(), construction.group_count()
    bytes_needed = 8 * 2 * (3 * groups * width + groups * groups + columns * (groups + width))
    _refuse_if_too_large("grouped", bytes_needed, f"the groups of {construction.name}", ("closed",))
    return lambda label, place: construction.token_groups(label, dtype, place)


def by_counts(construction: Construction, mechanism: Mechanism) -> bool:
    """Whether distinct tokens with counts can be used."""
    return mechanism.takes_counts and construction.has_groups and construction.n <= LARGEST_COUNTED


def _refuse_if_too_large(engine: str, bytes_needed: int, subject: str, instead: tuple[str, ...]) -> None:
    """Raise an EngineRefusal before memory is allocated, with the amount needed and the alternative."""
    free, bytes_needed = available_bytes(), min(bytes_needed, 10**30)
    if bytes_needed > 0.9 * free:
        reason = f"the {engine} engine would need {bytes_needed / GIB:,.1f} GiB for {subject}"
        but = f"{free / GIB:,.1f} GiB are free{'' if instead else ': take a smaller n'}"
        raise EngineRefusal(f"{reason}, and {but}", instead)


def available_bytes() -> int:
    """Return the memory that can be allocated without swapping."""
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def place_matters(construction: Construction, mechanism: Mechanism) -> bool:
    """Whether the outcome may depend on the position of the special token; if not, all draws share one.

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
    """Whether the position matters even for counted tokens, which have no order."""
    if construction.exchangeable is not Exchangeable.COORDINATES:
        return False
    return not mechanism.free_of_coordinates(construction.n, construction.dense_width())


def draw_places(rng: np.random.Generator, n: int, count: int) -> list[int]:
    """Draw uniform positions below n, which may exceed NumPy's integers.

    >>> places = draw_places(np.random.default_rng(0), 10**30, 3)
    >>> [len(str(place)) for place in places]
    [30, 30, 30]
    """
    if n <= 1 << 62:
        return [int(place) for place in rng.integers(n, size=count)]
    length = n.bit_length() // 8 + WORD // 8  # 64 more bits make the bias of the remainder negligible
    return [int.from_bytes(rng.bytes(length), "little") % n for _ in range(count)]
