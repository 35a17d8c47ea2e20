"""The ledger: every statement of the paper, and ours, as an executable check."""

from __future__ import annotations

import time
from collections.abc import Callable

from separatrix.claims import (
    arithmetic,
    averaging,
    boundary,
    classes,
    critical,
    cross,
    degree,
    dispersion,
    duplication,
    formats,
    injectivity,
    location,
    majority,
    margins,
    network,
    patterns,
    plain,
    proof,
    rank,
    recall,
    regression,
    rough,
    separations,
    signs,
    spike,
    theorem,
    tuned,
    units,
)
from separatrix.claims._base import Claim, Entry, Finding, Ledger, Point, Provenance, Status

_SPIKE = (spike, signs, arithmetic, theorem, boundary, proof, tuned, margins, formats, degree)
_FURTHER = (
    *(injectivity, duplication, patterns, rank, dispersion, critical),
    *(averaging, location, regression, recall, majority),
)
_OPEN = (separations, classes, rough)
_FILES = (units, network, *_SPIKE, plain, cross, *_FURTHER, *_OPEN)

CLAIMS: tuple[Claim, ...] = tuple(claim for file in _FILES for claim in file.CLAIMS)
"""Every claim, in the order of THEORY."""


def ledger(progress: Callable[[Claim], None] | None = None) -> Ledger:
    """Run every claim's check; `progress` is told of each before it runs."""
    entries = []
    for claim in CLAIMS:
        if progress is not None:
            progress(claim)
        start = time.perf_counter()
        finding = claim.check()
        entries.append(Entry(claim, finding, time.perf_counter() - start))
    return Ledger(tuple(entries))


__all__ = ["CLAIMS", "Claim", "Entry", "Finding", "Ledger", "Point", "Provenance", "Status", "ledger"]
