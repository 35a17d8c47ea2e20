"""The delta rule: a write first removes what the state returns for its key."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from separatrix.core.parameters import exact, flag
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms._methods import attention_method, step_method
from separatrix.mechanisms._types import Attended, CallOptions, Key, Keys, Output, Queries, Query, Value, Values
from separatrix.mechanisms.recurrent._base import RecurrentMechanism, State, outer, read, zero_state
from separatrix.mechanisms.recurrent._decay import decay_state

MIN_LENGTH = 1e-12
"""A shorter key has no direction."""
MAX_REFLECTIONS = 16
"""Writes solved for at once if one is stronger than 1: more of them magnify rounding errors."""

Betas = Float[Tensor, "batch heads keys 1"]


class DeltaRule(RecurrentMechanism):
    """`S_t = (I - beta_t k_t k_tᵀ) diag(a_t) S_{t-1} + beta_t k_t v_tᵀ`, `o_t = q_t S_t`; a_t is optional."""

    beta: Fraction = exact(1, above=0, at_most=2)
    """The strength of a write."""
    unit_keys: bool = flag(True)
    """Whether keys are scaled to length 1."""

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        gates = extras["log_gates"].to(v).exp() if "log_gates" in extras else None
        return delta_loop(q, self.scale_keys(k), v, extras["beta"], gates)

    @step_method
    def step(self, state: State, q_t: Query, k_t: Key, v_t: Value, **extras_t: Any) -> tuple[State, Output]:
        k_t, (before,) = self.scale_keys(k_t), state
        if "log_gates" in extras_t:
            before = decay_state(extras_t["log_gates"], before)
        after = before + outer(k_t, extras_t["beta"].to(v_t) * (v_t - read(before, k_t)))
        return (after,), read(after, q_t)

    def longest_run(self, extras: Mapping[str, Tensor]) -> int | None:
        """Cut runs if some beta is above 1.

        At 2 a write reflects what the state returns for its key, so that the writes u_j of similar keys have
        alternating signs: of `sum_j <k_i,k_j> u_j` each of the n terms is as large as the sum, and none of
        their rounding errors fades. Read through the state, only the sum is rounded.
        """
        betas = extras.get("beta")
        reflects = self.beta > 1 if betas is None else bool((betas.detach() > 1).any())
        return MAX_REFLECTIONS if reflects else None

    def scale_keys(self, k: Tensor) -> Tensor:
        """Scale keys to length 1, if `unit_keys` says so."""
        return unit(k) if self.unit_keys else k


def unit(k: Float[Tensor, "*tokens width"]) -> Float[Tensor, "*tokens width"]:
    """Scale keys to length 1. One without a direction stays as it is, and so do its gradients.

    >>> unit(torch.tensor([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    square = k.square().sum(-1, keepdim=True)
    # Replaced before the root is taken, whose slope at 0 is infinite.
    return k / square.where(square > MIN_LENGTH**2, 1).sqrt()


def delta_loop(
    q: Queries, k: Keys, v: Values, beta: Betas, gates: Float[Tensor, "batch heads keys channels"] | None = None
) -> Attended:
    """Compute the formula of `DeltaRule` literally, token by token."""
    identity = torch.eye(k.shape[-1], dtype=k.dtype, device=k.device)
    state, out, beta = zero_state(q, v), [v[..., :0, :]], beta.to(v)
    for t in range(k.shape[-2]):
        key, value, strength = k[..., t, :, None], v[..., t, :, None], beta[..., t, :, None]
        if gates is not None:
            state = gates[..., t, :, None] * state
        # A matrix, as in the formula, unlike `step`: two ways to compute it that tests compare.
        state = (identity - strength * key @ key.mT) @ state + strength * key @ value.mT
        out.append(q[..., t, None, :] @ state)
    return torch.cat(out, dim=-2)


def solve_writes(
    overlaps: Float[Tensor, "batch heads keys keys"], targets: Values, beta: Betas
) -> Float[Tensor, "batch heads keys features"]:
    """Return the write of each token of a chunk: `u_i = beta_i (target_i - sum_{j<i} overlap_ij u_j)`.

    One triangular system, `(I + beta tril(overlaps, -1)) u = beta targets`: the UT transform of the paper,
    applied to the right-hand side instead of inverted.
    """
    beta = beta.to(targets)
    # Only the part of the system below the diagonal is read, here and by its derivative.
    system = beta * overlaps
    writes: Tensor = torch.linalg.solve_triangular(system, beta * targets, upper=False, unitriangular=True)
    return writes
