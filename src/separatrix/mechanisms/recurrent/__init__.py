"""A state of fixed size, updated token by token; only the past is seen."""

from separatrix.mechanisms.recurrent._base import RecurrentMechanism
from separatrix.mechanisms.recurrent._gated import GatedMechanism
from separatrix.mechanisms.recurrent.causal_linear import CausalLinear
from separatrix.mechanisms.recurrent.delta import Delta
from separatrix.mechanisms.recurrent.gated_delta import GatedDelta
from separatrix.mechanisms.recurrent.gla import Gla
from separatrix.mechanisms.recurrent.retention import Retention
from separatrix.mechanisms.recurrent.ssd import Ssd

__all__ = [
    "CausalLinear",
    "Delta",
    "GatedDelta",
    "GatedMechanism",
    "Gla",
    "RecurrentMechanism",
    "Retention",
    "Ssd",
]
