"""What the files of the API share: their desk, and how parameters of a command are documented."""

from __future__ import annotations

from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Path, Request
from pydantic import BaseModel

from separatrix.web.requests import Desk

VERSION = "v1"


class Problem(BaseModel):
    """What was wrong with a request, in the words of the command line."""

    error: str
    """One line for each thing that is wrong."""
    field: str | None = None
    """The parameter, or the option with its dashes, that it is about."""
    most_cells: int | None = None
    """How many cells a map like this may have, where it had more."""


PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "What was asked is wrong, or cannot be answered"},
    403: {"model": Problem, "description": "Asked by another site"},
    404: {"model": Problem, "description": "There is no such thing"},
    405: {"model": Problem, "description": "Neither GET nor HEAD"},
    413: {"model": Problem, "description": "A request with a body"},
    414: {"model": Problem, "description": "The address is too long"},
    503: {"model": Problem, "description": "Too many wait, or it takes too long"},
}


def new_router(tag: str) -> APIRouter:
    """A router below /api/v1."""
    return APIRouter(prefix=f"/api/{VERSION}", tags=[tag], responses=PROBLEMS)


def desk_of(request: Request) -> Desk:
    """The desk of the running explorer."""
    return cast(Desk, request.app.state.desk)


TheDesk = Annotated[Desk, Depends(desk_of)]
ConstructionName = Annotated[
    str, Path(description="As in `separatrix list constructions`.", examples=["spike"])
]
MechanismNames = Annotated[
    str,
    Path(
        description="As in `separatrix list mechanisms`, with commas between several; parameters as in "
        "`power:beta=4`.",
        examples=["softmax,linear"],
    ),
]


def documented(options: dict[str, str]) -> dict[str, Any]:
    """What OpenAPI says of an address's query: the construction's parameters, and options with dashes."""
    words = {
        "name": "parameters",
        "in": "query",
        "style": "form",
        "explode": True,
        "schema": {"type": "object", "additionalProperties": {"type": "string"}},
        "description": "The construction's parameters by name, `n=1e6&a1=1.2`; those that are missing are "
        "taken from its reference point.",
    }
    return {"parameters": [words, *documented_options(options)["parameters"]]}


def documented_options(options: dict[str, str]) -> dict[str, Any]:
    """What OpenAPI says of an address's query that has options alone."""
    named = [
        {
            "name": f"--{name}",
            "in": "query",
            "required": False,
            "schema": {"type": "string"},
            "description": about,
        }
        for name, about in options.items()
    ]
    return {"parameters": named}
