"""The gated delta rule: the delta rule on a state that forgets."""

from __future__ import annotations

from typing import Any

from separatrix.mechanisms._methods import advance_method
from separatrix.mechanisms._running_sums import add_product
from separatrix.mechanisms._types import Attended, Keys, Queries, Values
from separatrix.mechanisms.extras import BETA, DELTA_GATES
from separatrix.mechanisms.recurrent._base import MIN_RUN, State
from separatrix.mechanisms.recurrent._decay import scalar_decays
from separatrix.mechanisms.recurrent._delta_rule import DeltaRule, solve_writes
from separatrix.mechanisms.recurrent._gated import GatedMechanism


class GatedDelta(DeltaRule, GatedMechanism):
    """`S_t = a_t (I - beta_t k_t k_tᵀ) S_{t-1} + beta_t k_t v_tᵀ`, `o_t = q_t S_t` [rec]; a_t = 1 is delta.

    In the paper gate and beta are learned per token: `log_gates` (minus infinity for a reset) and `beta`,
    both of shape (batch, heads, tokens, 1). If they are not given, gate=key sets `a_t = exp(-softplus(mean of
    k_t))`, with the key as given, before it is scaled, gate=0.9 a constant, and beta is the parameter. The
    paper scales queries to length 1 as well, which only scales the output.

    >>> import torch
    >>> from separatrix.mechanisms import mechanism_named
    >>> eye = torch.eye(2)[None, None]
    >>> both = torch.ones(1, 1, 2, 2)
    >>> mechanism_named("gated-delta:gate=0.5")(both, eye, eye, causal=True)[0, 0].tolist()
    [[1.0, 0.0], [0.5, 1.0]]
    """

    name = "gated-delta"
    formula = "S_t = a_t (I - beta k_t k_t^T) S_{t-1} + beta k_t v_t^T, o_t = q_t S_t"
    source = "[rec] arXiv 2412.06464, with gate and beta that are not learned, and queries of any length"
    extras = (DELTA_GATES, BETA)

    @advance_method
    def advance(self, state: State, q: Queries, k: Keys, v: Values, **extras: Any) -> tuple[State, Attended]:
        k, (from_start, pair_decays) = self.scale_keys(k), scalar_decays(extras["log_gates"], v.dtype)
        writes = solve_writes(k @ k.mT * pair_decays, v - from_start * (k @ state[0]), extras["beta"])
        out = add_product(from_start * (q @ state[0]), q @ k.mT * pair_decays, writes)
        last_keys = k * pair_decays[..., -1, :, None]
        return (add_product(from_start[..., -1:, :] * state[0], last_keys.mT, writes),), out

    def tokens_per_run(self, k: Keys) -> int:
        """Return half as many as others: beside the scores of a run there is the decay between its tokens."""
        return max(MIN_RUN, min(self.run, super().tokens_per_run(k) // 2))
