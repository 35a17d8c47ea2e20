"""The gated delta rule: the delta rule on a state that forgets."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

from separatrix.core.parameters import Constraint, Exact, Flag
from separatrix.core.tensors import Tensor
from separatrix.mechanisms._base import Attended, Counts, Keys, Queries, Values, form
from separatrix.mechanisms._request import one_token, run_of_tokens
from separatrix.mechanisms._running import add_product
from separatrix.mechanisms.extras import BETA, DELTA_GATES
from separatrix.mechanisms.recurrent._base import (
    FEWEST,
    Key,
    Output,
    Query,
    State,
    Value,
    check_lengths,
    outer,
    read,
)
from separatrix.mechanisms.recurrent._decay import accumulated, gated
from separatrix.mechanisms.recurrent._gated import GatedMechanism, GateParameters
from separatrix.mechanisms.recurrent.delta import (
    DeltaParameters,
    delta_definition,
    reflected_run,
    solved,
    unit,
)


class GatedDeltaParameters(GateParameters):
    """Where the gate comes from, the strength of a write, and whether keys are scaled to length 1."""

    owner = "gated-delta"
    beta: Exact = Fraction(1)
    unit_keys: Flag = True
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *GateParameters.constraints,
        *DeltaParameters.constraints,
    )


class GatedDelta(GatedMechanism):
    """`S_t = a_t (I - beta_t k_t k_tᵀ) S_{t-1} + beta_t k_t v_tᵀ`, `o_t = q_t S_t` [rec]; a_t = 1 is delta.

    In the paper gate and beta are learned per token: `log_gates` (minus infinity for a reset) and `beta`,
    both of shape (batch, heads, tokens, 1). Where they are not given, gate=key sets `a_t = exp(-softplus(mean
    of k_t))`, with the key as given, before it is scaled, gate=0.9 a constant, and beta is the parameter.
    The paper scales queries to length 1 as well, which scales the output alone.

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
    schema = GatedDeltaParameters
    parameters: GatedDeltaParameters
    extras = (DELTA_GATES, BETA)

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        check_lengths(self, q, k)
        return delta_definition(q, self._keys(k), v, more["beta"], more["log_gates"].to(v).exp())

    @one_token
    def step(self, state: State, q_t: Query, k_t: Key, v_t: Value, **extras_t: Any) -> tuple[State, Output]:
        k_t = self._keys(k_t)
        kept = gated(extras_t["log_gates"], state[0])
        error = extras_t["beta"].to(v_t) * (v_t - read(kept, k_t))
        state = (kept + outer(k_t, error),)
        return state, read(state[0], q_t)

    @run_of_tokens
    def advance(self, state: State, q: Queries, k: Keys, v: Values, **extras: Any) -> tuple[State, Attended]:
        k, kept = self._keys(k), accumulated(extras["log_gates"], v.dtype)
        decay, whole = kept.between()[..., 0], kept.whole
        errors = solved(k @ k.mT * decay, v - whole * (k @ state[0]), extras["beta"])
        out = add_product(whole * (q @ state[0]), q @ k.mT * decay, errors)
        after = add_product(whole[..., -1:, :] * state[0], (k * decay[..., -1, :, None]).mT, errors)
        return (after,), out

    def tokens_per_run(self, k: Keys) -> int:
        """Half as many as others: beside the scores of a run there is the decay between all its tokens."""
        return max(FEWEST, min(self.run, super().tokens_per_run(k) // 2))

    def longest_run(self, extras: Mapping[str, Tensor]) -> int | None:
        return reflected_run(self.parameters.beta, extras)

    def _keys(self, k: Tensor) -> Tensor:
        return unit(k) if self.parameters.unit_keys else k
