"""report.html: one file with everything in it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import polars as pl

from separatrix.pages import pages
from separatrix.pages.maps.captions import READER
from separatrix.pages.store.stored_cells import StoredCells
from separatrix.pages.store.training import TrainedRuns
from separatrix.pages.store.wording import evidence, finding

MOST_SHOWN = 6
"""Hosts, engines or sets of versions that are named."""


def render(
    stored: StoredCells, sections: Sequence[pages.Section], made_by: str, results: str, runs: TrainedRuns
) -> str:
    """The page as text."""
    cells = stored.distinct
    more = len(stored.versions) - MOST_SHOWN
    return pages.page(
        "sweep.html.j2",
        title=pages.short(stored.title, 120),
        finding=_finding(cells),
        lead=_lead(stored, runs),
        facts=_facts(stored, runs),
        where=f"Engines: {_listed(cells['engine'])}. Hosts: {_listed(cells['host'])}.",
        reader=READER,
        made_by=made_by,
        results=results,
        plan=None if stored.sweep is None else stored.sweep.plan,
        versions=[
            *map(_versions, stored.versions[:MOST_SHOWN]),
            *([f"and {more:,} more"] if more > 0 else []),
        ],
        sections=sections,
    )


def _finding(cells: pl.DataFrame) -> str:
    said = finding(cells)
    return f"{said[:1].upper()}{said[1:]}." if said else ""


def _lead(stored: StoredCells, runs: TrainedRuns) -> str:
    cells = stored.distinct
    when = "" if stored.sweep is None else f"Started {pages.short(_date(stored.sweep.started))}. "
    known = evidence(cells)
    if (trained := runs.counts.get("done", 0)) and cells.is_empty():
        return f"{when}{trained:,} training runs are finished."
    counted = (
        f"P is known for {cells['p'].count():,} cells: {known}." if known else "No cell has an answer yet."
    )
    return when + counted


def _date(text: str) -> str:
    """2026-11-16T02:59:26+00:00 as one reads it; anything else as it is.

    >>> _date("2026-11-16T02:59:26+00:00"), _date("yesterday")
    ('2026-11-16 02:59 UTC', 'yesterday')
    """
    return f"{text[:10]} {text[11:16]} UTC" if text[10:11] == "T" and text.endswith("+00:00") else text


def _facts(stored: StoredCells, runs: TrainedRuns) -> list[tuple[str, str]]:
    cells = stored.distinct
    ended = Counter(dict(cells.group_by("status").len().iter_rows()))
    ended.update(runs.counts)
    counts = {name: ended.pop(name, 0) for name in ("done", "refused", "failed")}
    counts |= {f"ended as “{name}”": count for name, count in ended.items()}
    counts |= {"not finished yet": stored.unfinished} if stored.unfinished > 0 else {}
    facts = [(pages.short(name, 60), f"{count:,}") for name, count in counts.items()]
    return [*facts, ("computing time", duration(float(cells["seconds"].sum()) + runs.seconds))]


def _listed(values: pl.Series) -> str:
    names = values.drop_nulls().unique(maintain_order=True).to_list()
    more = f" and {len(names) - MOST_SHOWN:,} more" if len(names) > MOST_SHOWN else ""
    return ", ".join(names[:MOST_SHOWN]) + more or "–"


def duration(seconds: float) -> str:
    """Seconds in the unit that suits them.

    >>> duration(2.58), duration(200), duration(9000), duration(1e6)
    ('2.58 s', '3.33 min', '2.5 h', '278 h')
    """
    for length, unit in ((3600, "h"), (60, "min")):
        if seconds >= length:
            return (
                f"{seconds / length:,.3g} {unit}"
                if seconds < 1000 * length
                else f"{seconds / length:,.0f} {unit}"
            )
    return f"{seconds:.3g} s"


def _versions(text: str) -> str:
    found = json.loads(text)
    if not isinstance(found, dict):
        return text
    return ", ".join(f"{name} {version}" for name, version in found.items())
