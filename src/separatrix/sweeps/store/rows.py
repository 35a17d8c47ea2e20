"""The values that a store keeps: results of work, the files beside them, environments and sweeps."""

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

MAX_FILE_BYTES = 100 * 2**20
"""Bytes of a file beside a cell, or of a checkpoint."""
Findings = Mapping[str, str | int | float | None]
"""The values that work found, by name."""


def utc_now() -> str:
    """Return the time in UTC as it is stored."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class CellStatus(StrEnum):
    """How a cell ended."""

    DONE = "done"
    REFUSED = "refused"
    """No engine can answer it; the message gives the reason."""
    FAILED = "failed"
    """The cell raised an error, or its worker died repeatedly."""


@dataclass(frozen=True)
class Environment:
    """The machine and the software that computed a cell."""

    host: str
    versions: dict[str, str]
    """The versions of Python and of the packages that the numbers depend on."""

    @cached_property
    def id(self) -> str:
        """The identity: the same for the same host and versions."""
        text = json.dumps([self.host, self.versions], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class File:
    """A named file beside a cell; its bytes are never executed or unpickled."""

    name: str
    data: bytes
    media_type: str = "application/octet-stream"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", self.name):
            raise ValueError(f"{self.name!r} is not a file name; use letters, digits and . _ -")
        require_small(self.name, self.data)


def require_small(name: str, data: bytes) -> None:
    """Raise ValueError for data that is too large for a row."""
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"{name} has {len(data):,} bytes, more than {MAX_FILE_BYTES:,}")


@dataclass(frozen=True)
class Answer:
    """The outcome of one work item."""

    findings: Findings = field(default_factory=dict)
    files: tuple[File, ...] = ()
    status: CellStatus = CellStatus.DONE
    message: str | None = None


def findings_as_text(findings: Findings) -> dict[str, str]:
    """Return findings as they are stored: exact decimals, floats with a point, no missing values.

    >>> findings_as_text({"steps": 400, "loss": 1e-7, "word": "solved", "rate": None})
    {'steps': '400', 'loss': '0.0000001', 'word': 'solved'}
    """
    texts = {name: _decimal(x) if isinstance(x, float) else x for name, x in findings.items()}
    return {name: str(x) for name, x in texts.items() if x is not None}


def _decimal(x: float) -> str | None:
    if not isfinite(x):
        return None
    text = format(Decimal(repr(x)), "f")
    return text if "." in text else f"{text}.0"


@dataclass(frozen=True, kw_only=True)
class CellResult(Answer):
    """An answer with its cost and origin, as it is stored."""

    seconds: float
    finished: str
    """The time in UTC."""
    environment: Environment


@dataclass(frozen=True)
class Checkpoint:
    """The state from which unfinished work continues."""

    data: bytes
    seconds: float
    """Computing time so far."""

    def __post_init__(self) -> None:
        require_small("a checkpoint", self.data)


@dataclass(frozen=True)
class Sweep:
    """One plan as it was run by one version of the code."""

    id: int
    key: str
    """The identity: the same for the same plan and code."""
    name: str
    plan: str
    """The text of the plan."""
    started: str
    cells: int = 0
    """The number of its cells that are stored."""
