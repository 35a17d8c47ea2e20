"""What is kept of a finished cell."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property


def now() -> str:
    """The time in UTC, as it is stored."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class Status(StrEnum):
    """How a cell ended."""

    DONE = "done"
    REFUSED = "refused"
    """No engine can answer it: the message says why."""
    FAILED = "failed"
    """The cell raised, or its worker died again and again."""


@dataclass(frozen=True)
class Environment:
    """Where a cell was computed."""

    host: str
    versions: dict[str, str]
    """The versions of Python and the packages the numbers depend on."""

    @cached_property
    def id(self) -> str:
        """The identity of an environment: the same for the same host and versions."""
        spelled = json.dumps([self.host, self.versions], sort_keys=True)
        return hashlib.sha256(spelled.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Result:
    """The answer of one cell, as it is stored."""

    status: Status
    seconds: float
    finished: str
    """When, in UTC."""
    environment: Environment
    message: str | None = None
    verdict: str | None = None
    engine: str | None = None
    evidence: str | None = None
    p0: str | None = None
    p1: str | None = None
    q: str | None = None
    """Probabilities of one neuron: exact fractions where the engine gives them, else floats."""
    distinguish: float | None = None
    low: float | None = None
    high: float | None = None
    fire_d0: float | None = None
    fire_d1: float | None = None
    margin: float | None = None
    bits: float | None = None


@dataclass(frozen=True)
class Sweep:
    """One plan as it was run by one version of the code."""

    id: int
    name: str
    plan: str
    """The text of the plan."""
    started: str
    cells: int
    """How many of its cells are in the store."""
    key: str = ""
    """The identity of a sweep: the same for the same plan and code."""
