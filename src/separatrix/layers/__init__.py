"""Torch modules around mechanisms: layers to build models from."""

from __future__ import annotations

from separatrix.layers.attention import Attention
from separatrix.layers.cache import Cache
from separatrix.layers.model import Block, Model

__all__ = ["Attention", "Block", "Cache", "Model"]
