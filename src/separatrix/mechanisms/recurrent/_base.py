"""What a recurrent mechanism is: a state of fixed size, read and written once per token.

Each has four forms that must agree: `definition`, to be read against the formula; `unrolled`, one
`step` per token, as a model decodes; `chunked`, one `advance` per run of tokens, parallel inside it;
and the call, which is `chunked`. A prompt is read by `chunked`, which gives the state after it, and
what follows by `step`, or by `chunked` from that state. Backward reads each run again, from the state
before it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from math import isqrt
from typing import Any, ClassVar

from separatrix.core.parameters import UsageError
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms._base import (
    Attended,
    Causality,
    Counts,
    Keys,
    Mechanism,
    Present,
    Queries,
    Values,
    check_request,
    filled,
    widened,
)
from separatrix.mechanisms._places import check_places, placed
from separatrix.mechanisms._request import alike, cleared, full_precision
from separatrix.mechanisms._running import CACHED
from separatrix.mechanisms.decoding import Answered, Past, bytes_of, count_read

State = tuple[Tensor, ...]
Query = Float[Tensor, "batch heads width"]
Key = Float[Tensor, "batch heads width"]
Value = Float[Tensor, "batch heads features"]
Output = Float[Tensor, "batch heads features"]

FEWEST = 32
"""Tokens worth reading at once, however many heads there are."""
MEASURED = 16
"""Tokens after which a state is measured first; once twice as many change nothing, it has its full size."""


class RecurrentMechanism(Mechanism):
    """A mechanism that sees the past only through its state."""

    family = "recurrent"
    causality = Causality.ALWAYS
    permutation_equivariant = False
    takes_counts = False
    takes_present: ClassVar[bool] = True
    minds_absence: ClassVar[bool] = False
    """Whether `step` and `advance` take `present`; to others an absent token is one of zeros."""
    streams = True
    run: ClassVar[int] = 128
    """Tokens read at once by the call, at most: where it was fastest for a single head."""

    keeps_inputs_only: ClassVar[bool] = False
    """Whether autograd keeps little more than the inputs of `advance`, so that no run is read again."""

    @property
    def normalised(self) -> bool:
        return False

    def init_state(self, q: Queries, v: Values) -> State:
        """The state before the first token: zeros, in float32 for 16-bit tokens."""
        return (memory(q, v),)

    @abstractmethod
    def step(self, state: State, q_t: Query, k_t: Key, v_t: Value, **extras_t: Any) -> tuple[State, Output]:
        """Read one token: the state after it, and its output."""

    @abstractmethod
    def advance(self, state: State, q: Queries, k: Keys, v: Values, **extras: Any) -> tuple[State, Attended]:
        """Read a run of tokens at once: the state after them, and their outputs."""

    @property
    def fixed_state(self) -> bool:
        return True

    def example_state(self, tokens: int, k: Keys, v: Values) -> State:
        """The state after so many tokens, or after as many as it takes to grow no more."""
        length, state = 0, self.init_state(k, v)
        while length < tokens:
            longer = min(max(MEASURED, 2 * length), tokens)
            some_k, some_v = (x.expand(*x.shape[:-2], longer, -1) for x in (k, v))
            after = self.chunked(some_k, some_k, some_v)[1]
            if length and bytes_of(after) == bytes_of(state):
                break
            length, state = longer, after
        return state

    def decode(
        self,
        past: Past | None,
        q: Queries,
        k: Keys,
        v: Values,
        present: Present | None = None,
        *,
        skipped: int = 0,
        **extras: Any,
    ) -> tuple[Answered, Past]:
        """One step for a single token, else runs of tokens, from the state."""
        before = None if past is None else tuple(past.state)
        if before is not None and present is None and q.shape[-2] == 1:
            some = {name: x[..., 0, :] if name in self.token_extras else x for name, x in extras.items()}
            state, one = self.step(before, *(x[..., 0, :] for x in (q, k, v)), **some)
            out = one[..., None, :].to(v.dtype)
        else:
            out, state = self.chunked(q, k, v, state=before, present=present, **extras)
        return out[..., skipped:, :], Past(count_read(past, k, present), state=tuple(state))

    def unrolled(
        self, q: Queries, k: Keys, v: Values, *, present: Present | None = None, **extras: Any
    ) -> Attended:
        """One step per token."""
        return self._read(q, k, v, None, present, extras, steps=True)[0]

    def chunked(
        self,
        q: Queries,
        k: Keys,
        v: Values,
        chunk: int | None = None,
        *,
        state: State | None = None,
        present: Present | None = None,
        **extras: Any,
    ) -> tuple[Attended, State]:
        """Parallel within runs of `chunk` tokens (or `tokens_per_run`), from `state` or from the beginning.

        Runs are cut to `longest_run`. Gives the outputs, and the state after the last token.
        """
        return self._read(q, k, v, chunk, present, extras, state)

    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        """The chunked form: time linear in the tokens, and no matrix of tokens by tokens."""
        check_request(self, counts, causal)
        first, present = more.pop("first", 0), more.pop("present", None)
        return placed(
            self,
            lambda q, k, v, counts, options, given: self.chunked(q, k, v, **options, **given)[0],
            *(q, k, v, counts, causal, first, present, more),
        )

    def tokens_per_run(self, k: Keys) -> int:
        """Tokens read at once by the call, from 32 on, so that the scores of all heads lie near a core."""
        side = isqrt(CACHED // (4 * max(1, k.shape[0] * k.shape[1])))
        return min(self.run, max(FEWEST, 1 << side.bit_length() - 1))

    def longest_run(self, extras: Mapping[str, Tensor]) -> int | None:
        """Of how many tokens a run may be before it magnifies rounding; None if of any number."""
        return None

    def state_bytes(self, state: State) -> int:
        """The memory that `state` takes, measured."""
        return bytes_of(state)

    def _read(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        chunk: int | None,
        present: Tensor | None,
        given: dict[str, Any],
        state: State | None = None,
        steps: bool = False,
    ) -> tuple[Tensor, State]:
        """Read tokens run by run, or one by one; who is absent changes no state."""
        check_lengths(self, q, k)
        check_places(self, q, k, 0, present)
        if present is not None and not self.takes_present:
            raise UsageError(
                f"{self.name} has no state that skips absent tokens; call it, and it gets the others"
            )
        chunk = self.tokens_per_run(k) if chunk is None else chunk
        if chunk < 1:
            raise UsageError(f"chunk={chunk} is no number of tokens; chunk must be 1 or more")
        with full_precision(v):
            dtype, (q, k, v) = v.dtype, alike(q, k, v)
            if present is not None:
                k, v = (x.masked_fill(~present[:, None, :, None], 0) for x in (k, v))
            extras = cleared(self, filled(self, q, k, v, given, defaults=present is not None), present)
            longest = self.longest_run(extras)
            chunk = chunk if longest is None else min(chunk, longest)
            if present is not None and self.minds_absence:
                extras["present"] = present[:, None, :, None]
            steady = [extra.name for extra in self.extras if not extra.per_token and extra.name in extras]
            fixed = {name: extras.pop(name) for name in steady}
            state = self.init_state(q, v) if state is None else state
            read_on: Callable[..., tuple[State, Tensor]] = self.step if steps else self.advance
            out: list[Tensor] = []
            streams = (q, k, v, *extras.values())
            if not k.shape[-2]:
                return v.to(dtype), state
            cut = (x.unbind(-2) if steps else torch.split(x, chunk, -2) for x in streams)
            for some in zip(*cut, strict=True):
                part = partial(_read_on, read_on, len(state), (*extras, *fixed))
                inputs = (*state, *some, *fixed.values())
                # Backward begins with the last run, which may as well be kept.
                kept = steps or self.keeps_inputs_only or (len(out) + 1) * chunk >= k.shape[-2]
                attended, *after = part(*inputs) if kept else self.recomputed(part, *inputs)
                state = tuple(after)
                out.append(attended)
            if len(out) == 1 and not steps:
                return out[0].to(dtype), state
            return (torch.stack(out, dim=-2) if steps else torch.cat(out, dim=-2)).to(dtype), state


def _read_on(
    read: Callable[..., tuple[State, Tensor]], size: int, names: tuple[str, ...], *given: Any
) -> tuple[Tensor, ...]:
    """The outputs of some tokens, and the state after them, from the state before them, tokens and extras."""
    tokens, extras = given[size : size + 3], dict(zip(names, given[size + 3 :], strict=True))
    after, attended = read(given[:size], *tokens, **extras)
    return attended, *after


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
