"""What is to be told apart: pairs of token families with validated parameters."""

from separatrix.constructions._base import (
    Amplitudes,
    BlockModel,
    Construction,
    Label,
    Presence,
    Probe,
    Row,
    Tokens,
)
from separatrix.constructions.cross import Cross
from separatrix.constructions.plain import Plain
from separatrix.constructions.spike import Spike
from separatrix.parameters import UsageError, nearest

CONSTRUCTIONS: dict[str, type[Construction]] = {each.name: each for each in (Spike, Plain, Cross)}
"""Every construction, by name."""


def construction_named(name: str) -> type[Construction]:
    """The construction called `name`, or a UsageError that lists them."""
    if name not in CONSTRUCTIONS:
        known = list(CONSTRUCTIONS)
        raise UsageError(
            f"there is no construction {name}{nearest(name, known)}; there are: {', '.join(known)}"
        )
    return CONSTRUCTIONS[name]


__all__ = [
    "CONSTRUCTIONS",
    "Amplitudes",
    "BlockModel",
    "Construction",
    "Cross",
    "Label",
    "Plain",
    "Presence",
    "Probe",
    "Row",
    "Spike",
    "Tokens",
    "construction_named",
]
