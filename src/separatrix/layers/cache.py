"""What a layer carries from the tokens it has read to those that follow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import overload

from separatrix.mechanisms.recurrent._base import bytes_of
from separatrix.tensors import Bool, Float, Int64, Tensor, torch

Present = Bool[Tensor, "batch tokens"]


class Pending(Sequence[Tensor]):
    """A state that is added up when it is first looked at: training never does.

    Gradients pass through it if they would have when it was made.
    """

    def __init__(self, make: Callable[[], tuple[Tensor, ...]]) -> None:
        self._make: Callable[[], tuple[Tensor, ...]] | None = make
        self._grad = torch.is_grad_enabled()

    @cached_property
    def _made(self) -> tuple[Tensor, ...]:
        assert self._make is not None
        with torch.set_grad_enabled(self._grad):
            made = self._make()
        self._make = None  # and with it the tokens it was made of
        return made

    @overload
    def __getitem__(self, index: int) -> Tensor: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Tensor, ...]: ...
    def __getitem__(self, index: int | slice) -> Tensor | tuple[Tensor, ...]:
        return self._made[index]

    def __len__(self) -> int:
        return len(self._made)


@dataclass(frozen=True)
class Cache:
    """All that a layer knows of the tokens before: a state, or the keys and values themselves."""

    places: Int64[Tensor, " batch"]
    """How many tokens each element of the batch has read, absent ones not counted."""
    state: Sequence[Tensor] = ()
    """The state of a recurrent mechanism, or the sums of a feature map."""
    keys: Float[Tensor, "batch heads tokens width"] | None = None
    values: Float[Tensor, "batch heads tokens width"] | None = None
    present: Present | None = None
    """Which of the keys are there; None where all are."""
    extras: Mapping[str, Tensor] = field(default_factory=dict)
    """Extras that came with each of the keys."""
    tail: Float[Tensor, "batch tokens channels"] | None = None
    """The last tokens before the convolution."""

    def tensors(self) -> Iterator[Tensor]:
        """All tensors that are kept."""
        kept = (self.places, *self.state, self.keys, self.values, self.present, *self.extras.values())
        yield from (each for each in (*kept, self.tail) if each is not None)

    @property
    def state_bytes(self) -> int:
        """The memory that it takes, measured."""
        return bytes_of(self.tensors())


def appended(past: Tensor | None, new: Tensor) -> Tensor:
    """Tokens after those of the cache, in the last dimension but one."""
    return new if past is None else torch.cat([past.to(new), new], dim=-2)


def all_present(past: Present | None, read: int, present: Present | None, like: Tensor) -> Present | None:
    """Which tokens are there, the `read` ones before and the new ones of `like`; None where all are."""
    if past is None and present is None:
        return None
    batch, tokens = like.shape[:2]
    before = like.new_ones(batch, read, dtype=torch.bool) if past is None else past
    now = like.new_ones(batch, tokens, dtype=torch.bool) if present is None else present
    return torch.cat([before, now], dim=-1)
