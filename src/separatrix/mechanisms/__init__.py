"""How tokens attend: the registered mechanisms, and how one is named."""

from __future__ import annotations

from separatrix.mechanisms._base import AskedLast, Causality, Mechanism, ScoreMechanism
from separatrix.mechanisms.kernels.linear import Linear
from separatrix.mechanisms.kernels.power import Power
from separatrix.mechanisms.kernels.softmax import Softmax
from separatrix.mechanisms.kernels.taylor import Taylor
from separatrix.mechanisms.load import MECHANISMS, examples, mechanism_from, mechanism_named

__all__ = [
    "MECHANISMS",
    "AskedLast",
    "Causality",
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
