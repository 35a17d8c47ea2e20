"""What there is to name: constructions, mechanisms with their colours, and what the page was started with."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel

from separatrix import __version__, catalog
from separatrix.core.schemas import lists as documents
from separatrix.web.api._base import TheDesk, new_router
from separatrix.web.api._stores import shown_store

router = new_router("lists")


class About(BaseModel):
    """The running explorer."""

    version: str
    own_mechanisms: list[str]
    """Named with --mechanism."""
    has_store: bool
    store: str | None
    """The address of the store as --store takes it, with *** for a password."""


class Mechanism(BaseModel):
    """How one mechanism is drawn everywhere."""

    name: str
    family: str
    formula: str
    spelled: str
    """With the parameters it cannot do without."""
    colour: str


@router.get("/about")
async def about(desk: TheDesk) -> About:
    """What the explorer was started with; the password of a store is not told."""
    settings = desk.settings
    return About(
        version=__version__,
        own_mechanisms=list(settings.mechanisms),
        has_store=settings.store is not None,
        store=shown_store(settings),
    )


@router.get("/list/constructions", response_model=list[documents.ListedConstruction])
async def constructions() -> list[dict[str, Any]]:
    """What `separatrix list constructions --json` prints."""
    return _constructions()


@cache
def _constructions() -> list[dict[str, Any]]:
    return catalog.list_constructions()


@router.get("/list/mechanisms", response_model=list[documents.ListedMechanism])
async def mechanisms() -> list[dict[str, Any]]:
    """What `separatrix list mechanisms --json` prints."""
    return _mechanisms()


@cache
def _mechanisms() -> list[dict[str, Any]]:
    return catalog.list_mechanisms()


@router.get("/looks")
async def looks(desk: TheDesk) -> list[Mechanism]:
    """Every mechanism with its colour, which is the same in every figure of the product."""
    return [*_looks(), *_own(desk.settings.mechanisms)]


@cache
def _looks() -> list[Mechanism]:
    from separatrix.mechanisms import MECHANISMS

    rows = []
    for name, kind in MECHANISMS.items():
        needed = ",".join(f"{each}={value}" for each, value in kind.example.items())
        spelled = f"{name}:{needed}" if needed else name
        rows.append((name, kind.family, kind.formula, spelled))
    return _coloured(rows)


def _own(names: tuple[str, ...]) -> list[Mechanism]:
    return _coloured([(name, "your own", "as programmed", name) for name in names])


def _coloured(rows: list[tuple[str, str, str, str]]) -> list[Mechanism]:
    from separatrix.pages.looks import choose_looks

    return [
        Mechanism(
            name=name,
            family=family,
            formula=formula,
            spelled=spelled,
            colour=choose_looks([spelled])[spelled].css_colour,
        )
        for name, family, formula, spelled in rows
    ]
