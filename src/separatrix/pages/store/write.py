"""The page and its tables, whole or not at all."""

from __future__ import annotations

import shlex
from collections import Counter
from functools import partial
from pathlib import Path

from separatrix.core.files.folder import Folder, Writer
from separatrix.core.parameters import UsageError
from separatrix.pages.pages import Section
from separatrix.pages.store import changes, curves, mechanisms, planes, refused, training
from separatrix.pages.store.groups import groups
from separatrix.pages.store.page import render
from separatrix.pages.store.stored_cells import StoredCells, open_cells
from separatrix.sweeps.store import Selection, Store, select_cells
from separatrix.sweeps.store.compare import Comparison, StoreReport, compare
from separatrix.sweeps.store.export import write


def write_report(
    store: Store, folder: Path, sweep: int | None = None, against: int | None = None
) -> StoreReport:
    """Write report.html, results.csv and results.parquet into `folder`.

    The report is of the newest sweep if none is given, and of all cells where the store has no sweeps.
    """
    with Folder(folder) as made, open_cells(store, sweep) as (stored, selection):
        comparison, changed = (None, None) if against is None else _changes(store, stored, selection, against)
        found = groups(stored)
        runs = training.trained_runs(store, None if stored.sweep is None else stored.sweep.id)
        where = f"--store {shlex.quote(stored.store)}" + (
            f" --sweep {stored.sweep.id}" if stored.sweep else ""
        )
        results = f"separatrix results {where}"
        sections = (
            changed,
            curves.section(found),
            planes.section(found),
            mechanisms.section(stored),
            training.section(runs),
            refused.section(stored, results),
        )
        other = "" if against is None else f" --against {against}"
        made_by = f"separatrix report {where}{other} --out {shlex.quote(str(folder))}"
        files: dict[str, bytes | Writer] = {
            "report.html": render(
                stored, [section for section in sections if section], made_by, results, runs
            ).encode(errors="replace"),
            "results.csv": partial(write, selection, ".csv"),
            "results.parquet": partial(write, selection, ".parquet"),
        }
        if runs.counts:
            files["training.csv"] = runs.csv
        made.fill(files)
        damage = selection.damage
    page, *tables = (folder / name for name in files)
    ended = Counter(dict(stored.distinct.group_by("status", maintain_order=True).len().iter_rows()))
    ended.update(runs.counts)
    number, name = (None, None) if stored.sweep is None else (stored.sweep.id, stored.sweep.name)
    return StoreReport(page, tuple(tables), number, name, dict(ended), comparison, damage or None)


def _changes(
    store: Store, stored: StoredCells, selection: Selection, against: int
) -> tuple[Comparison, Section]:
    other = next((sweep for sweep in store.list_sweeps() if sweep.id == against), None)
    if stored.sweep is None or other is None:
        raise UsageError(f"there is no sweep {against} in {store.location}")
    if other.id == stored.sweep.id:
        raise UsageError(f"sweep {against} is the one that is reported; name another one to compare with")
    with select_cells(store, None, against) as others:
        found = compare(selection.frames(), others.frames())
    line = f"separatrix compare {stored.sweep.id} {against} --store {shlex.quote(stored.store)}"
    return found, changes.section(found, stored.sweep, other, line)
