"""The ledger: every statement of the paper, and ours, as an executable check.

A claim is a function below `@claim(name, place, tag)` in a file of this folder. "Theory 3.1", here and all
over the package, is section 3.1 of docs/theory.md.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from separatrix.claims._base import Claim, ClaimStatus, Entry, Finding, Ledger, Point, Provenance
from separatrix.registry import modules

_FOUND = [each for file in modules(sys.modules[__name__]) for each in vars(file).values()]
CLAIMS = tuple(sorted((each for each in _FOUND if isinstance(each, Claim)), key=lambda each: each.order))
"""Every claim, in the order of docs/theory.md."""


def ledger(progress: Callable[[Claim], None] | None = None) -> Ledger:
    """Run the check of every claim: `ledger().holds`, `ledger().as_json()`.

    **Arguments:**

    - `progress`: is told of each claim before it is checked.
    """
    entries = []
    for each in CLAIMS:
        if progress is not None:
            progress(each)
        start = time.perf_counter()
        finding = each.check()
        entries.append(Entry(each, finding, time.perf_counter() - start))
    return Ledger(tuple(entries))


__all__ = ["CLAIMS", "Claim", "ClaimStatus", "Entry", "Finding", "Ledger", "Point", "Provenance", "ledger"]
