"""Gates that tokens determine.

Trained models learn the map from token to gate. With gate=key it is a fixed function of the key, so that the
mechanism is a function of (q, k, v) alone; `log_gates` given to any form replace it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from separatrix.core.parameters import exact
from separatrix.core.tensors import Float, Tensor, functional, torch
from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms._methods import step_method
from separatrix.mechanisms._types import Key, Output, Query, Value
from separatrix.mechanisms.recurrent._base import RecurrentMechanism, State, outer, read
from separatrix.mechanisms.recurrent._decay import decay_state, log_exact


class WithGates(Mechanism):
    """A mechanism with one gate in [0, 1] per token, or one per token and channel of the key."""

    gate: Fraction | str = exact("key", above=0, at_most=1, word="key")
    """The source of the gates: the key, or a constant."""

    def default_gates(self, k: Float[Tensor, "*tokens width"]) -> Float[Tensor, "*tokens channels"]:
        """Return the logs of the gates for the parameter `gate`."""
        logs = self.key_gates(k)
        if isinstance(self.gate, Fraction):
            return k.new_full(logs.shape, log_exact(self.gate), dtype=torch.float64)
        return logs

    def key_gates(self, k: Float[Tensor, "*tokens width"]) -> Float[Tensor, "*tokens channels"]:
        """Return the logs of the gates for gate=key: `-softplus(mean of the key)`."""
        return -functional.softplus(k.mean(-1, keepdim=True))


class GatedMechanism(WithGates, RecurrentMechanism):
    """A recurrent mechanism with gates."""


class GatedSums(GatedMechanism):
    """A mechanism whose state is `S_t = diag(a_t) S_{t-1} + k_t v_tᵀ`, read as `o_t = q_t S_t`."""

    @step_method
    def step(self, state: State, q_t: Query, k_t: Key, v_t: Value, **extras_t: Any) -> tuple[State, Output]:
        state = (decay_state(extras_t["log_gates"], state[0]) + outer(k_t, v_t),)
        return state, read(state[0], q_t)
