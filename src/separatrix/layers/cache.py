"""The memory of a layer: the information about read tokens that later tokens need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from separatrix.core.tensors import Float, Tensor
from separatrix.mechanisms.decoding import Past


@dataclass(frozen=True)
class Cache(Past):
    """The memory of the mechanism, and the inputs that the convolution still needs."""

    tail: Float[Tensor, "batch tokens channels"] | None = None
    """The last tokens before the convolution."""

    def tensors(self) -> Iterator[Tensor]:
        yield from super().tensors()
        if self.tail is not None:
            yield self.tail

    @classmethod
    def after(cls, past: Past, tail: Tensor | None) -> Cache:
        """Combine the memory of a mechanism with the tail of the convolution."""
        return cls(past.lengths, past.state, past.keys, past.values, past.present, past.extras, tail)
