"""The memory of tensors during a computation, counted as torch allocates and frees them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter


class PeakBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of tensors alive at once that were allocated while it was active.

    Memory inside a fused kernel is not seen; every tensor is.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.current: int = 0
        self.peak: int = 0
        self._storages: set[int] = set()

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation and count the storages it allocates."""
        tensors = (leaf for leaf in tree_iter((args, kwargs)) if isinstance(leaf, Tensor))
        inputs = {tensor.untyped_storage()._cdata for tensor in tensors}
        output = function(*args, **(kwargs or {}))
        for leaf in tree_iter(output):
            if isinstance(leaf, Tensor):
                self._count(leaf, inputs)
        return output

    def _count(self, tensor: Tensor, inputs: set[int]) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in inputs or key in self._storages:
            return
        self._storages.add(key)
        self.current += size
        self.peak = max(self.peak, self.current)
        # torch may reuse an address: it must be forgotten at the moment the storage is freed.
        weakref.finalize(storage, self._forget, key, size)

    def _forget(self, key: int, size: int) -> None:
        self._storages.discard(key)
        self.current -= size


def peak_bytes(run: Callable[[], object]) -> int:
    """Return the peak of the bytes of tensors that `run` allocates."""
    counter = PeakBytes()
    with counter:
        run()
    return counter.peak
