"""The ledger: every statement of the paper, and ours, as an executable check.

A claim is a function below `@claim(name, place, tag)` in a file of this folder. "Theory 3.1", here and all
over the package, is section 3.1 of docs/theory.md.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from separatrix.claims._base import Claim, ClaimStatus, Entry, Finding, Ledger, Point, Provenance, came_out
from separatrix.core.errors import one_line
from separatrix.core.parameters import require_known
from separatrix.core.registry import modules

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
        entries.append(checked(each))
    return Ledger(tuple(entries))


def claim_named(name: str) -> Claim:
    """The claim called `name`, such as `theorem`, or a UsageError."""
    known = {each.name: each for each in CLAIMS}
    require_known("claim", name, known)
    return known[name]


def checked(claim: Claim) -> Entry:
    """Run the check of one claim. A check that raises an error fails, and the others can still be run.

    >>> checked(claim_named("threshold")).finding.status
    <ClaimStatus.HOLDS: 'holds'>
    """
    start = time.perf_counter()
    try:
        finding = claim.check()
    except Exception as error:  # KeyboardInterrupt and SystemExit, by which signals stop a run, pass through
        summary = f"the check raised {type(error).__name__}: {one_line(error)}"
        finding = Finding(ClaimStatus.FAILS, summary, "none: the check did not finish", ())
    return Entry(claim, finding, time.perf_counter() - start)


__all__ = [
    "CLAIMS",
    "Claim",
    "ClaimStatus",
    "Entry",
    "Finding",
    "Ledger",
    "Point",
    "Provenance",
    "came_out",
    "checked",
    "claim_named",
    "ledger",
]
