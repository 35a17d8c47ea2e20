"""The attention rows themselves, of a small spike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from separatrix.claims.paper.base import BASE, MECHANISMS, Parameter, outcome_at
from separatrix.constructions import Label
from separatrix.constructions.spike import Spike
from separatrix.exact.reader import FourLayerNetwork
from separatrix.mechanisms import mechanism_named

Array = np.ndarray[Any, Any]

POINT: Mapping[str, Parameter] = {**BASE, "n": 40, "d": 12}
SPIKE, OTHER = 17, 30
"""The spiked token, and an ordinary one in another block."""
LABELS: tuple[Label, Label] = (0, 1)


@dataclass(frozen=True)
class Rows:
    """What two rows of one attention matrix give to each key."""

    mechanism: str
    label: Label
    from_spike: Array
    from_other: Array
    margin: float
    """The mechanism's margin at this point."""


def compute() -> tuple[Rows, ...]:
    """Both labels under both mechanisms, from the reader's first layer."""
    return tuple(_rows(mechanism, label) for mechanism in MECHANISMS for label in LABELS)


def _rows(mechanism: str, label: Label) -> Rows:
    construction = Spike.read(POINT)
    network = FourLayerNetwork.draw(mechanism_named(mechanism), construction, seed=0)
    attention = network.layers(construction.dense(label, SPIKE, torch.float64)).attention
    return Rows(
        mechanism,
        label,
        attention[SPIKE].numpy(),
        attention[OTHER].numpy(),
        outcome_at(mechanism, POINT).margin,
    )
