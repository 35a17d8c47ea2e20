"""Constructions: pairs of token families to be told apart, with validated parameters."""

import sys

from separatrix.constructions._base import (
    Amplitudes,
    BlockModel,
    Construction,
    Exchangeable,
    Label,
    Presence,
    Probe,
    QueryRow,
    Tokens,
)
from separatrix.constructions._exact import Description, ExactConstruction, TokenGroup
from separatrix.core.parameters import find_known
from separatrix.core.registry import by_name, find_classes

_classes = sorted(find_classes(sys.modules[__name__], Construction), key=lambda kind: (kind.section, kind.name))
CONSTRUCTIONS: dict[str, type[Construction]] = by_name(_classes, "constructions")
"""Every construction that a file in this folder defines, by name, in the order of docs/theory.md."""


def construction_named(name: str) -> type[Construction]:
    """Return the construction called `name`, such as `spike`, or raise a UsageError that lists all names."""
    return find_known("construction", name, CONSTRUCTIONS, "spike")


__all__ = [
    "CONSTRUCTIONS",
    "Amplitudes",
    "BlockModel",
    "Construction",
    "Description",
    "ExactConstruction",
    "Exchangeable",
    "Label",
    "Presence",
    "Probe",
    "QueryRow",
    "TokenGroup",
    "Tokens",
    "construction_named",
]
