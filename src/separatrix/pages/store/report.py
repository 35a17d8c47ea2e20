"""The report of a sweep: report.html and its tables, whole or not at all."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import polars as pl

from separatrix.core.files.folder import Folder, Writer
from separatrix.core.parameters import UsageError
from separatrix.pages.maps.captions import READER_NOTE
from separatrix.pages.pages import Section, render_page, shorten
from separatrix.pages.store.curves import curves_section
from separatrix.pages.store.groups import group_cells
from separatrix.pages.store.mechanisms import mechanisms_section
from separatrix.pages.store.planes import maps_section
from separatrix.pages.store.stored_cells import StoredCells, open_cells
from separatrix.pages.store.tables import changes_section, refused_section
from separatrix.pages.store.texts import count_evidence, describe_verdicts, spell_duration
from separatrix.pages.store.training import TrainedRuns, read_runs, training_section
from separatrix.sweeps.store import Selection, Store, select_cells
from separatrix.sweeps.store.compare import Comparison, StoreReport, compare
from separatrix.sweeps.store.export import write

MAX_LISTED = 6
"""Hosts, engines or sets of versions that are listed."""


def write_report(
    store: Store, folder: Path, sweep: int | None = None, against: int | None = None
) -> StoreReport:
    """Write report.html, results.csv and results.parquet into `folder`.

    The report is of the newest sweep if none is named, and of all cells where the store has no sweeps.
    """
    with Folder(folder) as target, open_cells(store, sweep) as (stored, selection):
        comparison, changes = None, None
        if against is not None:
            comparison, changes = _compare(store, stored, selection, against)
        groups = group_cells(stored)
        runs = read_runs(store, None if stored.sweep is None else stored.sweep.id)
        options = f"--store {shlex.quote(stored.store)}"
        options += f" --sweep {stored.sweep.id}" if stored.sweep else ""
        results = f"separatrix results {options}"
        other = "" if against is None else f" --against {against}"
        made_by = f"separatrix report {options}{other} --out {shlex.quote(str(folder))}"
        sections = (
            changes,
            curves_section(groups),
            maps_section(groups),
            mechanisms_section(stored),
            training_section(runs),
            refused_section(stored, results),
        )
        page = _page(stored, [section for section in sections if section], made_by, results, runs)
        files: dict[str, bytes | Writer] = {
            "report.html": page.encode(errors="replace"),
            "results.csv": partial(write, selection, ".csv"),
            "results.parquet": partial(write, selection, ".parquet"),
        }
        if runs.counts:
            files["training.csv"] = runs.csv
        target.fill(files)
        damage = selection.damage
    path, *tables = (folder / name for name in files)
    number, name = (None, None) if stored.sweep is None else (stored.sweep.id, stored.sweep.name)
    counts = dict(_count_statuses(stored, runs))
    return StoreReport(path, tuple(tables), number, name, counts, comparison, damage or None)


def _count_statuses(stored: StoredCells, runs: TrainedRuns) -> Counter[str]:
    counts = Counter(dict(stored.distinct.group_by("status", maintain_order=True).len().iter_rows()))
    counts.update(runs.counts)
    return counts


def _compare(
    store: Store, stored: StoredCells, selection: Selection, against: int
) -> tuple[Comparison, Section]:
    other = next((sweep for sweep in store.list_sweeps() if sweep.id == against), None)
    if stored.sweep is None or other is None:
        raise UsageError(f"there is no sweep {against} in {store.location}")
    if other.id == stored.sweep.id:
        raise UsageError(f"sweep {against} is the one that is reported; name another one to compare with")
    with select_cells(store, None, against) as others:
        comparison = compare(selection.frames(), others.frames())
    command = f"separatrix compare {stored.sweep.id} {against} --store {shlex.quote(stored.store)}"
    return comparison, changes_section(comparison, stored.sweep, other, command)


def _page(
    stored: StoredCells, sections: Sequence[Section], made_by: str, results: str, runs: TrainedRuns
) -> str:
    cells = stored.distinct
    finding = describe_verdicts(cells)
    more = len(stored.versions) - MAX_LISTED
    return render_page(
        "sweep.html.j2",
        ("map", "chart"),
        title=shorten(stored.title, 120),
        finding=f"{finding[:1].upper()}{finding[1:]}." if finding else "",
        lead=_lead(stored, runs),
        facts=_facts(stored, runs),
        origin=f"Engines: {_list_names(cells['engine'])}. Hosts: {_list_names(cells['host'])}.",
        reader=READER_NOTE,
        made_by=made_by,
        results=results,
        plan=None if stored.sweep is None else stored.sweep.plan,
        versions=[
            *map(_join_versions, stored.versions[:MAX_LISTED]),
            *([f"and {more:,} more"] if more > 0 else []),
        ],
        sections=sections,
    )


def _lead(stored: StoredCells, runs: TrainedRuns) -> str:
    cells = stored.distinct
    start = "" if stored.sweep is None else f"Started {shorten(_format_date(stored.sweep.started))}. "
    evidence, finished = count_evidence(cells), runs.counts.get("done", 0)
    if finished and cells.is_empty():
        return f"{start}{finished:,} training runs are finished."
    if not evidence:
        return f"{start}No cell has an answer yet."
    return f"{start}P is known for {cells['p'].count():,} cells: {evidence}."


def _format_date(text: str) -> str:
    """Return a time stamp in UTC for people; any other text unchanged.

    >>> _format_date("2026-11-16T02:59:26+00:00"), _format_date("yesterday")
    ('2026-11-16 02:59 UTC', 'yesterday')
    """
    return f"{text[:10]} {text[11:16]} UTC" if text[10:11] == "T" and text.endswith("+00:00") else text


def _facts(stored: StoredCells, runs: TrainedRuns) -> list[tuple[str, str]]:
    counts = _count_statuses(stored, runs)
    facts = {name: counts.pop(name, 0) for name in ("done", "refused", "failed")}
    facts |= {f"ended as “{name}”": count for name, count in counts.items()}
    facts |= {"not finished yet": stored.unfinished} if stored.unfinished > 0 else {}
    seconds = float(stored.distinct["seconds"].sum()) + runs.seconds
    return [
        *((shorten(name, 60), f"{count:,}") for name, count in facts.items()),
        ("computing time", spell_duration(seconds)),
    ]


def _list_names(values: pl.Series) -> str:
    names = values.drop_nulls().unique(maintain_order=True).to_list()
    more = f" and {len(names) - MAX_LISTED:,} more" if len(names) > MAX_LISTED else ""
    return ", ".join(names[:MAX_LISTED]) + more or "–"


def _join_versions(text: str) -> str:
    versions = json.loads(text)
    if not isinstance(versions, dict):
        return text
    return ", ".join(f"{name} {version}" for name, version in versions.items())
