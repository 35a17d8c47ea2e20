"""torch, imported when it is first used, so that closed forms are answered without it.

Other packages import `torch`, its `functional` and the types of signatures from here. Shapes such as
`Float[Tensor, "batch heads tokens width"]` are jaxtyping's if that is imported first, as in tests that check
every call; otherwise they serve as documentation.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from separatrix.core.lazy import LazyModule

if TYPE_CHECKING or "jaxtyping" in sys.modules:
    import torch
    from jaxtyping import Bool, Float, Int, Int64
    from torch import Tensor
    from torch.nn import functional
else:
    torch, functional = LazyModule("torch"), LazyModule("torch.nn.functional")
    Bool = Float = Int = Int64 = Annotated
    Tensor = Any


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch to one thread: on many small tensors, threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -3, -4
"""glibc's mallopt parameters for trimming free memory and for mapping large blocks separately."""
AFTERWARDS = {M_TRIM_THRESHOLD: 1 << 26, M_MMAP_THRESHOLD: 1 << 25, M_MMAP_MAX: 1 << 16}
"""The values that glibc itself reaches in a program that has used such blocks."""


@contextmanager
def memory_kept() -> Iterator[None]:
    """Keep freed memory in the process within the block, for many large tensors one after the other.

    glibc returns blocks of megabytes to the system when they are freed, and each new one is zeroed page by
    page, which takes half the time of attention that holds its scores. No effect without glibc.
    """
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    if library is None or not (hasattr(library, "mallopt") and hasattr(library, "malloc_trim")):
        yield
        return
    library.mallopt(M_MMAP_MAX, 0)
    library.mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)
    try:
        yield
    finally:
        for name, value in AFTERWARDS.items():
            library.mallopt(name, value)
        library.malloc_trim(0)


__all__ = ["Bool", "Float", "Int", "Int64", "Tensor", "functional", "memory_kept", "one_thread", "torch"]
