"""Attention through a few summaries of the keys."""

from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms.lowrank.linformer import Linformer
from separatrix.mechanisms.lowrank.nystrom import Nystrom

LOW_RANK: tuple[type[Mechanism], ...] = (Linformer, Nystrom)

__all__ = ["LOW_RANK", "Linformer", "Nystrom"]
