"""The document that `check` prints with --json."""

from __future__ import annotations

from typing_extensions import TypedDict

from separatrix.core.schemas._base import Texts, Whole, document


@document
class Check(TypedDict):
    """What the checker of certificates says of a file."""

    file: str
    holds: bool
    verified: Whole
    """How many statements were verified."""
    failed: Texts
    """A line for each that was not."""
    statement: Texts
    """What was verified, in sentences."""
