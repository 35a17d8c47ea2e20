"""torch, loaded when the first tensor is made: a closed form is answered without it.

Rooms import `torch`, its `functional` and the types in their signatures from here. Shapes such as
`Float[Tensor, "batch heads tokens width"]` are jaxtyping's wherever that is loaded first, as the tests do
to have every call checked; elsewhere they are there to be read.
"""

from __future__ import annotations

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


__all__ = ["Bool", "Float", "Int", "Int64", "Tensor", "functional", "one_thread", "torch"]
