"""What a layer carries from the tokens it has read to those that follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from separatrix.mechanisms.recurrent._base import bytes_of
from separatrix.tensors import Bool, Float, Int64, Tensor, torch

Present = Bool[Tensor, "batch tokens"]


@dataclass(frozen=True)
class Cache:
    """All that a layer knows of the tokens before: a state, or the keys and values themselves."""

    places: Int64[Tensor, " batch"]
    """How many tokens each element of the batch has read, absent ones not counted."""
    state: tuple[Tensor, ...] = ()
    """The state of a recurrent mechanism."""
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
