"""The tensors a computation holds, counted as torch makes and frees them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter


class PeakBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The most bytes of tensors alive at once that were made while it was on.

    What a fused kernel uses inside is not seen; everything that gets a tensor is.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now: int = 0
        self.peak: int = 0
        self._known: set[int] = set()

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation and count the storages it made."""
        inputs = (each for each in tree_iter((args, kwargs)) if isinstance(each, Tensor))
        given = {each.untyped_storage()._cdata for each in inputs}
        made = function(*args, **(kwargs or {}))
        for each in tree_iter(made):
            if isinstance(each, Tensor):
                self._count(each, given)
        return made

    def _count(self, tensor: Tensor, given: set[int]) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in given or key in self._known:
            return
        self._known.add(key)
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._forget, key, size)

    def _forget(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.now -= size


def peak_bytes(run: Callable[[], object]) -> int:
    """The peak of tensor bytes made by `run`."""
    counter = PeakBytes()
    with counter:
        run()
    return counter.peak
