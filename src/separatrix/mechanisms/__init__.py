"""Attention mechanisms: the registered ones, and how they are named."""

from __future__ import annotations

from separatrix.mechanisms._base import Mechanism, ScoreMechanism
from separatrix.mechanisms._positions import Causality, LastQueryMode
from separatrix.mechanisms.kernels.linear import Linear
from separatrix.mechanisms.kernels.power import Power
from separatrix.mechanisms.kernels.softmax import Softmax
from separatrix.mechanisms.kernels.taylor import Taylor
from separatrix.mechanisms.load import MECHANISMS, examples, mechanism_from, mechanism_named

__all__ = [
    "MECHANISMS",
    "Causality",
    "LastQueryMode",
    "Linear",
    "Mechanism",
    "Power",
    "ScoreMechanism",
    "Softmax",
    "Taylor",
    "examples",
    "mechanism_from",
    "mechanism_named",
]
