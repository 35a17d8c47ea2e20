"""What `list` prints with --json; one that is asked for by its name has more keys."""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from separatrix.core.schemas._base import Number, Texts, Whole, document

_Tried = TypedDict("_Tried", {"try": NotRequired[list[str]]})
"""Commands to go on with; `try` is a word of Python."""


@document
class ListedMechanism(_Tried):
    """A mechanism."""

    name: str
    family: str
    formula: str
    parameters: Texts
    """In brackets those that need not be given."""
    source: str
    about: NotRequired[str]
    defaults: NotRequired[dict[str, str]]
    extras: NotRequired[Texts]
    """What it takes beside q, k and v."""
    causal: NotRequired[str]


@document
class ListedConstruction(_Tried):
    """A construction."""

    name: str
    title: str
    parameters: Texts
    choices: dict[str, str]
    """Of parameters that take words: which there are, with commas between them."""
    reference: dict[str, str]
    """The reference point."""
    provenance: str
    description: str
    defaults: NotRequired[dict[str, str]]


@document
class ListedClaim(_Tried):
    """A claim of the ledger, not run."""

    name: str
    provenance: Literal["paper", "rec", "ours"]
    place: str
    statement: str


@document
class ListedTask(_Tried):
    """A task, with ceiling and floor on its samples to test with; null where data is real."""

    name: str
    title: str
    score: str
    ceiling: Number
    floor: Number
    mechanisms_with_witness: Texts
    parameters: Texts
    provenance: str
    description: str
    defaults: NotRequired[dict[str, str]]


@document
class ListedEngine(TypedDict):
    """An engine."""

    name: str
    title: str
    draws: bool
    """Whether it samples."""
    proves: bool


@document
class ListedNumber(TypedDict):
    """A published number, not measured."""

    name: str
    states: str
    published: Number
    source: str
    measured_by: str | None
    differs_in: str | None
    cpu_seconds: Number


@document
class ListedPlan(TypedDict):
    """A plan that comes with separatrix."""

    name: str
    description: str
    cells: Whole


@document
class ListedSweep(TypedDict):
    """A sweep of a store."""

    id: int
    name: str
    started: str
    cells: Whole


@document
class ListedSchema(TypedDict):
    """A kind of document."""

    name: str
    command: str
    about: str


@document
class Edge(TypedDict):
    """A mechanism that is a special case of another."""

    special: str
    general: str
    causal: Literal["either", "yes", "no"]
    inputs: str
    why: str
