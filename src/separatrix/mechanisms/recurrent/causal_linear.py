"""Causal linear attention: a running sum of outer products."""

from __future__ import annotations

from typing import Any

from separatrix.core.parameters import flag
from separatrix.core.tensors import Tensor
from separatrix.mechanisms._blocks import divide
from separatrix.mechanisms._methods import advance_method, attention_method, step_method
from separatrix.mechanisms._running_sums import append_ones, read_running_sums, tokens_in_cache
from separatrix.mechanisms._types import Attended, CallOptions, Key, Keys, Output, Queries, Query, Value, Values
from separatrix.mechanisms.recurrent._base import RecurrentMechanism, State, outer, read, zero_state

CHUNK = 64
"""The number of tokens in a chunk, within which attention is computed by scores: the fastest for widths 32 and 64."""


class CausalLinear(RecurrentMechanism):
    """`S_t = S_{t-1} + k_t v_tᵀ`, `o_t = q_t S_t` [rec].

    With normalised=yes the output is divided by `<q_t, k_1 + ... + k_t>`; the sum of keys is stored beside S. A row
    with the divisor 0 returns 0. There is no feature map: scores are logits.

    >>> import torch
    >>> from separatrix.mechanisms import mechanism_named
    >>> one = torch.ones(1, 1, 3, 1)
    >>> mechanism_named("causal-linear")(one, one, one, causal=True).flatten().tolist()
    [1.0, 2.0, 3.0]
    >>> mechanism_named("causal-linear:normalised=yes")(one, one, one, causal=True).flatten().tolist()
    [1.0, 1.0, 1.0]
    """

    name = "causal-linear"
    formula = "S_t = S_{t-1} + k_t v_t^T, o_t = q_t S_t"
    source = "[rec] arXiv 2006.16236, without a feature map"
    stores_inputs_only = True
    normalised: bool = flag(False)
    """Whether each row is divided by the sum of its scores."""

    @property
    def is_normalised(self) -> bool:
        return self.normalised

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions) -> Attended:
        scores = (q @ k.mT).tril()
        if self.normalised:
            scores = divide(scores, scores.sum(-1, keepdim=True))
        return scores @ v

    def tokens_per_run(self, k: Keys) -> int:
        """Return the tokens of a run: all, or with normalised=yes as many as fit into the cache.

        `read_running_sums` reads few tokens at a time and stores only its inputs, but normalised=yes copies the values
        to add a column.
        """
        if self.normalised:
            return tokens_in_cache(k.shape[0] * k.shape[1], k.shape[-1], k.shape[-1], CHUNK)
        return max(1, k.shape[-2])

    def init_state(self, q: Queries, v: Values) -> State:
        return (zero_state(q, v, columns=1 if self.normalised else 0),)

    @step_method
    def step(self, state: State, q_t: Query, k_t: Key, v_t: Value, **extras_t: Any) -> tuple[State, Output]:
        sums = state[0] + outer(k_t, self._columns(v_t))
        return (sums,), self._finish(read(sums, q_t))

    @advance_method
    def advance(self, state: State, q: Queries, k: Keys, v: Values, **extras: Any) -> tuple[State, Attended]:
        sums, out = read_running_sums(state[0], q, k, self._columns(v), CHUNK)
        return (sums,), self._finish(out)

    def _columns(self, v: Tensor) -> Tensor:
        return append_ones(v) if self.normalised else v

    def _finish(self, out: Tensor) -> Tensor:
        return divide(out[..., :-1], out[..., -1:]) if self.normalised else out
