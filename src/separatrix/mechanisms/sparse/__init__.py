"""Attention to few keys: by score, by place, or both."""

from separatrix.mechanisms.sparse.block_random import BlockRandom
from separatrix.mechanisms.sparse.entmax import Entmax
from separatrix.mechanisms.sparse.hardmax import Hardmax
from separatrix.mechanisms.sparse.sparsemax import Sparsemax
from separatrix.mechanisms.sparse.strided import Strided
from separatrix.mechanisms.sparse.topk import TopK
from separatrix.mechanisms.sparse.window import Window
from separatrix.mechanisms.sparse.window_global import WindowGlobal

__all__ = [
    "BlockRandom",
    "Entmax",
    "Hardmax",
    "Sparsemax",
    "Strided",
    "TopK",
    "Window",
    "WindowGlobal",
]
