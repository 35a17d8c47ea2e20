"""Causal linear attention: a running sum of outer products."""

from __future__ import annotations

from typing import Any

from separatrix.core.parameters import Flag, Parameters
from separatrix.core.tensors import Tensor
from separatrix.mechanisms._base import Attended, Counts, Keys, Queries, Values, divided, form
from separatrix.mechanisms._request import one_token, run_of_tokens
from separatrix.mechanisms._running import running, tokens_at_once, with_one
from separatrix.mechanisms.recurrent._base import (
    Key,
    Output,
    Query,
    RecurrentMechanism,
    State,
    Value,
    check_lengths,
    memory,
    outer,
    read,
)

CHUNK = 64
"""Tokens of one chunk attend to each other by their scores; fastest for widths of 32 and 64."""


class CausalLinearParameters(Parameters):
    """Whether each row is divided by the sum of its scores."""

    owner = "causal-linear"
    normalised: Flag = False


class CausalLinear(RecurrentMechanism):
    """`S_t = S_{t-1} + k_t v_tᵀ`, `o_t = q_t S_t` [rec].

    With normalised=yes the output is divided by `<q_t, k_1 + ... + k_t>`, whose second
    factor is kept beside S; a row where that is zero returns 0. There is no feature map: scores are logits.

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
    schema = CausalLinearParameters
    parameters: CausalLinearParameters
    keeps_inputs_only = True

    @property
    def normalised(self) -> bool:
        return self.parameters.normalised

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        check_lengths(self, q, k)
        scores = (q @ k.mT).tril()
        if self.normalised:
            scores = divided(scores, scores.sum(-1, keepdim=True))
        return scores @ v

    def tokens_per_run(self, k: Keys) -> int:
        """All of them: `running` takes few at a time, and keeps nothing but its inputs.

        With normalised=yes values are copied to add a column, so only few are copied at a time.
        """
        if self.normalised:
            return tokens_at_once(k.shape[0] * k.shape[1], k.shape[-1], k.shape[-1], CHUNK)
        return max(1, k.shape[-2])

    def init_state(self, q: Queries, v: Values) -> State:
        return (memory(q, v, more=1 if self.normalised else 0),)

    @one_token
    def step(self, state: State, q_t: Query, k_t: Key, v_t: Value, **extras_t: Any) -> tuple[State, Output]:
        sums = state[0] + outer(k_t, self._summed(v_t))
        return (sums,), self._averaged(read(sums, q_t))

    @run_of_tokens
    def advance(self, state: State, q: Queries, k: Keys, v: Values, **extras: Any) -> tuple[State, Attended]:
        sums, out = running(state[0], q, k, self._summed(v), CHUNK)
        return (sums,), self._averaged(out)

    def _summed(self, v: Tensor) -> Tensor:
        """What is added up: values, and the number 1 if rows are to be divided by their sums."""
        return with_one(v) if self.normalised else v

    def _averaged(self, out: Tensor) -> Tensor:
        return divided(out[..., :-1], out[..., -1:]) if self.normalised else out
