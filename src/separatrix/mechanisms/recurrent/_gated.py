"""Mechanisms that forget at a rate which the tokens decide.

Trained models learn the map from token to gate. Here, with gate=key, it is a fixed function of the key,
so that the mechanism is a function of (q, k, v) alone; every form also takes the logs of the gates
as `log_gates`, for gates from elsewhere.
"""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Annotated, ClassVar

from pydantic import BeforeValidator

from separatrix.mechanisms._base import Attended, Counts, Keys, Queries, Values, check_request, widened
from separatrix.mechanisms.recurrent._base import (
    Key,
    Output,
    Query,
    RecurrentMechanism,
    State,
    Value,
    check_lengths,
    outer,
    read,
)
from separatrix.mechanisms.recurrent._decay import LogGates, log_exact
from separatrix.numbers import format_exact, parse_exact
from separatrix.parameters import Constraint, Parameters, UsageError
from separatrix.tensors import Float, Tensor, functional, torch

LogGate = Float[Tensor, "batch heads channels"]


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
    """A recurrent mechanism with one gate in (0, 1] per token, or one per token and channel of the key."""

    schema = GateParameters
    per_channel: ClassVar[bool]
    parameters: GateParameters

    @abstractmethod
    def gated_definition(self, q: Queries, k: Keys, v: Values, log_gates: LogGates) -> Attended:
        """The formula, with the gates at hand."""

    def gated_step(
        self, state: State, q_t: Query, k_t: Key, v_t: Value, log_gate_t: LogGate
    ) -> tuple[State, Output]:
        """One token, with its gate at hand: `S_t = a_t S_{t-1} + k_t v_tᵀ`, unless a mechanism differs."""
        kept = log_gate_t.to(v_t.dtype).exp()[..., None]
        state = (kept * state[0] + outer(k_t, v_t),)
        return state, read(state[0], q_t)

    @abstractmethod
    def gated_advance(
        self, state: State, q: Queries, k: Keys, v: Values, log_gates: LogGates
    ) -> tuple[State, Attended]:
        """A run of tokens, with their gates at hand."""

    def key_gates(self, k: Float[Tensor, "*tokens width"]) -> Float[Tensor, "*tokens channels"]:
        """Logs of the gates that gate=key stands for: `-functional.softplus(mean of the key)`."""
        return -functional.softplus(k.mean(-1, keepdim=True))

    def definition(
        self,
        q: Queries,
        k: Keys,
        v: Values,
        counts: Counts | None = None,
        causal: bool = False,
        log_gates: LogGates | None = None,
    ) -> Attended:
        check_request(self, counts, causal)
        check_lengths(self, q, k)
        dtype, (q, k, v) = v.dtype, widened(q, k, v)
        return self.gated_definition(q, k, v, self._gates(k, log_gates)).to(dtype)

    def step(
        self, state: State, q_t: Query, k_t: Key, v_t: Value, log_gate_t: LogGate | None = None
    ) -> tuple[State, Output]:
        return self.gated_step(state, q_t, k_t, v_t, self._gates(k_t, log_gate_t))

    def advance(
        self, state: State, q: Queries, k: Keys, v: Values, log_gates: LogGates | None = None
    ) -> tuple[State, Attended]:
        return self.gated_advance(state, q, k, v, self._gates(k, log_gates))

    def unrolled(self, q: Queries, k: Keys, v: Values, log_gates: LogGates | None = None) -> Attended:
        return self._unrolled(q, k, v, *self._given(k, log_gates))

    def chunked(
        self, q: Queries, k: Keys, v: Values, chunk: int | None = None, log_gates: LogGates | None = None
    ) -> Attended:
        return self._chunked(chunk, q, k, v, *self._given(k, log_gates))

    def __call__(
        self,
        q: Queries,
        k: Keys,
        v: Values,
        counts: Counts | None = None,
        causal: bool = False,
        log_gates: LogGates | None = None,
    ) -> Attended:
        """The chunked form, with gates of the caller's if `log_gates` is given."""
        check_request(self, counts, causal)
        return self.chunked(q, k, v, log_gates=log_gates)

    def _given(self, k: Tensor, log_gates: Tensor | None) -> tuple[Tensor, ...]:
        """The caller's gates, checked, as one more stream of tokens."""
        if log_gates is None:
            return ()
        wanted = (*k.shape[:-1], k.shape[-1] if self.per_channel else 1)
        shape = tuple(log_gates.shape)
        if shape != wanted:
            raise UsageError(f"log_gates of {self.name} must have shape {wanted}, not {shape}")
        if not bool(((log_gates <= 0) & log_gates.isfinite()).all()):
            raise UsageError(f"log_gates of {self.name} must be finite and at most 0, as logs of (0, 1]")
        return widened(log_gates)

    def _gates(self, k: Tensor, log_gates: Tensor | None) -> Tensor:
        if log_gates is not None:
            return self._given(k, log_gates)[0]
        gate = self.parameters.gate
        if isinstance(gate, Fraction):
            channels = k.shape[-1] if self.per_channel else 1
            return k.new_full((*k.shape[:-1], channels), log_exact(gate), dtype=torch.float64)
        return self.key_gates(k)
