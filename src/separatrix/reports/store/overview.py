"""Mechanisms against constructions at a glance: the most frequent verdict of each pair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from separatrix.reports.store.pieces import short, style
from separatrix.reports.verdict_words import LETTERS

FEWEST = 3
"""Constructions: of fewer, their own tables are enough."""


def overview(rows: pl.DataFrame) -> str:
    """The summary of all pairs as one grid of letters, or nothing where there are few constructions."""
    kinds = rows["construction"].unique(maintain_order=True).to_list()
    if len(kinds) < FEWEST:
        return ""
    found = {(row["mechanism"], row["construction"]): row for row in rows.iter_rows(named=True)}
    head = "".join(f'<th class="turned"><span>{short(kind, 30)}</span></th>' for kind in kinds)
    body = "".join(
        f"<tr><th>{short(mechanism, 40)}</th>"
        + "".join(_cell(found.get((mechanism, kind))) for kind in kinds)
        + "</tr>"
        for mechanism in rows["mechanism"].unique(maintain_order=True)
    )
    meanings = ", ".join(f"{letter} {word}" for word, letter in LETTERS.items())
    return (
        f'<div class="scroll"><table class="grid"><thead><tr><th></th>{head}</tr></thead>'
        f'<tbody>{body}</tbody></table></div><p class="hint">The most frequent verdict: {meanings}. '
        "A number says how many percent of the cells have it, where not all do.</p>"
    )


def _cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "<td></td>"
    words = sorted((-each["count"], str(each["word"])) for each in row["words"])
    count, word = words[0]
    rest = "" if len(words) == 1 else f" {-100 * count / row['cells']:.0f}"
    said = ", ".join(f"{-count:,} {word}" for count, word in words)
    return f'<td style="{style(word)}" title="{short(said, 200)}">{LETTERS.get(word, "–")}{rest}</td>'
