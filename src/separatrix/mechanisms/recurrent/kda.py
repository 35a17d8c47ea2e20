"""Kimi delta attention: the delta rule on a state whose channels forget each at a rate of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from separatrix.core.tensors import Float, Tensor, functional, torch
from separatrix.mechanisms._base import Attended, Counts, Keys, Queries, Values, form
from separatrix.mechanisms._request import one_token, run_of_tokens
from separatrix.mechanisms.extras import BETA, CHANNEL_STEP_GATES
from separatrix.mechanisms.recurrent._base import (
    Key,
    Output,
    Query,
    State,
    Value,
    check_lengths,
    memory,
    outer,
    read,
)
from separatrix.mechanisms.recurrent._decay import accumulated, gated
from separatrix.mechanisms.recurrent._gated import GatedMechanism
from separatrix.mechanisms.recurrent.delta import reflected_run, solved, unit
from separatrix.mechanisms.recurrent.gated_delta import GatedDeltaParameters
from separatrix.mechanisms.recurrent.gla import faded_overlaps


class KdaParameters(GatedDeltaParameters):
    """Where the gates come from, the strength of a write, and whether keys are scaled to length 1."""

    owner = "kda"


class Kda(GatedMechanism):
    """`S_t = (I - beta_t k_t k_tᵀ) diag(a_t) S_{t-1} + beta_t k_t v_tᵀ`, `o_t = q_t S_t`.

    Kimi delta attention (arXiv 2510.26692). There gates and beta are learned per token: `log_gates` of shape
    (batch, heads, tokens, width), minus infinity for a reset, and `beta` of shape (batch, heads, tokens, 1).
    Where they are not given, gate=key sets `a_t = exp(-softplus(k_t))`, with the key as given, before it is
    scaled, gate=0.9 a constant, and beta is the parameter. Equal gates in all channels are gated-delta. The
    paper scales queries to length 1 as well, and by 1/sqrt(width): that is left to whoever makes them.

    >>> from separatrix.mechanisms import mechanism_named
    >>> eye, both = torch.eye(2)[None, None], torch.ones(1, 1, 2, 2)
    >>> gates = torch.tensor([[1.0, 1.0], [0.5, 1.0]]).log()[None, None]
    >>> mechanism_named("kda")(both, eye, eye, causal=True, log_gates=gates)[0, 0].tolist()
    [[1.0, 0.0], [0.5, 1.0]]
    """

    name = "kda"
    formula = "S_t = (I - beta k_t k_t^T) diag(a_t) S_{t-1} + beta k_t v_t^T, o_t = q_t S_t"
    source = "[rec] arXiv 2510.26692, with gates and a beta that are not learned"
    schema = KdaParameters
    parameters: KdaParameters
    extras = (CHANNEL_STEP_GATES, BETA)
    run = 64

    def key_gates(self, k: Float[Tensor, "*tokens width"]) -> Float[Tensor, "*tokens width"]:
        return -functional.softplus(k)

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        check_lengths(self, q, k)
        k, gates, betas = self._keys(k), more["log_gates"].to(v).exp(), more["beta"].to(v)
        identity = torch.eye(k.shape[-1], dtype=k.dtype, device=k.device)
        state, out = memory(q, v), [v[..., :0, :]]
        for t in range(k.shape[-2]):
            key, value, beta = k[..., t, :, None], v[..., t, :, None], betas[..., t, :, None]
            state = (identity - beta * key @ key.mT) @ (
                gates[..., t, :, None] * state
            ) + beta * key @ value.mT
            out.append(q[..., t, None, :] @ state)
        return torch.cat(out, dim=-2)

    @one_token
    def step(self, state: State, q_t: Query, k_t: Key, v_t: Value, **extras_t: Any) -> tuple[State, Output]:
        k_t = self._keys(k_t)
        kept = gated(extras_t["log_gates"], state[0])
        error = extras_t["beta"].to(v_t) * (v_t - read(kept, k_t))
        state = (kept + outer(k_t, error),)
        return state, read(state[0], q_t)

    @run_of_tokens
    def advance(self, state: State, q: Queries, k: Keys, v: Values, **extras: Any) -> tuple[State, Attended]:
        """The gated delta rule's triangular system, with overlaps that fade channel by channel."""
        length = k.shape[-2]
        padding = (0, 0, 0, (1 << (length - 1).bit_length()) - length)
        q, k, v = (functional.pad(x, padding) for x in (q, self._keys(k), v))
        log_gates, beta = (functional.pad(extras[name], padding) for name in ("log_gates", "beta"))
        kept = accumulated(log_gates, v.dtype)
        whole = kept.whole
        errors = solved(faded_overlaps(k, k, kept), v - (k * whole) @ state[0], beta)
        out = (q * whole) @ state[0] + faded_overlaps(q, k, kept) @ errors
        after = whole[..., -1:, :].mT * state[0] + (k * kept.rest).mT @ errors
        return (after,), out[..., :length, :]

    def longest_run(self, extras: Mapping[str, Tensor]) -> int | None:
        return reflected_run(self.parameters.beta, extras)

    def _keys(self, k: Tensor) -> Tensor:
        return unit(k) if self.parameters.unit_keys else k
