"""The store: sweeps as they grow, cells in pages, figures, two sweeps side by side."""

from __future__ import annotations

import time
from typing import Any

from fastapi import Path, Request
from starlette.responses import Response
from typing_extensions import TypedDict

from separatrix.core.documents import schema_type
from separatrix.core.schemas._base import Number, Texts, Whole, document
from separatrix.core.schemas.lists import ListedSweep
from separatrix.sweeps.store.compare import ComparedSweeps
from separatrix.sweeps.store.export import StoredVerdict, StoredWork
from separatrix.web.api._base import TheDesk, documented, new_router
from separatrix.web.api._stores import state_of, store_of
from separatrix.web.requests import Desk, read_query
from separatrix.web.workers import Call

router = new_router("store")
SWEEP = {"sweep": "Only cells of this sweep: its name or number."}
COUNTS = {**SWEEP, "kind": "Of which kind of work: verdict, training or floor."}
RESULTS = {
    **COUNTS,
    "limit": "No more than so many cells; at most 1,000.",
    "after": "Where the page before ended: its `next`.",
}


@document
class GrowingSweep(ListedSweep):
    """A sweep, and how far it is."""

    stored: Whole
    """Cells that are stored, each once for each part of the plan that names it."""
    planned: Whole
    """Cells of its plan, counted so."""
    not_done: dict[str, int]
    """How many of the stored ones were refused or failed."""


@document
class StoreContents(TypedDict):
    """What the store holds just now."""

    store: str
    """Its address without passwords."""
    cells: Whole
    kinds: dict[str, int]
    running: Whole
    """Runs of sweeps that gave a sign of life within the last minute."""
    sweeps: list[GrowingSweep]
    warning: str | None
    """What is damaged."""


StoredCell = schema_type(StoredVerdict) | StoredWork


@document
class CellPage(TypedDict):
    """Some stored cells, in the order of `separatrix results`; pages are in the order of the store."""

    cells: list[StoredCell]  # type: ignore[valid-type]
    next: str | None
    """What `--after` takes for the next page; null on the last."""
    warning: str | None


@document
class CellCounts(TypedDict):
    """How many cells are asked for."""

    cells: Whole
    came: dict[str, int]
    """How many have which verdict; how they ended where they have none."""


class _OfGroup(TypedDict):
    part: str
    construction: str
    fixed: dict[str, str]
    """Parameters that stay."""


@document
class CurveLine(TypedDict):
    """The cells of one mechanism along an axis; P is null where a cell has no answer."""

    mechanism: str
    x: list[float]
    exactly: Texts
    """The same as text, which is exact."""
    p: list[Number]
    low: list[Number]
    high: list[Number]
    margin: list[Number]
    word: Texts
    kind: Texts
    """How P is known: certified, exact, sampled or none."""


@document
class SweepCurve(_OfGroup):
    """P against one parameter."""

    x: str
    log: bool
    follows: Texts
    """Parameters that change with x."""
    finding: str
    left_out: Whole
    """Mechanisms that are not shown."""
    lines: list[CurveLine]


@document
class MapAxis(TypedDict):
    """An axis of a map."""

    name: str
    log: bool
    values: Texts
    at: list[float]


@document
class SweepMap(_OfGroup):
    """P over two parameters; rows follow the second axis."""

    mechanism: str
    axes: list[MapAxis]
    values: list[list[Number]]


@document
class SweepFigures(TypedDict):
    """What `separatrix report` draws of a sweep, in numbers."""

    title: str
    finding: str
    evidence: str
    seconds: str
    unfinished: int
    versions: Texts
    plan: str
    curves: list[SweepCurve]
    curves_left_out: Whole
    maps: list[SweepMap]
    maps_left_out: Whole
    warning: str | None


SIGN_OF_LIFE = 10.0
"""Seconds after which runs are counted again though nothing was written: a killed one says nothing."""


async def _ask(desk: Desk, request: Request, name: str, **arguments: Any) -> Response:
    asked = {"store": store_of(desk.settings), **arguments}
    state = f"{state_of(desk.settings.store)} {time.monotonic() // SIGN_OF_LIFE}"
    return await desk.answer(request, Call(name, asked), state=state)


@router.get("/store", response_model=StoreContents)
async def contents(request: Request, desk: TheDesk) -> Response:
    """How far every sweep is: counts alone, cheap enough to be asked every second."""
    return await _ask(desk, request, "stored_sweeps")


@router.get("/results", response_model=CellPage, openapi_extra=documented(RESULTS))
async def results(request: Request, desk: TheDesk) -> Response:
    """A page of what `separatrix results --json` prints; the same words and options."""
    words, options = read_query(request, RESULTS)
    return await _ask(desk, request, "stored_cells", words=words, options=options)


@router.get("/results/counts", response_model=CellCounts, openapi_extra=documented(COUNTS))
async def counts(request: Request, desk: TheDesk) -> Response:
    """How many cells `separatrix results` finds, by how they came out."""
    words, options = read_query(request, COUNTS)
    return await _ask(desk, request, "stored_counts", words=words, options=options)


@router.get("/results/figures", response_model=SweepFigures, openapi_extra=documented(SWEEP))
async def figures(request: Request, desk: TheDesk) -> Response:
    """Curves and maps of a sweep, of the newest where none is named, from cells that meet the conditions."""
    words, options = read_query(request, SWEEP)
    return await _ask(desk, request, "stored_figures", words=words, options=options)


@router.get("/compare/{one}/{other}", response_model=schema_type(ComparedSweeps))
async def compare(
    request: Request,
    desk: TheDesk,
    one: str = Path(description="Name or number of a sweep."),
    other: str = Path(description="Name or number of the sweep to compare it with."),
) -> Response:
    """What `separatrix compare --json` prints."""
    return await _ask(desk, request, "compared", one=one, other=other)
