"""Causal linear attention: a running sum of outer products."""

from __future__ import annotations

from typing import Any

from separatrix.mechanisms._base import Attended, Counts, Keys, Queries, Values, divided, form
from separatrix.mechanisms._request import one_token, run_of_tokens
from separatrix.mechanisms._running import running
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
from separatrix.parameters import Flag, Parameters

CHUNK = 64
"""Tokens that hear each other by their scores."""
RUN = 128
"""Tokens computed at once, for each number in a key."""


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
        """In proportion to the width, so that scores within chunks take no more memory than keys do."""
        return max(1, RUN * k.shape[-1])

    def init_state(self, q: Queries, v: Values) -> State:
        sums = memory(q, v)
        return (sums, sums.new_zeros(*sums.shape[:-1], 1)) if self.normalised else (sums,)

    @one_token
    def step(self, state: State, q_t: Query, k_t: Key, v_t: Value, **extras_t: Any) -> tuple[State, Output]:
        sums = state[0] + outer(k_t, v_t)
        if not self.normalised:
            return (sums,), read(sums, q_t)
        totals = state[1] + k_t[..., None]
        return (sums, totals), divided(read(sums, q_t), read(totals, q_t))

    @run_of_tokens
    def advance(self, state: State, q: Queries, k: Keys, v: Values, **extras: Any) -> tuple[State, Attended]:
        sums, totals = state if self.normalised else (state[0], None)
        found = running(sums, totals, q, k, v, CHUNK)
        if found.total is None or found.totals is None:
            return (found.sums,), found.read
        return (found.sums, found.totals), divided(found.read, found.total)
