"""torch, loaded when the first tensor is made: a closed form is answered without it.

Rooms import `torch`, its `functional` and the types in their signatures from here. Shapes such as
`Float[Tensor, "batch heads tokens width"]` are jaxtyping's wherever that is loaded first, as the tests do
to have every call checked; elsewhere they are there to be read.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING or "jaxtyping" in sys.modules:
    import torch
    from jaxtyping import Bool, Float, Int, Int64
    from torch import Tensor
    from torch.nn import functional
else:

    class _Late(ModuleType):
        """A module that is imported when something of it is first asked for."""

        def __getattr__(self, name: str) -> Any:
            found = getattr(import_module(self.__name__), name)
            setattr(self, name, found)
            return found

    torch, functional = _Late("torch"), _Late("torch.nn.functional")
    Bool = Float = Int = Int64 = Annotated
    Tensor = Any


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread: on many small tensors threads would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -3, -4
"""glibc's names for how much free memory is too much to keep, and for how large blocks, and how many of them,
are taken from the system one by one."""
AFTERWARDS = {M_TRIM_THRESHOLD: 1 << 26, M_MMAP_THRESHOLD: 1 << 25, M_MMAP_MAX: 1 << 16}
"""What glibc itself comes to in a program that has used such blocks."""


@contextmanager
def memory_kept() -> Iterator[None]:
    """Let freed memory stay with the program until the end: for many large tensors one after the other.

    Blocks of megabytes are given back to the system as soon as they are free, and each new one is filled with
    zeros again, page by page: half the time of attention that holds its scores. Elsewhere than with glibc
    nothing is done.
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
