"""Two sweeps side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from separatrix.pages import pages
from separatrix.pages.store.wording import words
from separatrix.sweeps.store import Sweep
from separatrix.sweeps.store.compare import TOLERANCE, Change, Comparison, SweepAnswer

MOST_ROWS = 30


def section(found: Comparison, one: Sweep, other: Sweep, line: str) -> pages.Section:
    """What changed from `other` to `one`, the sweep of the page."""
    names = [f"{sweep.name} {sweep.id}" for sweep in (one, other)]
    counts = {
        "the same answer": found.same,
        "another verdict": found.other_verdict,
        "another P": found.other_probability,
        f"only in {names[0]}": found.only_one,
        f"only in {names[1]}": found.only_other,
    }
    return pages.section(
        "changes",
        "Comparison of two sweeps",
        "sweep_changes.html.j2",
        one=names[0],
        other=names[1],
        close=f"{TOLERANCE:g}",
        counts=[(term, f"{number:,}") for term, number in counts.items()],
        rows=[_row(change, found.common) for change in found.largest[:MOST_ROWS]],
        changed=found.changed,
        common=words(found.common),
        line=line,
    )


def _row(change: Change, common: Mapping[str, str]) -> tuple[Any, ...]:
    own = {name: value for name, value in change.request.items() if name not in common}
    p, q = change.one.distinguish, change.other.distinguish
    difference = "–" if p is None or q is None else f"{p - q:+.4g}".replace("-", "−")
    cell = (change.mechanism, change.construction, words(own))
    return cell, _answer(change.one), _answer(change.other), difference


def _answer(answer: SweepAnswer) -> tuple[str, str]:
    """The verdict, and what stands behind it."""
    if answer.distinguish is None or answer.low is None or answer.high is None:
        return answer.word, ""
    exact = answer.low == answer.high
    known = "exact" if exact else f"sampled, in [{answer.low:.4g}, {answer.high:.4g}]"
    engine = pages.short(answer.engine, 40)
    return answer.word, f"P = {answer.distinguish:.6g}, {known}; engine {engine}"
