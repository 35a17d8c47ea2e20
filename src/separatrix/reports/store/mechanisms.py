"""Mechanisms side by side: their verdicts, their P, and how often one is ahead of all others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from separatrix.reports.markup import Section
from separatrix.reports.store.overview import overview
from separatrix.reports.store.pieces import chance, short, style, table
from separatrix.reports.store.sheet import Sheet
from separatrix.reports.verdict_words import COLOURS
from separatrix.store.compare import CLOSE

MOST_ROWS = 500
COLUMNS = ("Mechanism", "Cells", "Verdicts", "P: least, median, most", "Highest P", "P is known")

INTRODUCTION = (
    "<p>Each cell counts once. “None” are cells without an answer: refused or failed. The highest P counts "
    "the points with the same construction and parameters that at least two mechanisms answered: how often "
    "this one lies above every other by more than 10<sup>−12</sup>, with its whole interval where P is "
    "sampled. Verdicts and P are about this reader with its threshold.</p>"
)


def section(sheet: Sheet) -> Section | None:
    """One table for each construction."""
    rows = summary(sheet)
    if rows.is_empty():
        return None
    glance = overview(rows)
    parts = [INTRODUCTION, glance]
    for (name,), own in (
        rows.head(MOST_ROWS).partition_by("construction", as_dict=True, maintain_order=True).items()
    ):
        standings = table(COLUMNS, map(_row, own.iter_rows(named=True)), "standings")
        title = short(str(name))
        folded = f"<details><summary>{title}</summary>{standings}</details>"
        parts.append(folded if glance else f"<h3>{title}</h3>{standings}")
    if rows.height > MOST_ROWS:
        parts.append(
            f"<p>{rows.height - MOST_ROWS:,} more rows are not shown; results.csv has their cells.</p>"
        )
    return Section("mechanisms", "Comparison of mechanisms", "\n".join(parts))


def summary(sheet: Sheet) -> pl.DataFrame:
    """One row for each construction and mechanism."""
    cells = sheet.distinct
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
        shared=pl.len(), ahead=(pl.col("low") - rival > CLOSE).sum()
    )


def _row(row: Mapping[str, Any]) -> list[str]:
    probabilities = [row[name] for name in ("least", "median", "most")]
    spread = (
        "–"
        if row["least"] is None
        else ", ".join(f'<span class="whole">{chance(p)}</span>' for p in probabilities)
    )
    shared = "–" if row["shared"] is None else f"{row['ahead']:,} of {row['shared']:,} points"
    kinds = {each["kind"]: each["count"] for each in row["kinds"]}
    known = ", ".join(f"{kinds[kind]:,} {kind}" for kind in sorted(kinds)) or "–"
    name = f"<strong>{short(row['mechanism'], 80)}</strong>"
    return [name, f"{row['cells']:,}", _bar(row["words"], row["cells"]), spread, shared, known]


def _bar(counts: list[dict[str, Any]], cells: int) -> str:
    """The shares of the verdicts as a bar, and in words."""
    order = list(COLOURS)
    found = {str(each["word"]): int(each["count"]) for each in counts}
    words = sorted(found, key=lambda word: (order.index(word) if word in order else len(order), word))
    pieces = "".join(
        f'<i style="width:{100 * found[word] / cells:.4g}%;{style(word)}"></i>' for word in words
    )
    said = ", ".join(f"{found[word]:,} {short(word, 40)}" for word in words)
    return f'<span class="bar" aria-hidden="true">{pieces}</span><span class="shares">{said}</span>'
