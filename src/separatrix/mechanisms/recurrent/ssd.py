"""State space duality: linear attention with one gate per token, as in Mamba-2."""

from __future__ import annotations

from separatrix.mechanisms._base import Attended, Keys, Queries, Values
from separatrix.mechanisms.recurrent._base import State
from separatrix.mechanisms.recurrent._decay import LogGates, accumulated, between, scalar_advance
from separatrix.mechanisms.recurrent._gated import GatedMechanism, GateParameters


class SsdParameters(GateParameters):
    """Where the gate comes from."""

    owner = "ssd"


class Ssd(GatedMechanism):
    """`S_t = a_t S_{t-1} + k_t v_tᵀ`, `o_t = q_t S_t`, with a scalar gate a_t in (0, 1] [rec].

    In Mamba-2 q, k, v are C, B and the input scaled by its step size, and the gate is a learned function
    of the token. Here gate=key sets `a_t = exp(-softplus(mean of k_t))`, and gate=0.9 a constant, which
    is retention. `log_gates` of shape (batch, heads, tokens, 1) take the place of both.

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
    per_channel = False

    def gated_definition(self, q: Queries, k: Keys, v: Values, log_gates: LogGates) -> Attended:
        return (q @ k.mT * between(accumulated(log_gates), v.dtype)) @ v

    def gated_advance(
        self, state: State, q: Queries, k: Keys, v: Values, log_gates: LogGates
    ) -> tuple[State, Attended]:
        after, out = scalar_advance(state[0], q, k, v, log_gates)
        return (after,), out
