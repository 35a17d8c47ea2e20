"""Mechanisms side by side: their verdicts, their P, and how often one is ahead of all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from separatrix.core.grouping import group_pairs
from separatrix.pages.pages import Section, render_section, shorten_text
from separatrix.pages.store.stored_cells import StoredCells
from separatrix.pages.store.texts import spell_probability
from separatrix.pages.verdict_words import COLOURS
from separatrix.sweeps.store.compare import TOLERANCE

MAX_ROWS = 500
COLUMNS = ("Mechanism", "Cells", "Verdicts", "P: least, median, most", "Highest P", "Evidence of P")
MIN_OVERVIEW = 3
"""Constructions from which on there is an overview."""


@dataclass(frozen=True)
class GridCell:
    """The verdict in a cell of a grid."""

    word: str
    text: str
    """The text after the letter of the verdict."""
    description: str
    """The text at the pointer."""


@dataclass(frozen=True)
class VerdictGrid:
    """Verdicts by row and column; None where there is no cell."""

    corner: str
    head: Sequence[str]
    rows: Sequence[tuple[str, Sequence[GridCell | None]]]


def mechanisms_section(report_cells: StoredCells) -> Section | None:
    """Return one table for each construction, and an overview where there are several."""
    rows = summarise(report_cells)
    if rows.is_empty():
        return None
    return render_section(
        "mechanisms",
        "Comparison of mechanisms",
        "sweep_mechanisms.html.j2",
        overview=_overview(rows),
        columns=COLUMNS,
        tables=group_pairs((row["construction"], _row(row)) for row in rows.head(MAX_ROWS).iter_rows(named=True)),
        left=rows.height - MAX_ROWS,
    )


def summarise(report_cells: StoredCells) -> pl.DataFrame:
    """Return one row for each construction and mechanism."""
    cells, keys = report_cells.distinct, ("construction", "mechanism")
    counts = cells.group_by(keys, maintain_order=True).agg(
        cells=pl.len(),
        words=pl.col("word").value_counts(),
        least=pl.col("p").min(),
        median=pl.col("p").median(),
        most=pl.col("p").max(),
        kinds=pl.col("kind").filter(pl.col("p").is_not_null()).value_counts(),
    )
    ranks = _count_ahead(cells)
    return counts.join(ranks, on=keys, how="left", maintain_order="left").sort("construction", maintain_order=True)


def _count_ahead(cells: pl.DataFrame) -> pl.DataFrame:
    """Return at how many points a mechanism is strictly the highest, and how many it shares with others."""
    point, is_sampled = ("construction", "point"), pl.col("kind") == "sampled"
    intervals = (
        cells.select(*point, "mechanism", "kind", "p", "low", "high")
        .filter(pl.col("p").is_not_null())
        .group_by(*point, "mechanism")
        .agg(
            # An exact answer replaces samples of the same point; several samples give their widest interval.
            low=pl.coalesce(pl.col("low").filter(~is_sampled).first(), pl.col("low").min()),
            high=pl.coalesce(pl.col("high").filter(~is_sampled).first(), pl.col("high").max()),
        )
    )
    high = pl.col("high")
    highest = intervals.group_by(point).agg(count=pl.len(), first=high.max(), second=high.top_k(2).min())
    comparable = intervals.join(highest.filter(pl.col("count") > 1), on=point)
    # The rival of the highest is the second, that of all others the highest.
    is_ahead = pl.col("low") - pl.when(high == pl.col("first")).then("second").otherwise("first") > TOLERANCE
    return comparable.group_by("construction", "mechanism").agg(shared=pl.len(), ahead=is_ahead.sum())


def _row(row: Mapping[str, Any]) -> tuple[Any, ...]:
    ends = ("least", "median", "most")
    spread = [] if row["least"] is None else [spell_probability(row[name]) for name in ends]
    comparison = "–" if row["shared"] is None else f"{row['ahead']:,} of {row['shared']:,} points"
    kinds = {entry["kind"]: entry["count"] for entry in row["kinds"]}
    evidence = ", ".join(f"{kinds[kind]:,} {kind}" for kind in sorted(kinds)) or "–"
    return row["mechanism"], f"{row['cells']:,}", _shares(row["words"], row["cells"]), spread, comparison, evidence


def _shares(counts: list[dict[str, Any]], total: int) -> list[tuple[str, str, str]]:
    """Return each verdict with the number of its cells, and its percentage."""
    order, cells = list(COLOURS), {str(entry["word"]): int(entry["count"]) for entry in counts}
    words = sorted(cells, key=lambda word: (order.index(word) if word in order else len(order), word))
    return [(word, f"{cells[word]:,}", f"{100 * cells[word] / total:.4g}") for word in words]


def _overview(rows: pl.DataFrame) -> VerdictGrid | None:
    """Return the most frequent verdict of each pair; None where there are few constructions."""
    constructions = rows["construction"].unique(maintain_order=True).to_list()
    if len(constructions) < MIN_OVERVIEW:
        return None
    cells = {(row["mechanism"], row["construction"]): _most_frequent(row) for row in rows.iter_rows(named=True)}
    lines = [
        (shorten_text(name, 40), [cells.get((name, construction)) for construction in constructions])
        for name in rows["mechanism"].unique(maintain_order=True)
    ]
    return VerdictGrid("", [shorten_text(name, 30) for name in constructions], lines)


def _most_frequent(row: Mapping[str, Any]) -> GridCell:
    words = sorted((-entry["count"], str(entry["word"])) for entry in row["words"])
    count, word = words[0]
    percentage = "" if len(words) == 1 else f" {-100 * count / row['cells']:.0f}"
    description = ", ".join(f"{-number:,} {name}" for number, name in words)
    return GridCell(word, percentage, shorten_text(description, 200))
