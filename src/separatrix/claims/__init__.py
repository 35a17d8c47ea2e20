"""The ledger: every statement of the paper, and ours, as an executable check.

A claim is a function below `@claim(name, place, tag)` in a file of this folder. "Theory 3.1", here and
throughout the package, is section 3.1 of docs/theory.md.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from separatrix.claims._base import SECTIONS, Claim, ClaimStatus, Entry, Finding, Ledger, Point, count_statuses
from separatrix.core.errors import one_line
from separatrix.core.parameters import require_known
from separatrix.core.registry import modules

_VALUES = [value for module in modules(sys.modules[__name__]) for value in vars(module).values()]
CLAIMS = tuple(sorted((value for value in _VALUES if isinstance(value, Claim)), key=lambda claim: claim.order))
"""Every claim, in the order of docs/theory.md."""


def ledger(progress: Callable[[Claim], object] = lambda _: None) -> Ledger:
    """Run the check of every claim: `ledger().holds`, `ledger().as_json()`.

    **Arguments:**

    - `progress`: called with each claim before it is checked.
    """
    entries = []
    for claim in CLAIMS:
        progress(claim)
        entries.append(check_claim(claim))
    return Ledger(tuple(entries))


def claim_named(name: str) -> Claim:
    """Return the claim called `name`, such as `theorem`, or raise a UsageError."""
    claims = {claim.name: claim for claim in CLAIMS}
    require_known("claim", name, claims)
    return claims[name]


def check_claim(claim: Claim) -> Entry:
    """Run the check of one claim. A check that raises an error fails, and the others can still be run.

    >>> check_claim(claim_named("threshold")).finding.status
    <ClaimStatus.HOLDS: 'holds'>
    """
    start = time.perf_counter()
    try:
        finding = claim.check()
    except Exception as error:  # KeyboardInterrupt and SystemExit, by which signals stop a run, pass through
        summary = f"the check raised {type(error).__name__}: {one_line(error)}"
        finding = Finding(ClaimStatus.FAILS, summary, "none: the check did not finish", ())
    return Entry(claim, finding, round(time.perf_counter() - start, 3))


__all__ = [
    "CLAIMS",
    "SECTIONS",
    "Claim",
    "ClaimStatus",
    "Entry",
    "Finding",
    "Ledger",
    "Point",
    "check_claim",
    "claim_named",
    "count_statuses",
    "ledger",
]
