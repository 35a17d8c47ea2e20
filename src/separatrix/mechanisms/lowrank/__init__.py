"""Attention through a few summaries of the keys."""

from separatrix.mechanisms._base import Mechanism

LOW_RANK: tuple[type[Mechanism], ...] = ()

__all__ = ["LOW_RANK"]
