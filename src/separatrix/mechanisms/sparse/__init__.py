"""Attention to few keys: by score, by place, or both."""

from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms.sparse.block_random import BlockRandom
from separatrix.mechanisms.sparse.entmax import Entmax
from separatrix.mechanisms.sparse.sparsemax import Sparsemax
from separatrix.mechanisms.sparse.strided import Strided
from separatrix.mechanisms.sparse.topk import TopK
from separatrix.mechanisms.sparse.window import Window
from separatrix.mechanisms.sparse.window_global import WindowGlobal

SPARSE: tuple[type[Mechanism], ...] = (
    Sparsemax,
    Entmax,
    TopK,
    Window,
    WindowGlobal,
    BlockRandom,
    Strided,
)

__all__ = [
    "SPARSE",
    "BlockRandom",
    "Entmax",
    "Sparsemax",
    "Strided",
    "TopK",
    "Window",
    "WindowGlobal",
]
