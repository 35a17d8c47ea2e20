"""What is to be told apart: pairs of token families with validated parameters."""

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
from separatrix.constructions._exact import Description, ExactConstruction, Kind
from separatrix.core.parameters import UsageError, require_known
from separatrix.core.registry import by_name, defined

_found = sorted(defined(sys.modules[__name__], Construction), key=lambda each: (each.section, each.name))
CONSTRUCTIONS: dict[str, type[Construction]] = by_name(_found, "constructions")
"""Every construction that a file in this folder defines, by name, in the order of docs/theory.md."""


def construction_named(name: str) -> type[Construction]:
    """The construction called `name`, such as `spike`, or a UsageError that lists them."""
    if not isinstance(name, str):
        raise UsageError(f"{name!r} is not the name of a construction; write for example 'spike'")
    require_known("construction", name, CONSTRUCTIONS)
    return CONSTRUCTIONS[name]


__all__ = [
    "CONSTRUCTIONS",
    "Amplitudes",
    "BlockModel",
    "Construction",
    "Description",
    "ExactConstruction",
    "Exchangeable",
    "Kind",
    "Label",
    "Presence",
    "Probe",
    "QueryRow",
    "Tokens",
    "construction_named",
]
