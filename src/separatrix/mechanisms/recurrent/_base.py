"""What a recurrent mechanism is: a state of fixed size, read and written once per token.

Each has four forms that must agree: `definition`, to be read against the formula; `unrolled`, one
`step` per token, as a model decodes; `chunked`, one `advance` per run of tokens, parallel inside it;
and the call, which is `chunked`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar

from separatrix.mechanisms._base import (
    Attended,
    Causality,
    Counts,
    Keys,
    Mechanism,
    Queries,
    Values,
    check_request,
    widened,
)
from separatrix.parameters import UsageError
from separatrix.tensors import Float, Tensor, torch

State = tuple[Tensor, ...]
Query = Float[Tensor, "batch heads width"]
Key = Float[Tensor, "batch heads width"]
Value = Float[Tensor, "batch heads features"]
Output = Float[Tensor, "batch heads features"]


class RecurrentMechanism(Mechanism):
    """A mechanism that sees the past only through its state."""

    family = "recurrent"
    causality = Causality.ALWAYS
    permutation_equivariant = False
    takes_counts = False
    streams = True
    run: ClassVar[int] = 128
    """Tokens read at once by the call, unless their width decides: where it was fastest."""

    @property
    def normalised(self) -> bool:
        return False

    def init_state(self, q: Queries, v: Values) -> State:
        """The state before the first token: zeros, in float32 for 16-bit tokens."""
        return (memory(q, v),)

    @abstractmethod
    def step(self, state: State, q_t: Query, k_t: Key, v_t: Value) -> tuple[State, Output]:
        """Read one token: the state after it, and its output."""

    @abstractmethod
    def advance(self, state: State, q: Queries, k: Keys, v: Values) -> tuple[State, Attended]:
        """Read a run of tokens at once: the state after them, and their outputs."""

    def unrolled(self, q: Queries, k: Keys, v: Values) -> Attended:
        """One step per token."""
        return self._unrolled(q, k, v)

    def chunked(self, q: Queries, k: Keys, v: Values, chunk: int | None = None) -> Attended:
        """Parallel within runs of `chunk` tokens (or `tokens_per_run`), the state carried across."""
        return self._chunked(chunk, q, k, v)

    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False
    ) -> Attended:
        """The chunked form: time linear in the tokens, and no matrix of tokens by tokens."""
        check_request(self, counts, causal)
        return self.chunked(q, k, v)

    def tokens_per_run(self, k: Keys) -> int:
        """Tokens read at once by the call."""
        return self.run

    def state_bytes(self, state: State) -> int:
        """The memory that `state` takes, measured."""
        return bytes_of(state)

    def _unrolled(self, q: Tensor, k: Tensor, v: Tensor, *more: Tensor) -> Tensor:
        check_lengths(self, q, k)
        dtype, (q, k, v) = v.dtype, widened(q, k, v)
        state, out = self.init_state(q, v), []
        for t in range(k.shape[-2]):
            state, out_t = self.step(state, *(x[..., t, :] for x in (q, k, v, *more)))
            out.append(out_t)
        return torch.stack(out, dim=-2).to(dtype) if out else v.to(dtype)

    def _chunked(self, chunk: int | None, q: Tensor, k: Tensor, v: Tensor, *more: Tensor) -> Tensor:
        check_lengths(self, q, k)
        chunk = self.tokens_per_run(k) if chunk is None else chunk
        if chunk < 1:
            raise UsageError(f"chunk={chunk} is no number of tokens; chunk must be 1 or more")
        dtype, (q, k, v) = v.dtype, widened(q, k, v)
        state, out = self.init_state(q, v), []
        for start in range(0, k.shape[-2], chunk):
            tokens = (x[..., start : start + chunk, :] for x in (q, k, v, *more))
            state, attended = self.advance(state, *tokens)
            out.append(attended)
        return torch.cat(out, dim=-2).to(dtype) if out else v.to(dtype)


def bytes_of(state: Iterable[Tensor]) -> int:
    """The bytes of all tensors of a state.

    >>> bytes_of((torch.zeros(3), torch.zeros(2, dtype=torch.float64)))
    28
    """
    return sum(part.numel() * part.element_size() for part in state)


def check_lengths(mechanism: Mechanism, q: Tensor, k: Tensor) -> None:
    """Refuse queries that do not come one with each key."""
    queries, keys = q.shape[-2], k.shape[-2]
    if queries != keys:
        raise UsageError(f"{mechanism.name} reads a query with each key; there are {queries} and {keys}")


def memory(q: Queries, v: Values, more: int = 0) -> Float[Tensor, "batch heads width columns"]:
    """Zeros that map a key to a value, and to `more` numbers besides."""
    return widened(v)[0].new_zeros(*q.shape[:-2], q.shape[-1], v.shape[-1] + more)


def read(state: Float[Tensor, "batch heads width features"], q_t: Query) -> Output:
    """`q S` for one token."""
    return (q_t[..., None, :] @ state)[..., 0, :]


def outer(k_t: Key, v_t: Value) -> Float[Tensor, "batch heads width features"]:
    """`k vᵀ` for one token."""
    return k_t[..., :, None] * v_t[..., None, :]
