"""The atlas and the cards of mechanisms."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import Path, Request
from pydantic import BaseModel
from starlette.responses import Response

from separatrix.analysis.cards.card import Card
from separatrix.analysis.cards.construction_result import AtlasCell, AtlasVerdict
from separatrix.core.documents import schema_type
from separatrix.core.errors import UsageError
from separatrix.core.parameters import split_mechanisms
from separatrix.core.schemas import lists
from separatrix.core.schemas._base import Values
from separatrix.web.api._base import TheDesk, documented_options, new_router
from separatrix.web.requests import Desk, read_query
from separatrix.web.workers import Call

router = new_router("mechanisms")
ATLAS = {
    "mechanisms": "Which, with commas; all if none.",
    "constructions": "Which, with commas; all if none.",
    "family": "Of these families alone, with commas.",
    "sort": "family, name, seen, or a construction.",
}
CALLED = {
    "width": "One's own: the width of a head that it takes.",
    "heads": "One's own: the number of heads that it takes.",
    "scale": "One's own: multiply queries by this; sqrt undoes a hidden 1/sqrt(width).",
    "seed": "One's own: of weights that are drawn where a class is made.",
}
CARD = {
    "against": "Mechanisms to compare with, with commas.",
    "quick": "yes: the contract alone.",
    **CALLED,
}
MechanismName = Annotated[
    str,
    Path(description="As in `separatrix list mechanisms`, with its parameters.", examples=["power:beta=4"]),
]


class Row(BaseModel):
    """A mechanism of the atlas."""

    mechanism: str
    """As cells spell it."""
    asked_as: str
    """As a request names it."""
    family: str
    formula: str
    own: bool
    """Whether it was named on the command line."""


class Column(BaseModel):
    """A construction of the atlas at its reference point."""

    name: str
    construction: str
    title: str
    parameters: Values


class Meaning(BaseModel):
    """A verdict's word and its letter."""

    word: str
    letter: str
    meaning: str


class Rescued(BaseModel):
    """Who tells apart what the fixed reader does not, and the letter for it."""

    by: str
    letter: str
    meaning: str


class Table(BaseModel):
    """The atlas without its cells."""

    mechanisms: list[Row]
    constructions: list[Column]
    words: list[Meaning]
    rescues: list[Rescued]
    marks: dict[str, str]
    """Of kinds of evidence."""


class Known(BaseModel):
    """Cells that were computed since the explorer was started."""

    verdicts: list[schema_type(AtlasVerdict)]  # type: ignore[valid-type]
    cells: list[schema_type(AtlasCell)]  # type: ignore[valid-type]


class Heading(BaseModel):
    """What is known of a mechanism before anything is computed."""

    mechanism: str
    listed: lists.ListedMechanism
    """What `separatrix list mechanisms NAME --json` prints."""
    calling: list[str]
    """One's own: how it is called, a sentence each, a hidden scale first."""
    special_cases: list[lists.Edge]
    """What `separatrix list mechanisms --lattice --json` prints of it."""


def _atlas_call(name: str, request: Request, desk: Desk) -> Call:
    words, options = read_query(request, ATLAS)
    if words:
        raise UsageError(f"{next(iter(words))}= is no option of the atlas, which is at reference points")
    mechanisms = options.pop("mechanisms", "")
    if mechanisms:
        desk.settings.admitted(mechanisms)
    given = {each: value for each, value in options.items() if value}
    return Call(name, {"mechanisms": mechanisms, "options": given})


@router.get("/atlas/table", response_model=Table, openapi_extra=documented_options(ATLAS))
async def atlas_table(request: Request, desk: TheDesk) -> Response:
    """The rows and columns of the atlas; one's own mechanisms come first."""
    call = _atlas_call("atlas_table", request, desk)
    return await desk.answer(
        request, Call(call.name, {**call.arguments, "own": list(desk.settings.mechanisms)})
    )


@router.get(
    "/atlas/verdicts",
    response_model=schema_type(list[AtlasVerdict]),
    openapi_extra=documented_options(ATLAS),
)
async def atlas_verdicts(request: Request, desk: TheDesk) -> Response:
    """The cells that a closed form answers at once, at the reference points alone; others are left out."""
    call = _atlas_call("atlas_verdicts", request, desk)
    if "sort" in call.arguments["options"]:
        await desk.answer(request, Call("atlas_order", dict(call.arguments)))
        call.arguments["options"].pop("sort")  # who reads it sorts: the same cells in any order
    return await desk.answer(request, call)


@router.get("/atlas/known")
async def atlas_known(desk: TheDesk) -> Known:
    """Cells that were computed since the explorer was started."""
    verdicts, cells = (
        [cell for answer in desk.known(name) for cell in json.loads(answer)]
        for name in ("atlas_verdicts", "atlas_cells")
    )
    return Known(verdicts=verdicts, cells=cells)


@router.get("/atlas", response_model=schema_type(list[AtlasCell]), openapi_extra=documented_options(ATLAS))
async def atlas(request: Request, desk: TheDesk) -> Response:
    """What `separatrix atlas --json` prints, of some cells."""
    return await desk.answer(request, _atlas_call("atlas_cells", request, desk))


@router.get("/mechanism/{mechanism:path}", response_model=Heading, openapi_extra=documented_options(CALLED))
async def heading(mechanism: MechanismName, request: Request, desk: TheDesk) -> Response:
    """What is known of a mechanism before anything is computed: formula, source, special cases."""
    return await desk.answer(request, _card_call("mechanism_heading", mechanism, request, desk, CALLED))


@router.get(
    "/assess/{mechanism:path}", response_model=schema_type(Card), openapi_extra=documented_options(CARD)
)
async def card(mechanism: MechanismName, request: Request, desk: TheDesk) -> Response:
    """What `separatrix assess --json` prints.

    To who accepts `application/x-ndjson` the card is sent as far as it is, once the contract is known and
    after each construction, in lines of progress; whole at last.
    """
    return await desk.answer(request, _card_call("card", mechanism, request, desk, CARD))


def _card_call(name: str, mechanism: str, request: Request, desk: Desk, options: dict[str, str]) -> Call:
    words, chosen = read_query(request, options)
    if words:
        raise UsageError(f"{next(iter(words))}= is no option of a card; parameters are part of the name")
    if len(split_mechanisms(mechanism)) > 1:
        raise UsageError(f"{mechanism} are several mechanisms; compare them with --against")
    desk.settings.admitted(mechanism)
    if chosen.get("against"):
        desk.settings.admitted(chosen["against"])
    check = "check_card" if name == "card" else None
    return Call(name, {"mechanisms": mechanism, "options": chosen}, check)
