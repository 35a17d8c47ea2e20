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
from separatrix.pages.pages import Section, render_page, shorten_text
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
from separatrix.sweeps.store.sweep_list import list_sweeps

MAX_LISTED = 6
"""Hosts, engines or sets of versions that are listed."""


def write_report(store: Store, folder: Path, sweep: int | None = None, against: int | None = None) -> StoreReport:
    """Write report.html, results.csv and results.parquet into `folder`.

    The report is of the newest sweep if none is named, and of all cells where the store has no sweeps.
    """
    with Folder(folder) as target, open_cells(store, sweep) as (report_cells, selection):
        comparison, changes = None, None
        if against is not None:
            comparison, changes = _compare(store, report_cells, selection, against)
        groups = group_cells(report_cells)
        runs = read_runs(store, None if report_cells.sweep is None else report_cells.sweep.id)
        options = f"--store {shlex.quote(report_cells.store)}"
        options += f" --sweep {report_cells.sweep.id}" if report_cells.sweep else ""
        results = f"separatrix results {options}"
        against_option = "" if against is None else f" --against {against}"
        made_by = f"separatrix report {options}{against_option} --out {shlex.quote(str(folder))}"
        sections = (
            changes,
            curves_section(groups),
            maps_section(groups),
            mechanisms_section(report_cells),
            training_section(runs),
            refused_section(report_cells, results),
        )
        page = _page(report_cells, [section for section in sections if section], made_by, results, runs)
        files: dict[str, bytes | Writer] = {
            # JSON in a store can spell lone surrogates, which UTF-8 does not encode.
            "report.html": page.encode(errors="replace"),
            "results.csv": partial(write, selection, ".csv"),
            "results.parquet": partial(write, selection, ".parquet"),
        }
        if runs.counts:
            files["training.csv"] = runs.csv
        target.fill(files)
        damage = selection.damage
    path, *tables = (folder / name for name in files)
    number, name = (None, None) if report_cells.sweep is None else (report_cells.sweep.id, report_cells.sweep.name)
    counts = dict(_count_statuses(report_cells, runs))
    return StoreReport(path, tuple(tables), number, name, counts, comparison, damage or None)


def _count_statuses(report_cells: StoredCells, runs: TrainedRuns) -> Counter[str]:
    counts = Counter(dict(report_cells.distinct.group_by("status", maintain_order=True).len().iter_rows()))
    counts.update(runs.counts)
    return counts


def _compare(store: Store, report_cells: StoredCells, selection: Selection, against: int) -> tuple[Comparison, Section]:
    other_sweep = next((sweep for sweep in list_sweeps(store)[0] if sweep.id == against), None)
    if report_cells.sweep is None or other_sweep is None:
        raise UsageError(f"there is no sweep {against} in {store.location}")
    if other_sweep.id == report_cells.sweep.id:
        raise UsageError(f"sweep {against} is the one that is reported; name another one to compare with")
    with select_cells(store, None, against) as other_cells:
        comparison = compare(selection.frames(), other_cells.frames())
    command = f"separatrix compare {report_cells.sweep.id} {against} --store {shlex.quote(report_cells.store)}"
    return comparison, changes_section(comparison, report_cells.sweep, other_sweep, command)


def _page(report_cells: StoredCells, sections: Sequence[Section], made_by: str, results: str, runs: TrainedRuns) -> str:
    cells = report_cells.distinct
    finding = describe_verdicts(cells)
    more = len(report_cells.versions) - MAX_LISTED
    return render_page(
        "sweep.html.j2",
        ("map", "chart"),
        title=shorten_text(report_cells.title, 120),
        finding=f"{finding[:1].upper()}{finding[1:]}." if finding else "",
        lead=_lead(report_cells, runs),
        facts=_facts(report_cells, runs),
        origin=f"Engines: {_list_names(cells['engine'])}. Hosts: {_list_names(cells['host'])}.",
        reader=READER_NOTE,
        made_by=made_by,
        results=results,
        plan=None if report_cells.sweep is None else report_cells.sweep.plan,
        versions=[
            *map(_join_versions, report_cells.versions[:MAX_LISTED]),
            *([f"and {more:,} more"] if more > 0 else []),
        ],
        sections=sections,
    )


def _lead(report_cells: StoredCells, runs: TrainedRuns) -> str:
    cells = report_cells.distinct
    start = "" if report_cells.sweep is None else f"Started {shorten_text(_format_date(report_cells.sweep.started))}. "
    evidence, finished_count = count_evidence(cells), runs.counts.get("done", 0)
    if finished_count and cells.is_empty():
        return f"{start}{finished_count:,} training runs are finished."
    if not evidence:
        return f"{start}No cell has an answer yet."
    return f"{start}P is known for {cells['p'].count():,} cells: {evidence}."


def _format_date(text: str) -> str:
    """Return a time stamp in UTC for people; any other text unchanged.

    >>> _format_date("2026-11-16T02:59:26+00:00"), _format_date("yesterday")
    ('2026-11-16 02:59 UTC', 'yesterday')
    """
    return f"{text[:10]} {text[11:16]} UTC" if text[10:11] == "T" and text.endswith("+00:00") else text


def _facts(report_cells: StoredCells, runs: TrainedRuns) -> list[tuple[str, str]]:
    counts = _count_statuses(report_cells, runs)
    facts = {name: counts.pop(name, 0) for name in ("done", "refused", "failed")}
    facts |= {f"ended as “{name}”": count for name, count in counts.items()}
    facts |= {"not finished yet": report_cells.unfinished} if report_cells.unfinished > 0 else {}
    return [
        *((shorten_text(name, 60), f"{count:,}") for name, count in facts.items()),
        ("computing time", spell_duration(float(report_cells.distinct["seconds"].sum()) + runs.seconds)),
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
