"""Small pieces of the page, made of text that nobody vouches for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import polars as pl

from separatrix.reports.cells import COLOURS, INKS, MARKS

if TYPE_CHECKING:
    import plotly.graph_objects as go

LONGEST = 400
"""Characters of a message or a name that are shown."""


def short(text: str | None, most: int = LONGEST) -> str:
    """Text as markup, cut where it is endless."""
    text = "" if text is None else text
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


def panel(identity: str, title: str, figure: go.Figure) -> str:
    """One interactive plot; `title` is markup."""
    specification = str(figure.to_json()).replace("<", "\\u003c")
    heading = f"<h4>{title}</h4>" if title else ""
    return (
        f'<div>{heading}<div class="plot" data-source="{identity}"></div>'
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


def evidence(cells: pl.DataFrame) -> str:
    """How the probabilities of these cells are known: a sentence."""
    counts = cells.filter(pl.col("kind") != "none").group_by("kind").len().sort("kind")
    kinds = dict(counts.iter_rows())
    return ", ".join(f"{kinds[kind]:,} {kind}" for kind in MARKS if kind in kinds)


def style(word: str) -> str:
    """The colours of a verdict; of a word that is none, those of no answer."""
    known = word if word in COLOURS else "none"
    return f"background:{COLOURS[known]};color:{INKS[known]}"


def parameters(text: str) -> dict[str, str]:
    """Those of a cell, as the sheet spells them."""
    found: dict[str, str] = json.loads(text)
    return found
