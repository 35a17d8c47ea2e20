"""Scores that are inner products of feature maps: <phi(q), phi(k)>."""

from separatrix.mechanisms._base import Mechanism

FEATURE_MAPS: tuple[type[Mechanism], ...] = ()

__all__ = ["FEATURE_MAPS"]
