"""The gated delta rule: the delta rule on a state that forgets."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from separatrix.mechanisms._base import Attended, Keys, Queries, Values
from separatrix.mechanisms.recurrent._base import Key, Output, Query, State, Value, outer, read
from separatrix.mechanisms.recurrent._decay import LogGates, accumulated, between
from separatrix.mechanisms.recurrent._gated import GatedMechanism, GateParameters, LogGate
from separatrix.mechanisms.recurrent.delta import DeltaParameters, delta_definition, solved
from separatrix.parameters import Constraint, Exact, Flag
from separatrix.tensors import Tensor, functional


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
    """`S_t = a_t (I - beta k_t k_tᵀ) S_{t-1} + beta k_t v_tᵀ`, `o_t = q_t S_t` [rec]; a_t = 1 is delta.

    Gates are those of ssd: gate=key sets `a_t = exp(-softplus(mean of k_t))`, with the key as given,
    before it is scaled; gate=0.9 is a constant; `log_gates` of shape (batch, heads, tokens, 1) take the
    place of both. In the paper gate and beta are learned per token.

    >>> import torch
    >>> from separatrix.mechanisms import mechanism_named
    >>> eye = torch.eye(2)[None, None]
    >>> both = torch.ones(1, 1, 2, 2)
    >>> mechanism_named("gated-delta:gate=0.5")(both, eye, eye, causal=True)[0, 0].tolist()
    [[1.0, 0.0], [0.5, 1.0]]
    """

    name = "gated-delta"
    formula = "S_t = a_t (I - beta k_t k_t^T) S_{t-1} + beta k_t v_t^T, o_t = q_t S_t"
    source = "[rec] arXiv 2412.06464, with gate and beta that are not learned"
    schema = GatedDeltaParameters
    per_channel = False
    parameters: GatedDeltaParameters

    def gated_definition(self, q: Queries, k: Keys, v: Values, log_gates: LogGates) -> Attended:
        gates = log_gates.to(v.dtype).exp()
        return delta_definition(q, self._keys(k), v, float(self.parameters.beta), gates)

    def gated_step(
        self, state: State, q_t: Query, k_t: Key, v_t: Value, log_gate_t: LogGate
    ) -> tuple[State, Output]:
        k_t = self._keys(k_t)
        kept = log_gate_t.to(v_t.dtype).exp()[..., None] * state[0]
        error = float(self.parameters.beta) * (v_t - read(kept, k_t))
        state = (kept + outer(k_t, error),)
        return state, read(state[0], q_t)

    def gated_advance(
        self, state: State, q: Queries, k: Keys, v: Values, log_gates: LogGates
    ) -> tuple[State, Attended]:
        k, cumulative = self._keys(k), accumulated(log_gates)
        decay = between(cumulative, v.dtype)
        whole = cumulative.to(v.dtype).exp()
        errors = solved(k @ k.mT * decay, v - whole * (k @ state[0]), float(self.parameters.beta))
        out = whole * (q @ state[0]) + (q @ k.mT * decay) @ errors
        after = whole[..., -1:, :] * state[0] + (k * decay[..., -1, :, None]).mT @ errors
        return (after,), out

    def _keys(self, k: Tensor) -> Tensor:
        return functional.normalize(k, dim=-1) if self.parameters.unit_keys else k
