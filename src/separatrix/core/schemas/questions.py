"""What `verdict`, `readers`, `map`, `boundary` and `scaling` print with --json."""

from __future__ import annotations

from typing_extensions import TypedDict

from separatrix.core.schemas._base import (
    Texts,
    Whole,
    document,
)


@document
class Neuron(TypedDict):
    """Probabilities of one neuron: fractions as text where they are certified, else numbers."""

    p0: str | float | None
    """It fires on D0."""
    p1: str | float | None
    """It fires on D1."""
    q: str | float | None
    """It fires on neither."""


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
