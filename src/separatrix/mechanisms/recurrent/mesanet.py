"""MesaNet: every query is answered by the linear map that fits the past best."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

from separatrix.core.numbers import format_exact
from separatrix.core.parameters import Constraint, Exact
from separatrix.core.tensors import Tensor, torch
from separatrix.mechanisms._base import Attended, Counts, Keys, Queries, Values, form
from separatrix.mechanisms._request import one_token, run_of_tokens
from separatrix.mechanisms.extras import FORGET_GATES, INPUT_GATES, RIDGES
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
from separatrix.mechanisms.recurrent.delta import unit
from separatrix.mechanisms.recurrent.gated_delta import GatedDeltaParameters


class MesaNetParameters(GatedDeltaParameters):
    """Where the gate comes from, the weight of a token, how stiff the fit is, and unit keys or not."""

    owner = "mesanet"
    ridge: Exact = Fraction(1)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *GatedDeltaParameters.constraints,
        Constraint(
            ("ridge",),
            lambda p: Fraction(1, 10**12) <= p.ridge <= 10**12,
            lambda p: f"ridge={format_exact(p.ridge)} is out of range; ridge must be between 1e-12 and 1e12",
        ),
    )


class MesaNet(GatedMechanism):
    """`o_t = q_t (H_t + Λ)⁻¹ G_t`, `G_t = a_t G_{t-1} + beta_t k_t v_tᵀ`, H_t the same with `k_t k_tᵀ`.

    The map `(H_t + Λ)⁻¹ G_t` is that of ridge regression from the keys to the values so far, token s with the
    weight `beta_s a_{s+1} ... a_t` (arXiv 2506.05233). In the paper gates and betas are learned per token:
    `log_gates` (minus infinity for a reset) and `beta`, of shape (batch, heads, tokens, 1), and Λ, diagonal,
    per head: `ridges` of shape (heads, width), above 0. Where they are not given, gate=key sets `a_t =
    exp(-softplus(mean of k_t))`, with the key as given, gate=0.9 a constant, beta and Λ are the parameters.
    Keys are scaled to length 1 unless unit_keys=no. A large Λ leaves `q_t G_t / Λ`: ssd, and with gates of 1
    causal-linear. The paper scales queries to length 1 as well, and finds `(H_t + Λ)⁻¹ q_t` by at most 30
    steps of conjugate gradients; here the equations are solved to the last digit.

    >>> from separatrix.mechanisms import mechanism_named
    >>> one, v = torch.ones(1, 1, 3, 1), torch.tensor([6.0, 3.0, 3.0]).reshape(1, 1, 3, 1)
    >>> mechanism_named("mesanet:gate=1")(one, one, v, causal=True).flatten().tolist()
    [3.0, 3.0, 3.0]
    """

    name = "mesanet"
    formula = (
        "o_t = q_t (H_t + ridge I)^-1 G_t, G_t = a_t G_{t-1} + beta k_t v_t^T, H_t the same with k_t k_t^T"
    )
    source = "[rec] arXiv 2506.05233, with gate, beta and ridge that are not learned"
    schema = MesaNetParameters
    parameters: MesaNetParameters
    extras = (FORGET_GATES, INPUT_GATES, RIDGES)
    run = 32

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        check_lengths(self, q, k)
        k, gates, betas = self._keys(k), more["log_gates"].to(v).exp(), more["beta"].to(v)
        ridge = more["ridges"].to(v).diag_embed()
        to_values, to_keys, out = memory(q, v), memory(q, k), [v[..., :0, :]]
        for t in range(k.shape[-2]):
            key, value, gate = k[..., t, :, None], v[..., t, :, None], gates[..., t, :, None]
            beta = betas[..., t, :, None]
            to_values = gate * to_values + beta * key @ value.mT
            to_keys = gate * to_keys + beta * key @ key.mT
            out.append(q[..., t, None, :] @ torch.linalg.solve(to_keys + ridge, to_values))
        return torch.cat(out, dim=-2)

    def init_state(self, q: Queries, v: Values) -> State:
        return memory(q, v), memory(q, q)

    @one_token
    def step(self, state: State, q_t: Query, k_t: Key, v_t: Value, **extras_t: Any) -> tuple[State, Output]:
        key, beta = self._keys(k_t), extras_t["beta"].to(v_t)
        to_values, to_keys = (
            gated(extras_t["log_gates"], old) + outer(key, beta * new)
            for old, new in zip(state, (v_t, key), strict=True)
        )
        asked = torch.linalg.solve(to_keys + extras_t["ridges"].to(v_t).diag_embed(), q_t)
        return (to_values, to_keys), read(to_values, asked)

    @run_of_tokens
    def advance(self, state: State, q: Queries, k: Keys, v: Values, **extras: Any) -> tuple[State, Attended]:
        """All matrices H of the run, their systems solved as one batch; values as in linear attention."""
        k, beta = self._keys(k), extras["beta"].to(v)
        kept = accumulated(extras["log_gates"], v.dtype)
        decay, whole = kept.between()[..., 0], kept.whole
        pairs = (k[..., :, None] * (beta * k)[..., None, :]).flatten(-2)
        to_keys = (decay @ pairs + whole * state[1].flatten(-2)[..., None, :]).reshape(*k.shape, -1)
        ridge = extras["ridges"].to(v).diag_embed()[:, None]
        asked = torch.linalg.solve(to_keys + ridge, q)
        out = whole * (asked @ state[0]) + (asked @ k.mT * decay) @ (beta * v)
        after = whole[..., -1:, :] * state[0] + (k * decay[..., -1, :, None]).mT @ (beta * v)
        return (after, to_keys[..., -1, :, :]), out

    def _keys(self, k: Tensor) -> Tensor:
        return unit(k) if self.parameters.unit_keys else k
