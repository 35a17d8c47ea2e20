"""State space duality: linear attention with one gate per token, as in Mamba-2."""

from __future__ import annotations

from typing import Any

from separatrix.mechanisms._methods import advance_method, attention_method
from separatrix.mechanisms._types import Attended, CallOptions, Keys, Queries, Values
from separatrix.mechanisms.extras import HEAD_GATES
from separatrix.mechanisms.recurrent._base import State
from separatrix.mechanisms.recurrent._decay import advance_scalar, scalar_decays
from separatrix.mechanisms.recurrent._gated import GatedSums


class Ssd(GatedSums):
    """`S_t = a_t S_{t-1} + k_t v_tᵀ`, `o_t = q_t S_t`, with a scalar gate a_t in [0, 1] [rec].

    In Mamba-2 q, k, v are C, B and the input scaled by its step size, and the gate is a learned function of
    the token: `log_gates` of shape (batch, heads, tokens, 1), minus infinity for a reset. If they are not
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
    extras = (HEAD_GATES,)

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        return (q @ k.mT * scalar_decays(extras["log_gates"], v.dtype)[1]) @ v

    @advance_method
    def advance(self, state: State, q: Queries, k: Keys, v: Values, **extras: Any) -> tuple[State, Attended]:
        after, out = advance_scalar(state[0], q, k, v, *scalar_decays(extras["log_gates"], v.dtype))
        return (after,), out
