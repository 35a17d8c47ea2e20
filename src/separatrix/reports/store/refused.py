"""Cells without an answer, by what they say."""

from __future__ import annotations

from typing import Any

import polars as pl

from separatrix.reports.markup import Section
from separatrix.reports.store.pieces import command, short, table, words
from separatrix.reports.store.sheet import Sheet, decoded

MOST_ROWS = 100
COLUMNS = ("Message", "Ended", "Cells", "Mechanisms", "For example")


def section(sheet: Sheet, results: str) -> Section | None:
    """One row for each message; None where every cell has an answer."""
    found = (
        sheet.distinct.filter(pl.col("status") != "done")
        .group_by("status", "message", maintain_order=True)
        .agg(
            cells=pl.len(),
            mechanisms=pl.col("mechanism").unique(maintain_order=True),
            **{name: pl.col(name).first() for name in ("construction", "mechanism", "parameters", "asked")},
        )
        .sort("cells", descending=True, maintain_order=True)
    )
    if found.is_empty():
        return None
    left = found.height - MOST_ROWS
    more = f"<p>{left:,} more messages are not shown; results.csv has them.</p>" if left > 0 else ""
    body = (
        "<p>Refused: no engine that was asked answers the cell, and the message says why. Failed: the "
        "computation stopped with an error. Neither says anything about the mechanism.</p>"
        f"{table(COLUMNS, map(_row, found.head(MOST_ROWS).iter_rows(named=True)), 'messages')}{more}"
        f"{command(f'{results} status=refused,failed', 'these cells')}"
    )
    return Section("refused", "Refused and failed", body)


def _row(row: dict[str, Any]) -> list[str]:
    names = row["mechanisms"]
    shown = short(", ".join(names[:4]), 120) + (f" and {len(names) - 4:,} more" if len(names) > 4 else "")
    example = (
        f"{short(row['construction'], 60)} {short(row['mechanism'], 60)} {words(decoded(row['parameters']))}"
    )
    message = short(row["message"]) if row["message"] else "no message"
    engine = f" --engine {short(row['asked'], 40)}" if row["asked"] else ""
    return [message, short(row["status"], 40), f"{row['cells']:,}", shown, f"<code>{example}{engine}</code>"]
