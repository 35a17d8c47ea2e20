"""Scores that are a scalar function of the logit <q,k>, and of how many keys there are."""

from separatrix.mechanisms.kernels.adaptive_softmax import AdaptiveSoftmax
from separatrix.mechanisms.kernels.linear import Linear
from separatrix.mechanisms.kernels.logn_softmax import LogNSoftmax
from separatrix.mechanisms.kernels.power import Power
from separatrix.mechanisms.kernels.relu import Relu
from separatrix.mechanisms.kernels.sigmoid import Sigmoid
from separatrix.mechanisms.kernels.softmax import Softmax
from separatrix.mechanisms.kernels.squared_relu import SquaredRelu
from separatrix.mechanisms.kernels.taylor import Taylor

__all__ = [
    "AdaptiveSoftmax",
    "Linear",
    "LogNSoftmax",
    "Power",
    "Relu",
    "Sigmoid",
    "Softmax",
    "SquaredRelu",
    "Taylor",
]
