"""What a mechanism keeps of the tokens it has read, and how much memory that takes.

A mechanism decodes from a `Past`: either a state of fixed size, or the keys, values and per-token extras that
a later query can still read. `Mechanism.decode` reads further tokens and returns the next `Past`;
`Mechanism.kept_after` predicts its bytes for any number of tokens without reading them. Layers, `choose`,
`bench`, cards and the comparison at equal state all take their numbers from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from separatrix.core.tensors import Bool, Float, Int64, Tensor, functional, torch

if TYPE_CHECKING:
    from separatrix.mechanisms._base import Mechanism

Present = Bool[Tensor, "batch tokens"]
Answered = Float[Tensor, "batch heads answered features"]
"""What those of the new tokens get that are not skipped."""
Streams = dict[str, Tensor]
"""What is cached for each token, by name: `keys`, `values` and the names of per-token extras."""

STATE = "state of fixed size"
WINDOW = "cache of the keys and values that later tokens can still read"
CACHE = "cache of all keys and values"
COUNTER_BYTES = 8
"""A layer counts the tokens it has read, in one int64 for each sequence."""
FAR = 1 << 60
"""More tokens than any window: a mechanism that still reads all of so many keeps every one."""


@dataclass(frozen=True)
class Kept:
    """What must be kept of the tokens read so far to decode the next one."""

    bytes: int
    """For one sequence: the state, or the cached keys, values and extras."""
    kind: str
    """STATE, WINDOW or CACHE."""

    @property
    def layer_bytes(self) -> int:
        """The same with the counter of tokens that a layer keeps beside it."""
        return self.bytes + COUNTER_BYTES


class Pending(Sequence[Tensor]):
    """A state that is computed when it is first looked at: training never does.

    Gradients pass through it if they would have when it was created.
    """

    def __init__(self, compute: Callable[[], tuple[Tensor, ...]]) -> None:
        self._compute: Callable[[], tuple[Tensor, ...]] | None = compute
        self._grad = torch.is_grad_enabled()

    @cached_property
    def _computed(self) -> tuple[Tensor, ...]:
        assert self._compute is not None
        with torch.set_grad_enabled(self._grad):
            state = self._compute()
        self._compute = None  # and with it the tokens it was computed from
        return state

    @overload
    def __getitem__(self, index: int) -> Tensor: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Tensor, ...]: ...
    def __getitem__(self, index: int | slice) -> Tensor | tuple[Tensor, ...]:
        return self._computed[index]

    def __len__(self) -> int:
        return len(self._computed)


@dataclass(frozen=True)
class Past:
    """All that a mechanism knows of the tokens before: a state, or the keys and values themselves."""

    places: Int64[Tensor, " batch"]
    """How many tokens each element of the batch has read, absent ones not counted."""
    state: Sequence[Tensor] = ()
    """The state of a recurrent mechanism, or the sums of a feature map."""
    keys: Float[Tensor, "batch heads tokens width"] | None = None
    """The keys that later tokens can still read, in their order; so are the values."""
    values: Float[Tensor, "batch heads tokens features"] | None = None
    present: Bool[Tensor, "batch slots"] | None = None
    """Which of the tokens kept are there; None where all are."""
    extras: Mapping[str, Tensor] = field(default_factory=dict)
    """Extras of the tokens kept. Where they are read less far back than keys, there are fewer of them."""

    def tensors(self) -> Iterator[Tensor]:
        """All tensors that are kept."""
        kept = (self.places, *self.state, self.keys, self.values, self.present, *self.extras.values())
        yield from (tensor for tensor in kept if tensor is not None)

    @property
    def state_bytes(self) -> int:
        """The memory that it takes, measured."""
        return bytes_of(self.tensors())

    @property
    def streams(self) -> Streams:
        """The cached tensors by name; empty where a state is kept instead."""
        if self.keys is None or self.values is None:
            return {}
        return {"keys": self.keys, "values": self.values, **self.extras}


def bytes_of(tensors: Iterable[Tensor]) -> int:
    """The bytes of all these tensors.

    >>> bytes_of((torch.zeros(3), torch.zeros(2, dtype=torch.float64)))
    28
    """
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def count_read(past: Past | None, k: Tensor, present: Present | None) -> Int64[Tensor, " batch"]:
    """How many tokens each element of the batch has read, these keys included."""
    batch, tokens = k.shape[0], k.shape[-2]
    now = k.new_full((batch,), tokens, dtype=torch.long) if present is None else present.sum(-1)
    return now if past is None else past.places + now


def positions_of(past: Past | None, k: Tensor, present: Present | None) -> Int64[Tensor, "batch tokens"]:
    """The position of each new token among those present, counted from 0 at the first token ever read."""
    here = k.new_ones(k.shape[0], k.shape[-2], dtype=torch.long) if present is None else present.long()
    rank = here.cumsum(-1) - 1
    return rank if past is None else rank + past.places[:, None]


def fill_missing_extras(
    mechanism: Mechanism, q: Tensor, k: Tensor, v: Tensor, extras: dict[str, Any]
) -> dict[str, Any]:
    """The extras that were given, and the defaults of the others for these tokens."""
    given = {name: value for name, value in extras.items() if value is not None}
    missing = (extra for extra in mechanism.extras if extra.name not in given)
    return given | {extra.name: extra.default(mechanism, q, k, v) for extra in missing}


def decode_from_cache(
    mechanism: Mechanism,
    past: Past | None,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    present: Present | None,
    skipped: int,
    extras: dict[str, Any],
) -> tuple[Tensor, Past]:
    """Attend to the cached tokens and the new ones, and keep those that a later query can still read.

    The cached tokens are numbered as if the dropped ones had never been. What can be read is a matter of
    distances, or of whole blocks that are dropped together, so queries see the same keys either way.
    """
    extras = fill_missing_extras(mechanism, q, k, v, extras)
    new = {"keys": k, "values": v, **{name: extras[name] for name in mechanism.token_extras}}
    before: Streams = {} if past is None else past.streams
    cached = max((tensor.shape[-2] for tensor in before.values()), default=0)
    streams = {name: _append(before.get(name), tensor, cached) for name, tensor in new.items()}
    there = _append_present(None if past is None else past.present, cached, present, k)
    read = count_read(past, k, present)
    extras = {**extras, **{name: streams[name] for name in mechanism.token_extras}}
    first = cached
    if skipped and mechanism.answers_few:
        q, first, skipped = q[..., skipped:, :], cached + skipped, 0
    out = mechanism.attend_kept(q, streams["keys"], streams["values"], first, there, read, extras)
    streams, there = _keep_readable(mechanism, streams, there)
    keys, values = streams.pop("keys"), streams.pop("values")
    return out[..., skipped:, :], Past(read, keys=keys, values=values, present=there, extras=streams)


def _append(past: Tensor | None, new: Tensor, cached: int) -> Tensor:
    """New tokens after the cached ones; a stream that is read less far back has zeros in front."""
    if past is None:
        return new
    past = functional.pad(past.to(new), (0, 0, cached - past.shape[-2], 0))
    return torch.cat([past, new], dim=-2)


def _append_present(past: Tensor | None, cached: int, present: Tensor | None, k: Tensor) -> Tensor | None:
    """Which tokens are there, cached and new; None where all are."""
    if past is None and present is None:
        return None
    batch, tokens = k.shape[0], k.shape[-2]
    before = k.new_ones(batch, cached, dtype=torch.bool) if past is None else past
    now = k.new_ones(batch, tokens, dtype=torch.bool) if present is None else present
    return torch.cat([before, now], dim=-1)


def _keep_readable(
    mechanism: Mechanism, streams: Streams, present: Tensor | None
) -> tuple[Streams, Tensor | None]:
    """The tokens of each stream that a later query can still read, and which of them are there."""
    tokens = streams["keys"].shape[-2]
    if present is None:
        return {
            name: _cut(tensor, mechanism.readable(tokens, name)) for name, tensor in streams.items()
        }, None
    # Elements of the batch have read different numbers of tokens: each keeps its own, last ones aligned.
    places = [row.nonzero()[:, 0] for row in present]
    indices: dict[str, list[Tensor]] = {
        name: [
            torch.cat([place[part.start : part.stop] for part in mechanism.readable(len(place), name)])
            for place in places
        ]
        for name in streams
    }
    longest = {name: max(len(index) for index in rows) for name, rows in indices.items()}
    widest = max(longest, key=lambda name: longest[name])
    if min(longest.values()) == tokens:
        return streams, present
    kept = {}
    for name, tensor in streams.items():
        size = longest[name]
        index = torch.stack([functional.pad(row, (size - len(row), 0)) for row in indices[name]])
        kept[name] = tensor.gather(
            -2, index[:, None, :, None].expand(-1, tensor.shape[1], -1, tensor.shape[-1])
        )
    counts = torch.tensor([len(row) for row in indices[widest]], device=present.device)
    there = torch.arange(longest[widest], device=present.device) >= longest[widest] - counts[:, None]
    return kept, None if bool(there.all()) else there


def _cut(x: Tensor, parts: tuple[range, ...]) -> Tensor:
    """The tokens of these ranges, in memory of their own where others are dropped."""
    if sum(map(len, parts)) == x.shape[-2]:
        return x
    return torch.cat([x[..., part.start : part.stop, :] for part in parts], dim=-2)
