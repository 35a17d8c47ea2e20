"""The memory of tokens that a mechanism has read, for decoding, and its size.

A mechanism decodes from a `Past`: either a state of fixed size, or the keys, values and per-token extras that
a later query can still read. `Mechanism.decode` reads further tokens and returns the next `Past`;
`Mechanism.decoding_memory` predicts its bytes for any number of tokens without reading them. Layers,
`choose`, `bench`, cards and the comparison at equal state all take their numbers from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from separatrix.core.tensors import Bool, Float, Int64, Tensor, functional, torch
from separatrix.mechanisms._types import CallOptions

if TYPE_CHECKING:
    from separatrix.mechanisms._base import Mechanism

Answers = Float[Tensor, "batch heads answers features"]
"""The outputs of the new tokens that are not skipped."""
Streams = dict[str, Tensor]
"""The cached tensors with one entry per token: `keys`, `values` and per-token extras by name."""

STATE = "state of fixed size"
WINDOW = "cache of the keys and values that later tokens can still read"
CACHE = "cache of all keys and values"
COUNTER_BYTES = 8
"""A layer counts the tokens it has read, in one int64 for each sequence."""
FAR = 1 << 60
"""More tokens than any window: a mechanism that still reads all of them keeps every one."""


@dataclass(frozen=True)
class DecodingMemory:
    """The memory that decoding the next token needs of all tokens before."""

    bytes: int
    """For one sequence: the state, or the cached keys, values and extras."""
    kind: str
    """STATE, WINDOW or CACHE."""

    @property
    def layer_bytes(self) -> int:
        """The bytes including the token counter of a layer."""
        return self.bytes + COUNTER_BYTES


class LazyState(Sequence[Tensor]):
    """A state that is computed on first access, which never happens in training.

    Gradients pass through it if they were enabled when it was created.
    """

    def __init__(self, compute: Callable[[], tuple[Tensor, ...]]) -> None:
        self._compute: Callable[[], tuple[Tensor, ...]] | None = compute
        self._grad = torch.is_grad_enabled()

    @cached_property
    def _state(self) -> tuple[Tensor, ...]:
        assert self._compute is not None
        with torch.set_grad_enabled(self._grad):
            state = self._compute()
        self._compute = None  # It holds the tokens that the state was computed from.
        return state

    def __getitem__(self, index: Any) -> Any:
        return self._state[index]

    def __len__(self) -> int:
        return len(self._state)


@dataclass(frozen=True)
class Past:
    """The memory of the tokens before: a state, or the keys and values themselves."""

    lengths: Int64[Tensor, " batch"]
    """The number of tokens that each batch element has read, without absent ones."""
    state: Sequence[Tensor] = ()
    """The state of a recurrent mechanism, or the sums of a feature map."""
    keys: Float[Tensor, "batch heads tokens width"] | None = None
    """The keys that later tokens can still read, in their order; likewise the values."""
    values: Float[Tensor, "batch heads tokens features"] | None = None
    present: Bool[Tensor, "batch slots"] | None = None
    """The cached tokens that are present; None if all are."""
    extras: Mapping[str, Tensor] = field(default_factory=dict)
    """Extras of the cached tokens. There are fewer of them if they are read less far back than keys."""

    def tensors(self) -> Iterator[Tensor]:
        """Iterate over all tensors."""
        tensors = (self.lengths, *self.state, self.keys, self.values, self.present, *self.extras.values())
        yield from (tensor for tensor in tensors if tensor is not None)

    @property
    def state_bytes(self) -> int:
        """The measured memory in bytes."""
        return bytes_of(self.tensors())

    @property
    def streams(self) -> Streams:
        """The cached tensors by name; empty if there is a state instead."""
        if self.keys is None or self.values is None:
            return {}
        return {"keys": self.keys, "values": self.values, **self.extras}


@dataclass(frozen=True)
class NewTokens:
    """Tokens to read after those of a `Past`; the first `skipped` of them get no output."""

    q: Tensor
    k: Tensor
    v: Tensor
    present: Tensor | None = None
    skipped: int = 0
    extras: dict[str, Any] = field(default_factory=dict)

    def lengths(self, past: Past | None) -> Int64[Tensor, " batch"]:
        """Count the tokens that each batch element has read, these included."""
        batch, tokens = self.k.shape[0], self.k.shape[-2]
        count = self.k.new_full((batch,), tokens, dtype=torch.long) if self.present is None else self.present.sum(-1)
        return count if past is None else past.lengths + count

    def all_extras(self, mechanism: Mechanism) -> dict[str, Any]:
        """Return the given extras, and the defaults of the others for these tokens."""
        extras = {name: value for name, value in self.extras.items() if value is not None}
        missing = (extra for extra in mechanism.extras if extra.name not in extras)
        return extras | {extra.name: extra.default(mechanism, self.q, self.k, self.v) for extra in missing}


def bytes_of(tensors: Iterable[Tensor]) -> int:
    """Add up the bytes of tensors.

    >>> bytes_of((torch.zeros(3), torch.zeros(2, dtype=torch.float64)))
    28
    """
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def predict_memory(
    mechanism: Mechanism, tokens: int, heads: int, width: int, features: int, dtype: torch.dtype
) -> DecodingMemory:
    """Implement `Mechanism.decoding_memory`."""
    k, v = (torch.zeros(1, heads, 1, size, dtype=dtype) for size in (width, features))
    if mechanism.fixed_state:
        with torch.no_grad():
            return DecodingMemory(bytes_of(mechanism.example_state(tokens, k, v)), STATE)
    sizes, wide = mechanism.sizes(k, k, v), max(4, dtype.itemsize)
    streams = {"keys": width * dtype.itemsize, "values": features * dtype.itemsize}
    streams |= {extra.name: wide * extra.shape(sizes)[-1] for extra in mechanism.extras if extra.per_token}
    parts = {name: sum(map(len, mechanism.readable(tokens, name))) for name in streams}
    size = sum(heads * size * parts[name] for name, size in streams.items())
    return DecodingMemory(size, WINDOW if sum(map(len, mechanism.readable(FAR))) < FAR else CACHE)


def positions_of(past: Past | None, k: Tensor, present: Tensor | None) -> Int64[Tensor, "batch tokens"]:
    """Return the position of each new token among those present, counted from the first token ever read."""
    counts = k.new_ones(k.shape[0], k.shape[-2], dtype=torch.long) if present is None else present.long()
    rank = counts.cumsum(-1) - 1
    return rank if past is None else rank + past.lengths[:, None]


def decode_from_cache(mechanism: Mechanism, past: Past | None, new: NewTokens) -> tuple[Answers, Past]:
    """Attend to the cached tokens and the new ones, and keep those that a later query can still read.

    Cached tokens are numbered as if the dropped ones had never existed. Visibility depends on distances, or
    on whole blocks that are dropped together, so queries see the same keys either way.
    """
    q, skipped, extras = new.q, new.skipped, new.all_extras(mechanism)
    tensors = {"keys": new.k, "values": new.v, **{name: extras[name] for name in mechanism.token_extras}}
    before: Streams = {} if past is None else past.streams
    cached_count = max((tensor.shape[-2] for tensor in before.values()), default=0)
    streams = {name: _append(before.get(name), tensor, cached_count) for name, tensor in tensors.items()}
    present = _append_present(None if past is None else past.present, cached_count, new.present, new.k)
    lengths = new.lengths(past)
    extras = {**extras, **{name: streams[name] for name in mechanism.token_extras}}
    first = cached_count
    # Outputs that are not asked for are not computed, if the mechanism can begin at a later query.
    if skipped and mechanism.answers_few:
        q, first, skipped = q[..., skipped:, :], cached_count + skipped, 0
    options = CallOptions(causal=True, first=first, present=present)
    out = mechanism.attend_to_cache(q, streams["keys"], streams["values"], options, lengths, extras)
    streams, present = _drop_unreadable(mechanism, streams, present)
    keys, values = streams.pop("keys"), streams.pop("values")
    return out[..., skipped:, :], Past(lengths, keys=keys, values=values, present=present, extras=streams)


def _append(past: Tensor | None, new: Tensor, cached_count: int) -> Tensor:
    """Append new tokens to the cached ones; a stream that is read less far back starts with zeros."""
    if past is None:
        return new
    past = functional.pad(past.to(new), (0, 0, cached_count - past.shape[-2], 0))
    return torch.cat([past, new], dim=-2)


def _append_present(past: Tensor | None, cached_count: int, present: Tensor | None, k: Tensor) -> Tensor | None:
    """Return which cached and new tokens are present, or None if all are."""
    if past is None and present is None:
        return None
    batch, tokens = k.shape[0], k.shape[-2]
    before = k.new_ones(batch, cached_count, dtype=torch.bool) if past is None else past
    now = k.new_ones(batch, tokens, dtype=torch.bool) if present is None else present
    return torch.cat([before, now], dim=-1)


def _drop_unreadable(mechanism: Mechanism, streams: Streams, present: Tensor | None) -> tuple[Streams, Tensor | None]:
    """Keep the tokens of each stream that a later query can still read, and their presence."""
    tokens = streams["keys"].shape[-2]
    if present is None:
        return {name: _select(x, mechanism.readable(tokens, name)) for name, x in streams.items()}, None
    # Batch elements have read different numbers of tokens: each keeps its own, aligned at the last token.
    positions = [row.nonzero()[:, 0] for row in present]
    indices: dict[str, list[Tensor]] = {
        name: [
            torch.cat([row[part.start : part.stop] for part in mechanism.readable(len(row), name)]) for row in positions
        ]
        for name in streams
    }
    longest = {name: max(len(index) for index in rows) for name, rows in indices.items()}
    # Presence is stored once, for the stream that is read furthest back.
    widest = max(longest, key=lambda name: longest[name])
    # Each stream has a batch element that still reads all tokens, so no column can be dropped.
    if min(longest.values()) == tokens:
        return streams, present
    readable = {}
    for name, tensor in streams.items():
        size = longest[name]
        index = torch.stack([functional.pad(row, (size - len(row), 0)) for row in indices[name]])
        readable[name] = tensor.gather(-2, index[:, None, :, None].expand(-1, tensor.shape[1], -1, tensor.shape[-1]))
    counts = torch.tensor([len(row) for row in indices[widest]], device=present.device)
    present = torch.arange(longest[widest], device=present.device) >= longest[widest] - counts[:, None]
    return readable, None if bool(present.all()) else present


def _select(x: Tensor, parts: tuple[range, ...]) -> Tensor:
    """Return the tokens of these ranges, in new memory if others are dropped."""
    if sum(map(len, parts)) == x.shape[-2]:
        return x
    # A view would keep the dropped tokens in memory.
    return torch.cat([x[..., part.start : part.stop, :] for part in parts], dim=-2)
