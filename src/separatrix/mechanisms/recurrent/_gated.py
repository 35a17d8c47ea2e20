"""Mechanisms that forget at a rate which the tokens decide.

Trained models learn the map from token to gate. With gate=key it is a fixed function of the key, so that the
mechanism is a function of (q, k, v) alone; `log_gates` given to any form take the place of it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, ClassVar

from pydantic import BeforeValidator

from separatrix.core.numbers import format_exact, parse_exact
from separatrix.core.parameters import Constraint, Parameters
from separatrix.core.tensors import Float, Tensor, functional, torch
from separatrix.mechanisms.recurrent._base import RecurrentMechanism
from separatrix.mechanisms.recurrent._decay import log_exact


def _gate(value: object) -> Fraction | str:
    return "key" if value == "key" else parse_exact(value, "gate")


class GateParameters(Parameters):
    """Where the gate comes from: the key, or a constant."""

    gate: Annotated[Fraction | str, BeforeValidator(_gate)] = "key"
    constraints: ClassVar[tuple[Constraint, ...]] = (
        Constraint(
            ("gate",),
            lambda p: p.gate == "key" or 0 < p.gate <= 1,
            lambda p: f"gate={format_exact(p.gate)} is out of range; gate must be key, or above 0, up to 1",
        ),
    )


class GatedMechanism(RecurrentMechanism):
    """A recurrent mechanism with one gate in [0, 1] per token, or one per token and channel of the key."""

    schema = GateParameters
    parameters: GateParameters

    def default_gates(self, k: Float[Tensor, "*tokens width"]) -> Float[Tensor, "*tokens channels"]:
        """Logs of the gates that the parameter `gate` stands for."""
        logs, gate = self.key_gates(k), self.parameters.gate
        if isinstance(gate, Fraction):
            return k.new_full(logs.shape, log_exact(gate), dtype=torch.float64)
        return logs

    def key_gates(self, k: Float[Tensor, "*tokens width"]) -> Float[Tensor, "*tokens channels"]:
        """Logs of the gates that gate=key stands for: `-softplus(mean of the key)`."""
        return -functional.softplus(k.mean(-1, keepdim=True))
