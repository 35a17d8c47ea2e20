"""What `sweep`, `results`, `report`, `compare` and `store` print with --json."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from separatrix.core.schemas._base import Interval, Number, Texts, Values, Whole, document, open_document
from separatrix.core.schemas.questions import Neuron

Taken = dict[str, dict[str, dict[str, str]]]
"""By part of a plan and construction, the parameters that were not given: those of the reference point."""


@document
class Sweep(TypedDict):
    """How a sweep ended: how many cells came out how."""

    sweep: str
    number: int
    """Of the sweep in its store."""
    store: str
    total: Whole
    kept: Whole
    """In the store already."""
    shared: Whole
    """Computed by another sweep meanwhile."""
    twice: Whole
    """Named twice in the plan."""
    done: Whole
    refused: Whole
    failed: Whole
    failed_before: Whole
    lost: Whole
    """Batches whose worker died."""
    elsewhere: Whole
    """Being computed by another sweep just now."""
    notes: Texts
    stopped: bool
    taken: NotRequired[Taken]


@document
class Basis(TypedDict):
    """What an estimate rests on: pairs of mechanism and construction."""

    known: Whole
    tried: Whole
    guessed: Whole


@document
class Estimate(TypedDict):
    """What lies before a sweep."""

    sweep: str
    store: str
    cells: Whole
    different: Whole
    stored: Whole
    missing: Whole
    workers: Whole
    seconds: Number
    seconds_from: Basis
    taken: Taken


@document
class Cell(TypedDict):
    """A stored verdict; null where a cell was refused or failed."""

    part: NotRequired[str | None]
    construction: str
    mechanism: str
    parameters: Values
    engine: str | None
    evidence: str | None
    neuron: Neuron
    fire_d0: Number
    fire_d1: Number
    distinguish: Number
    interval: Interval | None
    margin: Number
    bits: Number
    delta: str | None
    verdict: str | None
    status: str
    message: str | None
    asked: str | None
    """The engine that was asked for."""
    draws: int | None
    seed: int | None
    confidence: Number
    dtype: str | None
    until_decided: bool | None
    seconds: Number
    finished: str | None
    host: str | None
    code: str | None
    """The version of the code."""
    id: str | int
    versions: dict[str, Any] | None


@open_document
class WorkCell(TypedDict):
    """Stored work of another kind than verdicts; what it found has keys of its own."""

    kind: str
    status: str
    parameters: dict[str, Any] | None
    versions: dict[str, Any] | None


@document
class Damage(TypedDict):
    """Rows of each table that are not as they were written, or gone."""

    altered: dict[str, int]
    lost: dict[str, int]


@document
class StoreDamage(Damage):
    """The damage of one store."""

    store: str


class _Comparison(TypedDict):
    identical: bool
    same: Whole
    other_verdict: Whole
    other_probability: Whole
    changed: Whole
    only_one: Whole
    only_other: Whole
    largest: list[dict[str, Any]]
    """The largest changes: what was asked, and both answers."""


@document
class Comparison(_Comparison):
    """How two sweeps differ."""


@document
class Compared(_Comparison):
    """How two sweeps differ, and what of their stores is damaged."""

    one: str
    other: str
    damaged: list[StoreDamage]


@document
class ReportWritten(TypedDict):
    """What `report` wrote."""

    page: str
    tables: Texts
    sweep: int | None
    name: str | None
    cells: dict[str, int]
    """How many have which status."""
    damaged: Damage | None
    comparison: Comparison | None


class _Health(TypedDict):
    sound: bool
    store: str
    version: int
    cells: Whole
    sweeps: Whole
    members: Whole
    environments: Whole
    files: Whole
    pages: Whole
    newest_version: int
    damaged: Damage


@document
class StoreHealth(_Health):
    """What a store holds, and whether it is sound."""


@document
class Unreadable(TypedDict):
    """A store that cannot be read."""

    sound: Literal[False]
    error: str


@document
class StoreUpgraded(TypedDict):
    """Versions of a store."""

    before: int
    after: int


@document
class StoreCopied(TypedDict):
    """Where the copy is."""

    copy: str
