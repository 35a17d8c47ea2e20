"""State space duality: linear attention with one gate per token, as in Mamba-2."""

from __future__ import annotations

from typing import Any

from separatrix.mechanisms._base import Attended, Counts, Keys, Queries, Values, form
from separatrix.mechanisms._request import one_token, run_of_tokens
from separatrix.mechanisms.extras import HEAD_GATES
from separatrix.mechanisms.recurrent._base import Key, Output, Query, State, Value, check_lengths, outer, read
from separatrix.mechanisms.recurrent._decay import accumulated, gated, scalar_advance
from separatrix.mechanisms.recurrent._gated import GatedMechanism, GateParameters


class SsdParameters(GateParameters):
    """Where the gate comes from."""

    owner = "ssd"


class Ssd(GatedMechanism):
    """`S_t = a_t S_{t-1} + k_t v_tᵀ`, `o_t = q_t S_t`, with a scalar gate a_t in [0, 1] [rec].

    In Mamba-2 q, k, v are C, B and the input scaled by its step size, and the gate is a learned function
    of the token: `log_gates` of shape (batch, heads, tokens, 1), minus infinity for a reset. Where none are
    given, gate=key sets `a_t = exp(-softplus(mean of k_t))`, and gate=0.9 a constant, which is retention.

    >>> import torch
    >>> from separatrix.mechanisms import mechanism_named
    >>> one = torch.ones(1, 1, 3, 1)
    >>> mechanism_named("ssd:gate=0.5")(one, one, one, causal=True).flatten().tolist()
    [1.0, 1.5, 1.75]
    """

    name = "ssd"
    formula = "S_t = a_t S_{t-1} + k_t v_t^T, o_t = q_t S_t, a_t = exp(-softplus(mean k_t))"
    source = "[rec] arXiv 2405.21060, with a gate that is not learned"
    schema = SsdParameters
    extras = (HEAD_GATES,)

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        check_lengths(self, q, k)
        return (q @ k.mT * accumulated(more["log_gates"], v.dtype).between()[..., 0]) @ v

    @one_token
    def step(self, state: State, q_t: Query, k_t: Key, v_t: Value, **extras_t: Any) -> tuple[State, Output]:
        state = (gated(extras_t["log_gates"], state[0]) + outer(k_t, v_t),)
        return state, read(state[0], q_t)

    @run_of_tokens
    def advance(self, state: State, q: Queries, k: Keys, v: Values, **extras: Any) -> tuple[State, Attended]:
        after, out = scalar_advance(state[0], q, k, v, extras["log_gates"])
        return (after,), out
