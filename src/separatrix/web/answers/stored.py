"""What a store holds: sweeps as they grow, pages of cells, figures of a sweep, two sweeps side by side."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sqlalchemy import func, select

from separatrix.core.errors import SeparatrixError, UsageError
from separatrix.core.numbers.printable import visible
from separatrix.sweeps.store import Filter, Store, open_store, read_filter, select_cells
from separatrix.sweeps.store.compare import compare_sweeps
from separatrix.sweeps.store.export import iterate_documents
from separatrix.sweeps.store.frame import require_known
from separatrix.sweeps.store.schema import VERDICT, cells, members
from separatrix.sweeps.store.selection import first_place
from separatrix.sweeps.store.sweep_list import SweepProgress, find_sweep, read_progress
from separatrix.web.answers._base import Tell, answer, document
from separatrix.web.workers import Slow

MOST_ROWS, ROWS = 1000, 200
"""Cells of a page at most, and unless asked otherwise."""
MANY = 20_000
"""Cells of a sweep that are not read through at once."""
PATIENCE = 20.0
"""Seconds that a store may take to answer."""

NOTHING_DRAWN: Mapping[str, Any] = {
    **dict.fromkeys(("title", "finding", "evidence", "plan"), ""),
    "seconds": "0 s",
    **dict.fromkeys(("unfinished", "curves_left_out", "maps_left_out"), 0),
    **{name: [] for name in ("versions", "curves", "maps")},
    "warning": None,
}
"""The figures of no cells."""

Words = Mapping[str, str]


def opened(store: str) -> Store:
    """The store, which refuses to be changed."""
    return open_store(store, timeout=PATIENCE, read_only=True)


@answer
def stored_sweeps(store: str, quick: bool, tell: Tell) -> bytes:
    """How far every sweep of the store is."""
    here = opened(store)
    found = read_progress(here)
    return document(
        {
            "store": here.location,
            "cells": found.cells,
            "kinds": found.kinds,
            "running": found.running,
            "sweeps": [_sweep(sweep) for sweep in found.sweeps],
            "warning": found.damage.warning if found.damage else None,
        }
    )


def _sweep(each: SweepProgress) -> dict[str, Any]:
    sweep = each.sweep
    return {
        **{name: getattr(sweep, name) for name in ("id", "name", "started", "cells")},
        "stored": each.stored,
        "planned": max(each.members, _planned(sweep.plan) or 0),
        "not_done": each.unsuccessful,
    }


@lru_cache(maxsize=1000)
def _planned(text: str) -> int | None:
    """How many cells a plan names; nothing where its text is none, or names code."""
    from separatrix.sweeps.plan import read_plan

    try:
        return read_plan(text).count
    except SeparatrixError:
        return None


@answer
def stored_cells(store: str, words: Words, options: Words, quick: bool, tell: Tell) -> bytes:
    """A page of what `separatrix results --json` prints, and from where the next one goes on."""
    here, asked = opened(store), _asked(words, options)
    sweep = _sweep_number(here, options)
    size, after = _size(options), _after(here, options)
    with select_cells(here, asked, sweep, size, after=after) as found:
        if found.count == 0 and "after" not in options:
            require_known(here, asked)
        rows = [row for frame in found.frames() for row in iterate_documents(frame, found.kind)]
        damage = found.damage
    return document(
        {
            "cells": rows,
            "next": None if found.last is None else str(found.last),
            "warning": damage.warning if damage else None,
        }
    )


@answer
def stored_counts(store: str, words: Words, options: Words, quick: bool, tell: Tell) -> bytes:
    """How many cells are asked for, by how they came out."""
    here, asked = opened(store), _asked(words, options)
    sweep, word = _sweep_number(here, options), func.coalesce(cells.c.verdict, cells.c.status)
    counted: Any = select(word, func.count(func.distinct(cells.c.id))).select_from(cells)
    if sweep is not None:
        counted = counted.join(members, members.c.cell == cells.c.id)
        counted = counted.where(members.c.sweep == sweep)
    counted = counted.where(cells.c.kind == asked.kind)
    found = here.select(counted.where(asked.clause(here.dialect)).group_by(word))
    words_found = sorted(((str(name), int(count)) for name, count in found), key=lambda one: -one[1])
    return document({"cells": sum(count for _, count in words_found), "came": dict(words_found)})


@answer
def stored_figures(store: str, words: Words, options: Words, quick: bool, tell: Tell) -> bytes:
    """The curves and maps of a sweep, as `separatrix report` draws them, in numbers; of some of its cells
    where there are conditions."""
    from separatrix.pages.store.stored_cells import NoSuchCells, open_cells
    from separatrix.pages.store.texts import count_evidence, describe_verdicts, spell_duration
    from separatrix.web.answers._figures import describe_figures

    here, asked = opened(store), read_filter(words)
    sweep = _sweep_number(here, options)
    if quick and _members(here, sweep) > MANY // 10:
        raise Slow("many cells are read for this")
    tell({"what": f"reading {_members(here, sweep):,} cells"})
    try:
        with open_cells(here, sweep, asked) as (found, selection):
            tell({"what": "drawing curves and maps"})
            once = found.distinct
            made = {
                "title": found.title,
                "finding": describe_verdicts(once),
                "evidence": count_evidence(once),
                "seconds": spell_duration(float(once["seconds"].sum())),
                "unfinished": found.unfinished,
                "versions": list(found.versions[:6]),
                "plan": "" if found.sweep is None else visible(found.sweep.plan),
                **describe_figures(found),
            }
            damage = selection.damage
    except NoSuchCells:
        return document(NOTHING_DRAWN)
    return document({**made, "warning": damage.warning if damage else None})


@answer
def compared(store: str, one: str, other: str, quick: bool, tell: Tell) -> bytes:
    """What `separatrix compare --json` prints."""
    here = opened(store)
    numbers = [find_sweep(here, each) for each in (one, other)]
    many = sum(_members(here, number) for number in numbers)
    if quick and many > MANY:
        raise Slow("many cells are compared")
    tell({"what": f"comparing {many:,} cells"})
    return document(compare_sweeps(here, one, other).as_json())


def _asked(words: Words, options: Words) -> Filter:
    return read_filter(words, options.get("kind", VERDICT))


def _sweep_number(store: Store, options: Words) -> int | None:
    return find_sweep(store, options["sweep"]) if options.get("sweep") else None


def _members(store: Store, sweep: int | None) -> int:
    """How many cells there are to be read."""
    asked = select(func.count()).select_from(cells)
    if sweep is not None:
        asked = select(func.count()).select_from(members).where(members.c.sweep == sweep)
    return int(store.select(asked)[0][0])


def _size(options: Words) -> int:
    text = options.get("limit", str(ROWS))
    if not text.isdecimal() or not 1 <= int(text) <= MOST_ROWS:
        raise UsageError(
            f"--limit={text} is no number of cells for a page; it shows 1 to {MOST_ROWS:,} at once"
        )
    return int(text)


def _after(store: Store, options: Words) -> Any:
    first = first_place(store)
    text = options.get("after")
    if text is None:
        return first
    if isinstance(first, str):
        return text
    if not (text.isdecimal() and len(text) < 19):
        raise UsageError(f"--after={text} is no place in the store; it is what the page before calls `next`")
    return int(text)
