"""How tokens attend: the registered mechanisms, and how one is named."""

from __future__ import annotations

import sys

from separatrix.mechanisms._base import Causality, Mechanism, ScoreMechanism
from separatrix.mechanisms._registry import registered
from separatrix.mechanisms.kernels.linear import Linear
from separatrix.mechanisms.kernels.power import Power
from separatrix.mechanisms.kernels.softmax import Softmax
from separatrix.mechanisms.kernels.taylor import Taylor
from separatrix.parameters import read_words, require_known

MECHANISMS: dict[str, type[Mechanism]] = registered(sys.modules[__name__])
"""Every mechanism that a file in a family's folder defines, by name."""


def examples() -> list[Mechanism]:
    """One of each registered mechanism."""
    return [each(**each.example) for each in MECHANISMS.values()]


def mechanism_named(text: str) -> Mechanism:
    """The mechanism that `text` names, with its parameters: `softmax`, `power:beta=4`.

    >>> mechanism_named("power:beta=4")
    <mechanism power:beta=4>
    """
    name, _, words = text.partition(":")
    require_known("mechanism", name, MECHANISMS)
    return MECHANISMS[name](**read_words(words.split(",") if words else []))


__all__ = [
    "MECHANISMS",
    "Causality",
    "Linear",
    "Mechanism",
    "Power",
    "ScoreMechanism",
    "Softmax",
    "Taylor",
    "examples",
    "mechanism_named",
]
