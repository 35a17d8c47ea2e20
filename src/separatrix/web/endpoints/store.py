"""The store: sweeps as they grow, cells in pages, figures of a sweep, two sweeps side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import func, select

from separatrix.core.documents import Document
from separatrix.core.errors import SeparatrixError, UsageError
from separatrix.core.numbers.printable import visible
from separatrix.core.schemas._base import Whole
from separatrix.sweeps.store import Filter, Store, read_filter, select_cells
from separatrix.sweeps.store.compare import ComparedSweeps, compare_sweeps
from separatrix.sweeps.store.export import StoredVerdict, StoredWork, iterate_documents
from separatrix.sweeps.store.frame import require_known
from separatrix.sweeps.store.schema import VERDICT, cells, members
from separatrix.sweeps.store.sweep_list import StoreContents, find_sweep, read_progress
from separatrix.web.endpoints._base import Options, Words, endpoint, open_for_reading
from separatrix.web.endpoints._figures import SweepFigures, describe_curves, describe_maps
from separatrix.web.workers import Report, Slow

MAX_PAGE_CELLS, DEFAULT_PAGE_CELLS = 1000, 200
MAX_QUICK_FIGURE_CELLS, MAX_QUICK_COMPARED_CELLS = 2_000, 20_000
"""Larger sweeps go to the slow lane."""
MAX_FIGURE_VERSIONS = 6
RUNS_REFRESH_SECONDS = 10.0
"""The time after which running sweeps are counted again: a run that was killed writes nothing."""
SWEEP_OPTION = {"sweep": "Only cells of this sweep: its name or number."}
COUNT_OPTIONS = {**SWEEP_OPTION, "kind": "The kind of work: verdict, training or floor."}
SweepName = Annotated[str, Field(description="Name or number of a sweep.")]
OtherSweepName = Annotated[str, Field(description="Name or number of the sweep to compare it with.")]


@dataclass(frozen=True)
class CellPage(Document):
    """Some stored cells, in the order of `separatrix results`; pages are in the order of their ids."""

    cells: list[StoredVerdict | StoredWork]
    next: str | None
    """The `--after` of the next page; null on the last."""
    warning: str | None


@dataclass(frozen=True)
class CellCounts(Document):
    """The number of cells that a request selects."""

    cells: Whole
    came: dict[str, int]
    """The number of cells by verdict, or by status where they have no verdict."""


@endpoint("/store", StoreContents, refresh_seconds=RUNS_REFRESH_SECONDS)
def describe_store(store_address: str | None) -> StoreContents:
    """The progress of every sweep: counts alone, cheap enough to be requested every second."""
    contents = read_progress(_open_store(store_address))
    # Members are added shortly before they are computed; the plan is not readable if it names code.
    sweeps = [replace(sweep, planned=max(sweep.planned, _count_planned(sweep.plan) or 0)) for sweep in contents.sweeps]
    return replace(contents, sweeps=sweeps)


def _open_store(store_address: str | None) -> Store:
    if store_address is None:
        raise UsageError(
            "the page was started without a store; start it with: separatrix explore --store sqlite:///results.db"
        )
    return open_for_reading(store_address)


@lru_cache(maxsize=1000)
def _count_planned(text: str) -> int | None:
    """Return the number of cells of a plan; None if its text is no plan, or names code."""
    from separatrix.sweeps.plan import read_plan

    try:
        return read_plan(text).count
    except SeparatrixError:
        return None


@endpoint(
    "/results",
    CellPage,
    options={
        **COUNT_OPTIONS,
        "limit": "The number of cells on the page; at most 1,000.",
        "after": "The place where the previous page ended: its `next`.",
    },
)
def list_cells(store_address: str | None, words: Words, options: Options) -> dict[str, Any]:
    """A page of what `separatrix results --json` prints; the same words and options."""
    store, conditions = _open_store(store_address), _read_conditions(words, options)
    sweep = _find_sweep(store, options)
    size, after = _read_page_size(options), options.get("after", "")
    with select_cells(store, conditions, sweep, size, after=after) as selection:
        # A first page without cells may be due to a misspelled name, which is an error, as for the command.
        if selection.count == 0 and "after" not in options:
            require_known(store, conditions)
        rows = [row for frame in selection.frames() for row in iterate_documents(frame, selection.kind)]
        damage, last = selection.damage, selection.last
    return {"cells": rows, "next": last, "warning": damage.warning if damage else None}


@endpoint("/results/counts", CellCounts, options=COUNT_OPTIONS)
def count_cells(store_address: str | None, words: Words, options: Options) -> CellCounts:
    """The number of cells that `separatrix results` selects, by verdict or status."""
    store, conditions = _open_store(store_address), _read_conditions(words, options)
    sweep, result = _find_sweep(store, options), func.coalesce(cells.c.verdict, cells.c.status)
    query: Any = select(result, func.count(func.distinct(cells.c.id))).select_from(cells)
    if sweep is not None:
        query = query.join(members, members.c.cell == cells.c.id).where(members.c.sweep == sweep)
    query = query.where(cells.c.kind == conditions.kind, conditions.clause(store.dialect))
    counts = {str(name): int(count) for name, count in store.select(query.group_by(result))}
    most_first = dict(sorted(counts.items(), key=lambda item: -item[1]))
    return CellCounts(sum(counts.values()), most_first)


@endpoint("/results/figures", SweepFigures, options=SWEEP_OPTION)
def draw_sweep_figures(
    store_address: str | None, words: Words, options: Options, is_quick: bool, report: Report
) -> SweepFigures:
    """Curves and maps of a sweep, of the newest where none is named, from cells that meet the conditions.

    They are those of `separatrix report`, in numbers.
    """
    from separatrix.pages.store.groups import group_cells
    from separatrix.pages.store.stored_cells import NoSuchCells, open_cells
    from separatrix.pages.store.texts import count_evidence, describe_verdicts, spell_duration

    store, conditions = _open_store(store_address), read_filter(words)
    sweep = _find_sweep(store, options)
    count = _count_members(store, sweep)
    if is_quick and count > MAX_QUICK_FIGURE_CELLS:
        raise Slow
    report({"what": f"reading {count:,} cells"})
    try:
        with open_cells(store, sweep, conditions) as (figure_cells, selection):
            report({"what": "drawing curves and maps"})
            distinct = figure_cells.distinct
            groups = group_cells(figure_cells)
            curves, curves_left_out = describe_curves(groups)
            maps, maps_left_out = describe_maps(groups)
            # The damage is known once the cells have been read.
            damage = selection.damage
            return SweepFigures(
                title=figure_cells.title,
                finding=describe_verdicts(distinct),
                evidence=count_evidence(distinct),
                seconds=spell_duration(float(distinct["seconds"].sum())),
                unfinished=figure_cells.unfinished,
                versions=list(figure_cells.versions[:MAX_FIGURE_VERSIONS]),
                plan="" if figure_cells.sweep is None else visible(figure_cells.sweep.plan),
                curves=curves,
                curves_left_out=curves_left_out,
                maps=maps,
                maps_left_out=maps_left_out,
                warning=damage.warning if damage else None,
            )
    except NoSuchCells:
        return SweepFigures()


@endpoint("/compare/{one}/{other}", ComparedSweeps)
def compare_two_sweeps(
    one: SweepName, other: OtherSweepName, store_address: str | None, is_quick: bool, report: Report
) -> ComparedSweeps:
    """What `separatrix compare --json` prints."""
    store = _open_store(store_address)
    count = sum(_count_members(store, find_sweep(store, name)) for name in (one, other))
    if is_quick and count > MAX_QUICK_COMPARED_CELLS:
        raise Slow
    report({"what": f"comparing {count:,} cells"})
    return compare_sweeps(store, one, other)


def _read_conditions(words: Words, options: Options) -> Filter:
    return read_filter(words, options.get("kind", VERDICT))


def _find_sweep(store: Store, options: Options) -> int | None:
    return find_sweep(store, options["sweep"]) if options.get("sweep") else None


def _count_members(store: Store, sweep: int | None) -> int:
    """Return the number of cells of a sweep, or of all."""
    query = select(func.count()).select_from(cells)
    if sweep is not None:
        query = select(func.count()).select_from(members).where(members.c.sweep == sweep)
    return int(store.select(query)[0][0])


def _read_page_size(options: Options) -> int:
    text = options.get("limit", str(DEFAULT_PAGE_CELLS))
    if not text.isdecimal() or not 1 <= int(text) <= MAX_PAGE_CELLS:
        raise UsageError(f"--limit={text} is no number of cells for a page; it shows 1 to {MAX_PAGE_CELLS:,} at once")
    return int(text)
