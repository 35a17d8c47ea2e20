"""Kimi delta attention: the delta rule on a state each of whose channels forgets at a rate of its own."""

from __future__ import annotations

from typing import Any

from separatrix.core.tensors import Float, Tensor, functional
from separatrix.mechanisms._methods import advance_method
from separatrix.mechanisms._types import Attended, Keys, Queries, Values
from separatrix.mechanisms.extras import BETA, CHANNEL_STEP_GATES
from separatrix.mechanisms.recurrent._base import State
from separatrix.mechanisms.recurrent._decay import accumulate_gates, pad_to_power_of_two
from separatrix.mechanisms.recurrent._delta_rule import DeltaRule, solve_writes
from separatrix.mechanisms.recurrent._gated import GatedMechanism
from separatrix.mechanisms.recurrent.gla import decayed_overlaps


class Kda(DeltaRule, GatedMechanism):
    """`S_t = (I - beta_t k_t k_tᵀ) diag(a_t) S_{t-1} + beta_t k_t v_tᵀ`, `o_t = q_t S_t`.

    Kimi delta attention (arXiv 2510.26692). There gates and beta are learned per token: `log_gates` of shape
    (batch, heads, tokens, width), minus infinity for a reset, and `beta` of shape (batch, heads, tokens, 1).
    If they are not given, gate=key sets `a_t = exp(-softplus(k_t))`, with the key as given, before it is
    scaled, gate=0.9 a constant, and beta is the parameter. Equal gates in all channels are gated-delta. The
    paper scales queries to length 1 as well, and by 1/sqrt(width): that is left to the caller.

    >>> import torch
    >>> from separatrix.mechanisms import mechanism_named
    >>> eye, both = torch.eye(2)[None, None], torch.ones(1, 1, 2, 2)
    >>> gates = torch.tensor([[1.0, 1.0], [0.5, 1.0]]).log()[None, None]
    >>> mechanism_named("kda")(both, eye, eye, causal=True, log_gates=gates)[0, 0].tolist()
    [[1.0, 0.0], [0.5, 1.0]]
    """

    name = "kda"
    formula = "S_t = (I - beta k_t k_t^T) diag(a_t) S_{t-1} + beta k_t v_t^T, o_t = q_t S_t"
    source = "[rec] arXiv 2510.26692, with gates and a beta that are not learned"
    extras = (CHANNEL_STEP_GATES, BETA)
    run = 64

    def key_gates(self, k: Float[Tensor, "*tokens width"]) -> Float[Tensor, "*tokens width"]:
        return -functional.softplus(k)

    @advance_method
    def advance(self, state: State, q: Queries, k: Keys, v: Values, **extras: Any) -> tuple[State, Attended]:
        """Solve the gated delta rule's triangular system, with overlaps that fade channel by channel."""
        length, inputs = k.shape[-2], (q, self.scale_keys(k), v, extras["log_gates"], extras["beta"])
        q, k, v, log_gates, beta = pad_to_power_of_two(*inputs)
        decays = accumulate_gates(log_gates, v.dtype)
        from_start = decays.from_start()
        writes = solve_writes(decayed_overlaps(k, k, decays), v - (k * from_start) @ state[0], beta)
        out = (q * from_start) @ state[0] + decayed_overlaps(q, k, decays) @ writes
        after = from_start[..., -1:, :].mT * state[0] + (k * decays.to_end()).mT @ writes
        return (after,), out[..., :length, :]
