"""Attention to few keys: by score, by place, or both."""

from separatrix.mechanisms._base import Mechanism

SPARSE: tuple[type[Mechanism], ...] = ()

__all__ = ["SPARSE"]
