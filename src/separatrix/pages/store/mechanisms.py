"""Mechanisms side by side: their verdicts, their P, and how often one is ahead of all others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from separatrix.pages import pages
from separatrix.pages.pages import short
from separatrix.pages.store.figure import ShownVerdict, VerdictGrid
from separatrix.pages.store.stored_cells import StoredCells
from separatrix.pages.store.wording import chance
from separatrix.pages.verdict_words import COLOURS
from separatrix.sweeps.store.compare import TOLERANCE

MOST_ROWS = 500
COLUMNS = ("Mechanism", "Cells", "Verdicts", "P: least, median, most", "Highest P", "P is known")
FEWEST = 3
"""Constructions that make an overview: of fewer, their own tables are enough."""


def section(stored: StoredCells) -> pages.Section | None:
    """One table for each construction, and an overview where there are several."""
    rows = summary(stored)
    if rows.is_empty():
        return None
    tables: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows.head(MOST_ROWS).iter_rows(named=True):
        tables.setdefault(row["construction"], []).append(_row(row))
    return pages.section(
        "mechanisms",
        "Comparison of mechanisms",
        "sweep_mechanisms.html.j2",
        overview=_overview(rows),
        columns=COLUMNS,
        tables=tables,
        left=rows.height - MOST_ROWS,
    )


def summary(stored: StoredCells) -> pl.DataFrame:
    """One row for each construction and mechanism."""
    cells = stored.distinct
    kind, known = ("construction", "mechanism"), pl.col("p").is_not_null()
    counted = cells.group_by(kind, maintain_order=True).agg(
        cells=pl.len(),
        words=pl.col("word").value_counts(),
        least=pl.col("p").min(),
        median=pl.col("p").median(),
        most=pl.col("p").max(),
        kinds=pl.col("kind").filter(known).value_counts(),
    )
    return counted.join(_ahead(cells), on=kind, how="left", maintain_order="left").sort(
        "construction", maintain_order=True
    )


def _ahead(cells: pl.DataFrame) -> pl.DataFrame:
    """How often a mechanism is strictly the highest, and at how many shared points."""
    point, sampled = ("construction", "point"), pl.col("kind") == "sampled"
    each = (
        cells.select(*point, "mechanism", "kind", "p", "low", "high")
        .filter(pl.col("p").is_not_null())
        .group_by(*point, "mechanism")
        .agg(
            low=pl.coalesce(pl.col("low").filter(~sampled).first(), pl.col("low").min()),
            high=pl.coalesce(pl.col("high").filter(~sampled).first(), pl.col("high").max()),
        )
    )
    highest = each.group_by(point).agg(
        count=pl.len(), first=pl.col("high").max(), second=pl.col("high").top_k(2).min()
    )
    shared = each.join(highest.filter(pl.col("count") > 1), on=point)
    rival = pl.when(pl.col("high") == pl.col("first")).then("second").otherwise("first")
    return shared.group_by("construction", "mechanism").agg(
        shared=pl.len(), ahead=(pl.col("low") - rival > TOLERANCE).sum()
    )


def _row(row: Mapping[str, Any]) -> tuple[Any, ...]:
    spread = [] if row["least"] is None else [chance(row[name]) for name in ("least", "median", "most")]
    shared = "–" if row["shared"] is None else f"{row['ahead']:,} of {row['shared']:,} points"
    kinds = {each["kind"]: each["count"] for each in row["kinds"]}
    known = ", ".join(f"{kinds[kind]:,} {kind}" for kind in sorted(kinds)) or "–"
    return row["mechanism"], f"{row['cells']:,}", _shares(row["words"], row["cells"]), spread, shared, known


def _shares(counts: list[dict[str, Any]], cells: int) -> list[tuple[str, str, str]]:
    """Each verdict with the number of its cells, and how many percent those are."""
    order = list(COLOURS)
    found = {str(count["word"]): int(count["count"]) for count in counts}
    words = sorted(found, key=lambda word: (order.index(word) if word in order else len(order), word))
    return [(word, f"{found[word]:,}", f"{100 * found[word] / cells:.4g}") for word in words]


def _overview(rows: pl.DataFrame) -> VerdictGrid | None:
    """The most frequent verdict of each pair; nothing where there are few constructions."""
    kinds = rows["construction"].unique(maintain_order=True).to_list()
    if len(kinds) < FEWEST:
        return None
    found = {(row["mechanism"], row["construction"]): _most(row) for row in rows.iter_rows(named=True)}
    mechanisms = rows["mechanism"].unique(maintain_order=True)
    lines = [(short(name, 40), [found.get((name, kind)) for kind in kinds]) for name in mechanisms]
    return VerdictGrid("", [short(kind, 30) for kind in kinds], lines)


def _most(row: Mapping[str, Any]) -> ShownVerdict:
    words = sorted((-each["count"], str(each["word"])) for each in row["words"])
    count, word = words[0]
    rest = "" if len(words) == 1 else f" {-100 * count / row['cells']:.0f}"
    return ShownVerdict(word, rest, short(", ".join(f"{-count:,} {word}" for count, word in words), 200))
