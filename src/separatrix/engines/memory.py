"""What is free, and the refusal when it is not enough."""

from __future__ import annotations

import os
from pathlib import Path

from separatrix.engines._base import EngineRefusal

GIB = 1 << 30


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
