"""The names that requests use: constructions, mechanisms with their colours; how the explorer was started."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from separatrix import __version__, catalog
from separatrix.core.documents import Document
from separatrix.core.schemas.lists import ListedConstruction, ListedMechanism
from separatrix.web.endpoints._base import endpoint
from separatrix.web.settings import Settings


@dataclass(frozen=True)
class ExplorerInfo(Document):
    """The running explorer."""

    version: str
    own_mechanisms: tuple[str, ...]
    """Named with --mechanism."""
    has_store: bool
    store: str | None
    """The address of the store as --store takes it, with *** for a password."""


@endpoint("/about", ExplorerInfo, in_server=True)
def describe_explorer(settings: Settings) -> ExplorerInfo:
    """What the explorer was started with; the password of a store is not shown."""
    store = None
    if settings.store is not None:
        from separatrix.sweeps.store import parse_address

        store = parse_address(settings.store).shown
    return ExplorerInfo(__version__, settings.mechanisms, store is not None, store)


@endpoint("/list/constructions", list[ListedConstruction], in_server=True)
@cache
def list_constructions() -> list[dict[str, Any]]:
    """What `separatrix list constructions --json` prints."""
    return catalog.list_constructions()


@endpoint("/list/mechanisms", list[ListedMechanism], in_server=True)
@cache
def list_mechanisms() -> list[dict[str, Any]]:
    """What `separatrix list mechanisms --json` prints."""
    return catalog.list_mechanisms()


@dataclass(frozen=True)
class MechanismLook(Document):
    """How one mechanism is drawn everywhere."""

    name: str
    family: str
    formula: str
    spelled: str
    """With the parameters that it requires."""
    colour: str


@endpoint("/looks", list[MechanismLook], in_server=True)
@cache
def list_looks(settings: Settings) -> list[MechanismLook]:
    """Every mechanism with its colour, which is the same in every figure of the product."""
    from separatrix.mechanisms.load import examples
    from separatrix.pages.looks import choose_looks

    rows = [(kind.name, kind.family, kind.formula, kind.spelled) for kind in examples()]
    rows += [(name, "your own", "as programmed", name) for name in settings.mechanisms]
    return [MechanismLook(*row, choose_looks([row[-1]])[row[-1]].css_colour) for row in rows]
