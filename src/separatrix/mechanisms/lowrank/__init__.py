"""Attention through a few summaries of the keys."""

from separatrix.mechanisms.lowrank.linformer import Linformer
from separatrix.mechanisms.lowrank.nystrom import Nystrom

__all__ = ["Linformer", "Nystrom"]
