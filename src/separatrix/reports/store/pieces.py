"""Small pieces of the page, made of text that nobody vouches for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import polars as pl

from separatrix.numbers.printable import visible
from separatrix.reports.commands import number as number_
from separatrix.reports.verdict_words import COLOURS, INKS, MARKS

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from separatrix.reports.store.groups import Group

LONGEST = 400
"""Characters of a message or a name that are shown."""


def short(text: str | None, most: int = LONGEST) -> str:
    """Text as markup, cut where it is endless."""
    text = "" if text is None else visible(text, keep="\n\t")
    return escape(text if len(text) <= most else f"{text[: most - 1]}…")


def words(parameters: Mapping[str, str]) -> str:
    """`n=1000 a1=1.2` as markup.

    >>> words({"n": "1000", "a1": "<b>"})
    'n=1000 a1=&lt;b&gt;'
    """
    return short(" ".join(f"{name}={short_number(value)}" for name, value in parameters.items()))


def short_number(text: str) -> str:
    """A parameter as one would type it.

    >>> short_number("100000000"), short_number("1000"), short_number("identity")
    ('1e8', '1000', 'identity')
    """
    digits = text.rstrip("0")
    zeros = len(text) - len(digits)
    return f"{digits}e{zeros}" if digits.isdecimal() and zeros >= 5 else text


def command(line: str, prints: str) -> str:
    """A command, and what it prints."""
    return (
        f'<p class="command"><code>{escape(line)}</code> <span class="prints">→ {escape(prints)}</span></p>'
    )


def title(group: Group, what: str) -> str:
    """The heading of a figure; `what` is markup."""
    part = f"<small>part {short(group.part, 80)}</small>" if group.part else ""
    return f"<h3>{short(group.construction, 80)}: {what}{part}</h3>"


def panel(identity: str, heading: str, figure: go.Figure) -> str:
    """One interactive plot; `heading` is markup."""
    specification = str(figure.to_json()).replace("<", "\\u003c")
    above = f"<h4>{heading}</h4>" if heading else ""
    return (
        f'<div>{above}<div class="plot" data-source="{identity}"></div>'
        f'<script type="application/json" id="{identity}">{specification}</script></div>'
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]], kind: str) -> str:
    """Rows of markup, of which the first cell names the row; on a narrow screen each is a block."""
    columns = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "\n".join(
        "<tr>"
        + "".join(
            f'<td{" class=statement" if i == 0 else ""} data-label="{escape(name)}">{cell}</td>'
            for i, (name, cell) in enumerate(zip(head, row, strict=True))
        )
        + "</tr>"
        for row in rows
    )
    return f'<table class="{kind}"><thead><tr>{columns}</tr></thead><tbody>\n{body}\n</tbody></table>'


def count(number: int, noun: str) -> str:
    """A number with its noun.

    >>> count(1, "cell has"), count(1200, "cell has")
    ('1 cell has', '1,200 cells have')
    """
    if number == 1:
        return f"1 {noun}"
    word, _, verb = noun.partition(" ")
    plural = {"has": " have", "is": " are", "": ""}[verb]
    return f"{number:,} {word}s{plural}"


def chance(p: float) -> str:
    """P in four digits, never rounded to certainty.

    >>> chance(0.99976), chance(0.999999), chance(1.0), chance(2.5e-7)
    ('0.9998', '> 0.9999', '1', '2.5 × 10⁻⁷')
    """
    return "> 0.9999" if 0.99995 <= p < 1 else number_(p)


def evidence(cells: pl.DataFrame) -> str:
    """How the probabilities of these cells are known: `840 exact, 20 sampled`."""
    counts = cells.filter(pl.col("kind") != "none").group_by("kind").len().sort("kind")
    kinds = dict(counts.iter_rows())
    return ", ".join(f"{kinds[kind]:,} {kind}" for kind in MARKS if kind in kinds)


def style(word: str) -> str:
    """The colours of a verdict; of a word that is none, those of no answer."""
    known = word if word in COLOURS else "none"
    return f"background:{COLOURS[known]};color:{INKS[known]}"
