"""The two-way table for a page: who beats whom on what, and what stands behind every answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from separatrix.paper.separations import LINEAR_FAMILY, Answer, Separation, separated
from separatrix.reports.markup import Section
from separatrix.reports.verdict_words import LETTERS

STYLE = """
#separations th { overflow-wrap: anywhere; vertical-align: bottom; }
#separations th:nth-child(n) { width: auto; }
#separations th[scope=row] { vertical-align: top; padding: .6rem .8rem .6rem 0; }
#separations th[scope=row] { border-bottom: 1px solid var(--rule); }
#separations h3 { margin-top: 2rem; }
#separations .proved { color: #00664b; }
"""
COLUMNS = {
    "Distinguish": ("distinguishes",),
    "Some of the time, or undecided": ("partial", "undecided"),
    "Blind": ("blind",),
}


def section(found: Sequence[Answer]) -> Section:
    """The table of who beats whom, and the table of answers."""
    rows = separated(found)
    mechanisms = list(dict.fromkeys(each.mechanism for each in found))
    return Section(
        "separations",
        "Who beats whom",
        f"<style>{STYLE}</style>{_introduction(rows)}{_matrix(rows, mechanisms)}"
        f"<h3>What stands behind it</h3>{_answers(found)}",
    )


def _introduction(rows: Sequence[Separation]) -> str:
    won = [row for row in rows if row.winner.mechanism in LINEAR_FAMILY and row.loser.mechanism == "softmax"]
    places = ", ".join(sorted({row.construction.name for row in won}))
    return (
        "<p>A mechanism beats another where it tells D0 from D1 (P ≥ 0.99) and the other is blind (P ≤ "
        "0.01), with the fixed reader and at the same point. “No reader” (green) means more: both labels are "
        "proved to give equal rows. Mechanisms of the linear family beat softmax on: "
        f"{escape(places) or 'nothing'}.</p>"
    )


def _matrix(rows: Sequence[Separation], mechanisms: Sequence[str]) -> str:
    head = "".join(f"<th>beats {escape(each)}</th>" for each in mechanisms)
    body = "\n".join(_winner(rows, winner, mechanisms) for winner in mechanisms)
    return f"<table><thead><tr><th></th>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"


def _winner(rows: Sequence[Separation], winner: str, losers: Sequence[str]) -> str:
    cells = []
    for loser in losers:
        won = [row for row in rows if (row.winner.mechanism, row.loser.mechanism) == (winner, loser)]
        cells.append(_cell(f"beats {loser}", (_place(row) for row in won)))
    return f'<tr><th scope="row">{escape(winner)}</th>{"".join(cells)}</tr>'


def _place(row: Separation) -> str:
    proved = ' class="proved"' if row.loser.equal_rows else ""
    return f'<span{proved} title="{escape(row.sentence, quote=True)}">{escape(row.name)}</span>'


def _answers(found: Sequence[Answer]) -> str:
    head = "".join(f"<th>{text}</th>" for text in ("Construction", *COLUMNS))
    names = dict.fromkeys(each.name for each in found)
    body = "\n".join(_point([each for each in found if each.name == name]) for name in names)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"


def _point(found: Sequence[Answer]) -> str:
    cells = []
    for label, words in COLUMNS.items():
        cells.append(_cell(label, (_answer(each) for each in found if each.word in words)))
    return f'<tr><th scope="row">{escape(found[0].name)}</th>{"".join(cells)}</tr>'


def _answer(each: Answer) -> str:
    title = escape(each.verdict.outcome.evidence, quote=True)
    name = f"{LETTERS[each.word]} {escape(each.mechanism)}"
    return f'<b title="{title}">{name}</b> <small>{escape(each.evidence)}</small>'


def _cell(label: str, parts: Iterable[str]) -> str:
    return f'<td data-label="{escape(label, quote=True)}">{"<br>".join(parts)}</td>'
