"""Recurrent mechanisms: a state of fixed size, read and written once per token.

Each has four forms that must agree: `definition`, to be read against the formula; `unrolled`, one `step` per
token, as a model decodes; `chunked`, one `advance` per run of tokens, parallel inside it; and the call, which
is `chunked`. A prompt is read by `chunked`, which returns the state after it, and later tokens by `step`, or
by `chunked` from that state. Backward computes each run again, from the state before it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from math import isqrt
from typing import Any, ClassVar

from separatrix.core.parameters import UsageError
from separatrix.core.tensors import Bool, Float, Tensor, torch
from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms._methods import fill_extras, full_precision, to_common_dtype, upcast, zero_absent_extras
from separatrix.mechanisms._positions import Causality, check_positions, check_request, zero_absent
from separatrix.mechanisms._running_sums import MAX_CACHED_NUMBERS
from separatrix.mechanisms._types import Attended, CallOptions, Key, Keys, Output, Queries, Query, Value, Values
from separatrix.mechanisms.decoding import Answers, NewTokens, Past, bytes_of

State = tuple[Tensor, ...]
RunPresence = Bool[Tensor, "batch 1 keys 1"]
"""Which tokens of a run are present."""

MIN_RUN = 32
"""Tokens worth reading at once, however many heads there are."""
FIRST_MEASURED_LENGTH = 16
"""Tokens after which a state is measured first; once twice as many change nothing, it has its full size."""


class RecurrentMechanism(Mechanism):
    """A mechanism that sees the past only through its state."""

    family = "recurrent"
    causality = Causality.ALWAYS
    permutation_equivariant = False
    takes_present: ClassVar[bool] = True
    step_takes_present: ClassVar[bool] = False
    """Whether `step` and `advance` take `present`; for others an absent token is one of zeros."""
    streams = True
    run: ClassVar[int] = 128
    """Tokens read at once by the call, at most: the fastest number for a single head."""
    stores_inputs_only: ClassVar[bool] = False
    """Whether autograd stores little more than the inputs of `advance`, so that no run is computed again."""

    @property
    def is_normalised(self) -> bool:
        return False

    def init_state(self, q: Queries, v: Values) -> State:
        """Return the state before the first token: zeros, in float32 for 16-bit tokens."""
        return (zero_state(q, v),)

    def step(self, state: State, q_t: Query, k_t: Key, v_t: Value, **extras_t: Any) -> tuple[State, Output]:
        """Read one token and return the state after it and its output; by default a run of one token."""
        streams = {*self.token_extras, "present"}
        extras = {name: x[..., None, :] if name in streams and x is not None else x for name, x in extras_t.items()}
        state, out = self.advance(state, *(x[..., None, :] for x in (q_t, k_t, v_t)), **extras)
        return state, out[..., 0, :]

    @abstractmethod
    def advance(self, state: State, q: Queries, k: Keys, v: Values, **extras: Any) -> tuple[State, Attended]:
        """Read a run of tokens at once and return the state after them and their outputs."""

    def check_lengths(self, queries: int, keys: int, options: CallOptions) -> None:
        if queries != keys:
            raise UsageError(f"{self.name} reads a query with each key; there are {queries} and {keys}")

    fixed_state = True

    def example_state(self, tokens: int, k: Keys, v: Values) -> State:
        """Return the state after this number of tokens, or after as many as it takes to stop growing."""
        length, state = 0, self.init_state(k, v)
        while length < tokens:
            longer = min(max(FIRST_MEASURED_LENGTH, 2 * length), tokens)
            many_k, many_v = (x.expand(*x.shape[:-2], longer, -1) for x in (k, v))
            after = self.chunked(many_k, many_k, many_v)[1]
            if length and bytes_of(after) == bytes_of(state):
                break
            length, state = longer, after
        return state

    def decode(self, past: Past | None, new: NewTokens) -> tuple[Answers, Past]:
        """Read a single token by a step, and several by runs, from the state."""
        before = None if past is None else tuple(past.state)
        q, k, v, extras = new.q, new.k, new.v, new.extras
        if before is not None and new.present is None and q.shape[-2] == 1:
            extras_t = {name: x[..., 0, :] if name in self.token_extras else x for name, x in extras.items()}
            state, output = self.step(before, *(x[..., 0, :] for x in (q, k, v)), **extras_t)
            out = output[..., None, :].to(v.dtype)
        else:
            out, state = self.chunked(q, k, v, state=before, present=new.present, **extras)
        return out[..., new.skipped :, :], Past(new.lengths(past), state=tuple(state))

    def unrolled(self, q: Queries, k: Keys, v: Values, **extras: Any) -> Attended:
        """Read one token per step."""
        return self.chunked(q, k, v, by_steps=True, **extras)[0]

    def chunked(
        self,
        q: Queries,
        k: Keys,
        v: Values,
        chunk: int | None = None,
        *,
        state: State | None = None,
        present: Tensor | None = None,  # of any shape: a wrong one is described, not refused by a type checker
        by_steps: bool = False,
        **extras: Any,
    ) -> tuple[Attended, State]:
        """Read runs of `chunk` tokens (or `tokens_per_run`) in parallel, from `state` or from the beginning.

        Runs are cut to `longest_run`, or to single tokens `by_steps`; absent tokens change no state. Returns
        the outputs, and the state after the last token.
        """
        self.check_lengths(q.shape[-2], k.shape[-2], CallOptions(causal=True))
        check_positions(self, k, 0, present)
        if present is not None and not self.takes_present:
            raise UsageError(f"{self.name} has no state that skips absent tokens; call it, and it gets the others")
        chunk = self.tokens_per_run(k) if chunk is None else chunk
        if chunk < 1:
            raise UsageError(f"chunk={chunk} is no number of tokens; chunk must be 1 or more")
        with full_precision(v):
            dtype, (q, k, v) = v.dtype, to_common_dtype(q, k, v)
            k, v = zero_absent(present, k, v)
            # Defaults are needed here only to be set to 0 for absent tokens; else each run fills in its own.
            extras = fill_extras(self, q, k, v, extras, defaults=present is not None)
            extras = zero_absent_extras(self, extras, present)
            chunk = min(chunk, self.longest_run(extras) or chunk)
            if present is not None and self.step_takes_present:
                extras["present"] = present[:, None, :, None]
            # Only extras per token are split into runs; each run gets the others whole.
            constants = {
                extra.name: extras.pop(extra.name)
                for extra in self.extras
                if not extra.per_token and extra.name in extras
            }
            state = self.init_state(q, v) if state is None else state
            if not k.shape[-2]:
                return v.to(dtype), state
            read: Callable[..., tuple[State, Tensor]] = self.step if by_steps else self.advance
            out: list[Tensor] = []
            streams = (q, k, v, *extras.values())
            runs = (x.unbind(-2) if by_steps else torch.split(x, chunk, -2) for x in streams)
            for tokens in zip(*runs, strict=True):
                part = partial(_read_run, read, len(state), (*extras, *constants))
                inputs = (*state, *tokens, *constants.values())
                # Backward begins with the last run, so computing it again would save no memory.
                is_last = (len(out) + 1) * chunk >= k.shape[-2]
                stores_all = by_steps or self.stores_inputs_only or is_last
                output, *after = part(*inputs) if stores_all else self.recompute(part, *inputs)
                state = tuple(after)
                out.append(output)
            if by_steps:
                return torch.stack(out, dim=-2).to(dtype), state
            return (out[0] if len(out) == 1 else torch.cat(out, dim=-2)).to(dtype), state

    def fast_form(self, q: Queries, k: Keys, v: Values, options: CallOptions, extras: dict[str, Any]) -> Attended:
        """Compute the chunked form: time linear in the tokens, and no matrix of tokens by tokens."""
        check_request(self, options.counts, options.causal)
        return self.chunked(q, k, v, **options.positions(), **extras)[0]

    def tokens_per_run(self, k: Keys) -> int:
        """Return the tokens read at once by the call: the scores of all heads should fit into the cache."""
        # A power of two, so that mechanisms that pad their runs to one (`pad_to_power_of_two`) pad nothing.
        side = isqrt(MAX_CACHED_NUMBERS // (4 * max(1, k.shape[0] * k.shape[1])))
        return min(self.run, max(MIN_RUN, 1 << side.bit_length() - 1))

    def longest_run(self, extras: Mapping[str, Tensor]) -> int | None:
        """Return the length from which on a run would magnify rounding errors; None if there is none."""
        return None

    def state_bytes(self, state: State) -> int:
        """Return the measured memory of a state in bytes."""
        return bytes_of(state)


def _read_run(
    read: Callable[..., tuple[State, Tensor]], state_size: int, names: tuple[str, ...], *inputs: Any
) -> tuple[Tensor, ...]:
    """Return the outputs of some tokens and the state after them, from state, tokens and extras in a row."""
    tokens, extras = inputs[state_size : state_size + 3], inputs[state_size + 3 :]
    after, output = read(inputs[:state_size], *tokens, **dict(zip(names, extras, strict=True)))
    return output, *after


def zero_state(q: Queries, v: Values, columns: int = 0) -> Float[Tensor, "batch heads width columns"]:
    """Return zeros that map a key to a value, and to `columns` more numbers."""
    return upcast(v)[0].new_zeros(*q.shape[:-2], q.shape[-1], v.shape[-1] + columns)


def read(state: Float[Tensor, "batch heads width features"], q_t: Query) -> Output:
    """Return `q S` for one token."""
    return (q_t[..., None, :] @ state)[..., 0, :]


def outer(k_t: Key, v_t: Value) -> Float[Tensor, "batch heads width features"]:
    """Return `k vᵀ` for one token."""
    return k_t[..., :, None] * v_t[..., None, :]
