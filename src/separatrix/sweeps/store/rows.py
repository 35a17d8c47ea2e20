"""What is kept of a finished cell: the row, and the files beside it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from math import isfinite

LARGEST_FILE = 100 * 2**20
"""Bytes of a file beside a row, or of a checkpoint."""


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
class File:
    """What is kept beside a row, under a name: bytes, of which nothing is executed or unpickled."""

    name: str
    data: bytes
    media_type: str = "application/octet-stream"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", self.name):
            raise ValueError(f"{self.name!r} is no name of a file; letters, digits, . _ - make one")
        require_small(self.name, self.data)


def require_small(name: str, data: bytes) -> None:
    """Refuse what is too large to be kept in a row."""
    if len(data) > LARGEST_FILE:
        raise ValueError(f"{name} has {len(data):,} bytes, more than {LARGEST_FILE:,}")


@dataclass(frozen=True)
class Answer:
    """What work found: values by name, and files."""

    found: Mapping[str, str | int | float | None] = field(default_factory=dict)
    files: tuple[File, ...] = ()
    status: Status = Status.DONE
    message: str | None = None


def as_texts(found: Mapping[str, str | int | float | None]) -> dict[str, str]:
    """Values as they are stored: numbers spelled to the last digit, floats with a point.

    >>> as_texts({"steps": 400, "loss": 1e-7, "word": "solved", "rate": None})
    {'steps': '400', 'loss': '0.0000001', 'word': 'solved'}
    """
    spelled = {name: _decimal(x) if isinstance(x, float) else x for name, x in found.items()}
    return {name: str(x) for name, x in spelled.items() if x is not None}


def _decimal(x: float) -> str | None:
    if not isfinite(x):
        return None
    spelled = format(Decimal(repr(x)), "f")
    return spelled if "." in spelled else f"{spelled}.0"


@dataclass(frozen=True, kw_only=True)
class Result(Answer):
    """An answer as it is stored."""

    seconds: float
    finished: str
    """When, in UTC."""
    environment: Environment


@dataclass(frozen=True)
class Checkpoint:
    """From where unfinished work goes on."""

    data: bytes
    seconds: float
    """That it took until here."""

    def __post_init__(self) -> None:
        require_small("a checkpoint", self.data)


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
