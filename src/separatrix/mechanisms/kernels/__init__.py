"""Scores that are a scalar function of the logit <q,k>."""

from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms.kernels.linear import Linear
from separatrix.mechanisms.kernels.power import Power
from separatrix.mechanisms.kernels.softmax import Softmax
from separatrix.mechanisms.kernels.taylor import Taylor

KERNELS: tuple[type[Mechanism], ...] = (Softmax, Linear, Power, Taylor)

__all__ = ["KERNELS", "Linear", "Power", "Softmax", "Taylor"]
