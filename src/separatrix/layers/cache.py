"""What a layer carries from the tokens it has read to those that follow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from separatrix.core.tensors import Float, Tensor
from separatrix.mechanisms.decoding import Past


@dataclass(frozen=True)
class Cache(Past):
    """What its mechanism keeps of the tokens before, and the inputs that its convolution still needs."""

    tail: Float[Tensor, "batch tokens channels"] | None = None
    """The last tokens before the convolution."""

    def tensors(self) -> Iterator[Tensor]:
        yield from super().tensors()
        if self.tail is not None:
            yield self.tail

    @classmethod
    def after(cls, past: Past, tail: Tensor | None) -> Cache:
        """What a mechanism keeps, with the tail of the convolution."""
        return cls(past.lengths, past.state, past.keys, past.values, past.present, past.extras, tail)
