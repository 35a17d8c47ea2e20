"""What can be moved on a map, and the colours that its numbers are shown in."""

from __future__ import annotations

from typing import Literal

from fastapi import Request
from pydantic import BaseModel
from starlette.responses import Response

from separatrix.web.api._base import ConstructionName, MechanismNames, TheDesk, new_router
from separatrix.web.workers import Call

router = new_router("controls")


class Span(BaseModel):
    """Between which values a parameter is dragged; it may be given others."""

    low: float
    high: float
    log: bool


class Control(BaseModel):
    """A parameter that can be moved."""

    name: str
    of: Literal["construction", "mechanism"]
    kind: Literal["whole", "number", "word"]
    value: str | None
    """Of the reference point, or the default; null where it follows from others."""
    words: list[str]
    """What it can be, where it is no number."""
    span: Span | None


@router.get("/controls/{construction}/{mechanisms:path}", response_model=list[Control])
async def controls(
    construction: ConstructionName, mechanisms: MechanismNames, request: Request, desk: TheDesk
) -> Response:
    """The construction's parameters, and those that all the mechanisms have."""
    chosen = desk.settings.admitted(mechanisms)
    return await desk.answer(request, Call("controls", {"construction": construction, "mechanisms": chosen}))


class FirstAxis(BaseModel):
    """An axis of the map that is shown first."""

    name: str
    range: str
    """As it is typed."""


@router.get("/axes/{construction}", response_model=list[FirstAxis])
async def first_axes(construction: ConstructionName, request: Request, desk: TheDesk) -> Response:
    """Two axes around a construction's reference point, on which every cell is a point that there is."""
    return await desk.answer(request, Call("first_axes", {"construction": construction}))
