"""Two sweeps side by side."""

from __future__ import annotations

from collections.abc import Mapping

from separatrix.reports.markup import Section
from separatrix.reports.store.pieces import command, short, table, words
from separatrix.store import Sweep
from separatrix.store.compare import CLOSE, Answer, Change, Comparison

MOST_ROWS = 30


def section(found: Comparison, one: Sweep, other: Sweep, line: str) -> Section:
    """What changed from `other` to `one`, the sweep of the page."""
    counts = (
        ("the same answer", found.same),
        ("another verdict", found.other_verdict),
        ("another P", found.other_probability),
        (f"only in {_name(one)}", found.only_one),
        (f"only in {_name(other)}", found.only_other),
    )
    facts = "".join(f"<div><dt>{short(term)}</dt><dd>{count:,}</dd></div>" for term, count in counts)
    body = (
        f"<p>Cells of {short(_name(one))} and of {short(_name(other))} that ask the same: construction, "
        "mechanism, parameters, engine, delta, and how to sample. Two exact P differ if they are more than "
        f"{CLOSE:g} apart; where one is sampled, if their intervals do not overlap. A cell can have another "
        f'verdict and another P at once.</p><dl class="facts">{facts}</dl>{_largest(found, one, other)}'
        f"{command(line, 'the same as text')}"
    )
    return Section("changes", "Comparison of two sweeps", body)


def _name(sweep: Sweep) -> str:
    return f"{sweep.name} {sweep.id}"


def _largest(found: Comparison, one: Sweep, other: Sweep) -> str:
    if not found.largest:
        return "<p>Every cell that both have has the same answer.</p>"
    shown = found.largest[:MOST_ROWS]
    said = "" if found.changed <= MOST_ROWS else f", the {len(shown)} largest of {found.changed:,}"
    head = ("Cell", _name(one), _name(other), "P: first less second")
    common = found.common
    alike = f'<p class="said">In all of them: {words(common)}.</p>' if common else ""
    rows = (_row(change, common) for change in shown)
    return f"<h3>What changed{said}</h3>{alike}{table(head, rows, 'changes')}"


def _row(change: Change, common: Mapping[str, str]) -> list[str]:
    own = {name: value for name, value in change.asked.items() if name not in common}
    cell = (
        f"<strong>{short(change.mechanism, 80)}</strong> on {short(change.construction, 80)}"
        f'<span class="summary">{words(own)}</span>'
    )
    p, q = change.one.distinguish, change.other.distinguish
    difference = "–" if p is None or q is None else f"{p - q:+.4g}".replace("-", "−")
    return [cell, _answer(change.one), _answer(change.other), difference]


def _answer(answer: Answer) -> str:
    if answer.distinguish is None or answer.low is None or answer.high is None:
        return f"<strong>{short(answer.word, 40)}</strong>"
    exact = answer.low == answer.high
    known = "exact" if exact else f"sampled, in [{answer.low:.4g}, {answer.high:.4g}]"
    told = f"P = {answer.distinguish:.6g}, {known}; engine {short(answer.engine, 40)}"
    return f'<strong>{short(answer.word, 40)}</strong><span class="summary">{told}</span>'
