"""What is free, and the refusal when it is not enough."""

from __future__ import annotations

import os
from pathlib import Path

from separatrix.constructions import Construction
from separatrix.errors import EngineRefusal
from separatrix.mechanisms import Mechanism
from separatrix.outputs.attention import ELEMENTS
from separatrix.tensors import torch

GIB = 1 << 30
LARGEST_COUNTED = 10**300
"""The largest n as a float64 count."""


def available_bytes() -> int:
    """Memory that can be taken without swapping."""
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def refuse_if_too_large(engine: str, needed: int, what: str, instead: str) -> None:
    """Raise before memory is touched, saying how much it would take and what to do instead."""
    free, needed = available_bytes(), min(needed, 10**30)
    if needed > 0.9 * free:
        raise EngineRefusal(
            f"the {engine} engine would need {needed / GIB:,.1f} GiB for {what}, "
            f"and {free / GIB:,.1f} GiB are free; use --engine {instead}"
        )


def dense_bytes(construction: Construction, mechanism: Mechanism, dtype: torch.dtype) -> int:
    """What the engine will hold at its peak: tokens of both labels, and what they are turned into."""
    item = torch.finfo(dtype).bits // 8
    per_token = 2 * 4 * (construction.dense_width() + construction.m)
    scores = 0 if mechanism.streams else 2 * construction.n
    return construction.n * (per_token + scores) * item + 4 * ELEMENTS * item


def group_bytes(construction: Construction) -> int:
    """Both labels' distinct tokens, their projections and their scores."""
    width = construction.dense_width()
    groups = construction.group_count()
    return 8 * 2 * (3 * groups * width + groups * groups + construction.m * (groups + width))
