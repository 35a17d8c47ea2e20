"""MesaNet: every query is answered by the linear map that fits the past best."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from separatrix.core.parameters import exact, flag
from separatrix.core.tensors import Tensor, torch
from separatrix.mechanisms._methods import advance_method, attention_method, step_method
from separatrix.mechanisms._types import Attended, CallOptions, Key, Keys, Output, Queries, Query, Value, Values
from separatrix.mechanisms.extras import FORGET_GATES, INPUT_GATES, RIDGES
from separatrix.mechanisms.recurrent._base import State, outer, read, zero_state
from separatrix.mechanisms.recurrent._decay import advance_scalar, decay_state, scalar_decays
from separatrix.mechanisms.recurrent._delta_rule import unit
from separatrix.mechanisms.recurrent._gated import GatedMechanism


class MesaNet(GatedMechanism):
    """`o_t = q_t (H_t + Λ)⁻¹ G_t`, `G_t = a_t G_{t-1} + beta_t k_t v_tᵀ`, H_t the same with `k_t k_tᵀ`.

    The map `(H_t + Λ)⁻¹ G_t` is that of ridge regression from the keys to the values so far, token s with the
    weight `beta_s a_{s+1} ... a_t` (arXiv 2506.05233). In the paper gates and betas are learned per token:
    `log_gates` (minus infinity for a reset) and `beta`, of shape (batch, heads, tokens, 1), and Λ, diagonal,
    per head: `ridges` of shape (heads, width), above 0. If they are not given, gate=key sets `a_t =
    exp(-softplus(mean of k_t))`, with the key as given, gate=0.9 a constant, beta and Λ are the parameters.
    Keys are scaled to length 1 unless unit_keys=no. A large Λ leaves `q_t G_t / Λ`: ssd, and with gates of 1
    causal-linear. The paper scales queries to length 1 as well, and computes `(H_t + Λ)⁻¹ q_t` by at most 30
    steps of conjugate gradients; here the equations are solved to the last digit.

    >>> from separatrix.mechanisms import mechanism_named
    >>> one, v = torch.ones(1, 1, 3, 1), torch.tensor([6.0, 3.0, 3.0]).reshape(1, 1, 3, 1)
    >>> mechanism_named("mesanet:gate=1")(one, one, v, causal=True).flatten().tolist()
    [3.0, 3.0, 3.0]
    """

    name = "mesanet"
    formula = "o_t = q_t (H_t + ridge I)^-1 G_t, G_t = a_t G_{t-1} + beta k_t v_t^T, H_t the same with k_t k_t^T"
    source = "[rec] arXiv 2506.05233, with gate, beta and ridge that are not learned"
    extras = (FORGET_GATES, INPUT_GATES, RIDGES)
    # Each token of a run has a matrix H of its own, of width × width.
    run = 32
    beta: Fraction = exact(1, above=0, at_most=2)
    """The weight of a token."""
    unit_keys: bool = flag(True)
    """Whether keys are scaled to length 1."""
    ridge: Fraction = exact(1, at_least=Fraction(1, 10**12), at_most=10**12)
    """The regularisation of the fit."""

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        k, gates, betas = self._scale_keys(k), extras["log_gates"].to(v).exp(), extras["beta"].to(v)
        ridge = extras["ridges"].to(v).diag_embed()
        to_values, to_keys, out = zero_state(q, v), zero_state(q, k), [v[..., :0, :]]
        for t in range(k.shape[-2]):
            key, value, gate = k[..., t, :, None], v[..., t, :, None], gates[..., t, :, None]
            beta = betas[..., t, :, None]
            to_values = gate * to_values + beta * key @ value.mT
            to_keys = gate * to_keys + beta * key @ key.mT
            out.append(q[..., t, None, :] @ torch.linalg.solve(to_keys + ridge, to_values))
        return torch.cat(out, dim=-2)

    def init_state(self, q: Queries, v: Values) -> State:
        return zero_state(q, v), zero_state(q, q)

    @step_method
    def step(self, state: State, q_t: Query, k_t: Key, v_t: Value, **extras_t: Any) -> tuple[State, Output]:
        key, beta = self._scale_keys(k_t), extras_t["beta"].to(v_t)
        to_values, to_keys = (
            decay_state(extras_t["log_gates"], before) + outer(key, beta * new)
            for before, new in zip(state, (v_t, key), strict=True)
        )
        # H + Λ is symmetric: solving for q needs one right-hand side, for G one per feature.
        solution = torch.linalg.solve(to_keys + extras_t["ridges"].to(v_t).diag_embed(), q_t)
        return (to_values, to_keys), read(to_values, solution)

    @advance_method
    def advance(self, state: State, q: Queries, k: Keys, v: Values, **extras: Any) -> tuple[State, Attended]:
        """Solve the systems of all matrices H of the run as one batch; values as in linear attention."""
        k, beta = self._scale_keys(k), extras["beta"].to(v)
        from_start, pair_decays = scalar_decays(extras["log_gates"], v.dtype)
        # As vectors of width² numbers, one product with the decays gives every H of the run.
        pairs = (k[..., :, None] * (beta * k)[..., None, :]).flatten(-2)
        to_keys = (pair_decays @ pairs + from_start * state[1].flatten(-2)[..., None, :]).reshape(*k.shape, -1)
        solution = torch.linalg.solve(to_keys + extras["ridges"].to(v).diag_embed()[:, None], q)
        after, out = advance_scalar(state[0], solution, k, beta * v, from_start, pair_decays)
        return (after, to_keys[..., -1, :, :]), out

    def _scale_keys(self, k: Tensor) -> Tensor:
        return unit(k) if self.unit_keys else k
