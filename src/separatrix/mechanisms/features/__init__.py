"""Scores that are inner products of feature maps: <phi(q), phi(k)>."""

from separatrix.mechanisms.features._base import FeatureMechanism, LogFeatureMechanism
from separatrix.mechanisms.features.based import Based
from separatrix.mechanisms.features.cosformer import Cosformer
from separatrix.mechanisms.features.dpfp import Dpfp
from separatrix.mechanisms.features.elu import Elu
from separatrix.mechanisms.features.exponential import ExpFeatures
from separatrix.mechanisms.features.favor import Favor
from separatrix.mechanisms.features.hedgehog import Hedgehog
from separatrix.mechanisms.features.identity import IdentityFeatures
from separatrix.mechanisms.features.relu import ReluFeatures
from separatrix.mechanisms.features.rff import Rff
from separatrix.mechanisms.features.squared_relu import SquaredReluFeatures

__all__ = [
    "Based",
    "Cosformer",
    "Dpfp",
    "Elu",
    "ExpFeatures",
    "Favor",
    "FeatureMechanism",
    "Hedgehog",
    "IdentityFeatures",
    "LogFeatureMechanism",
    "ReluFeatures",
    "Rff",
    "SquaredReluFeatures",
]
