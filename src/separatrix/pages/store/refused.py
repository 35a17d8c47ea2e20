"""Cells without an answer, by what they say."""

from __future__ import annotations

from typing import Any

import polars as pl

from separatrix.pages import pages
from separatrix.pages.pages import short
from separatrix.pages.store.stored_cells import StoredCells, decoded
from separatrix.pages.store.wording import words

MOST_ROWS = 100


def section(stored: StoredCells, results: str) -> pages.Section | None:
    """One row for each message; None where every cell has an answer."""
    found = (
        stored.distinct.filter(pl.col("status") != "done")
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
    return pages.section(
        "refused",
        "Refused and failed",
        "sweep_refused.html.j2",
        rows=[_row(row) for row in found.head(MOST_ROWS).iter_rows(named=True)],
        left=found.height - MOST_ROWS,
        line=f"{results} status=refused,failed",
    )


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    names, engine = row["mechanisms"], f" --engine {short(row['asked'], 40)}" if row["asked"] else ""
    more = f" and {len(names) - 4:,} more" if len(names) > 4 else ""
    point = (
        f"{short(row['construction'], 60)} {short(row['mechanism'], 60)} {words(decoded(row['parameters']))}"
    )
    return (
        short(row["message"]) or "no message",
        short(row["status"], 40),
        f"{row['cells']:,}",
        short(", ".join(names[:4]), 120) + more,
        point + engine,
    )
