"""Retention: linear attention that forgets at one fixed rate."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

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
from separatrix.mechanisms.recurrent._decay import log_exact, scalar_advance
from separatrix.numbers import format_exact
from separatrix.parameters import Constraint, Exact, Parameters
from separatrix.tensors import torch


class RetentionParameters(Parameters):
    """What is kept from one token to the next."""

    owner = "retention"
    decay: Exact = Fraction(97, 100)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        Constraint(
            ("decay",),
            lambda p: 0 < p.decay <= 1,
            lambda p: f"decay={format_exact(p.decay)} is out of range; decay must be above 0, up to 1",
        ),
    )


class Retention(RecurrentMechanism):
    """`S_t = decay S_{t-1} + k_t v_tᵀ`, `o_t = q_t S_t` [rec]; decay = 1 is causal-linear.

    One decay for all heads; the rotation of queries and keys and the group norm of RetNet are left out.

    >>> from separatrix.mechanisms import mechanism_named
    >>> one = torch.ones(1, 1, 3, 1)
    >>> mechanism_named("retention:decay=0.5")(one, one, one, causal=True).flatten().tolist()
    [1.0, 1.5, 1.75]
    """

    name = "retention"
    formula = "S_t = decay S_{t-1} + k_t v_t^T, o_t = q_t S_t"
    source = "[rec] arXiv 2307.08621"
    schema = RetentionParameters
    parameters: RetentionParameters

    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False
    ) -> Attended:
        check_request(self, counts, causal)
        check_lengths(self, q, k)
        dtype, (q, k, v) = v.dtype, widened(q, k, v)
        place = torch.arange(k.shape[-2], device=k.device, dtype=torch.float64)
        distance = (place[:, None] - place).clamp(min=0)
        kept = (float(self.parameters.decay) ** distance).tril()
        return ((q @ k.mT * kept.to(v.dtype)) @ v).to(dtype)

    def step(self, state: State, q_t: Query, k_t: Key, v_t: Value) -> tuple[State, Output]:
        state = (float(self.parameters.decay) * state[0] + outer(k_t, v_t),)
        return state, read(state[0], q_t)

    def advance(self, state: State, q: Queries, k: Keys, v: Values) -> tuple[State, Attended]:
        log_gates = k.new_full((*k.shape[:-1], 1), log_exact(self.parameters.decay), dtype=torch.float64)
        after, out = scalar_advance(state[0], q, k, v, log_gates)
        return (after,), out
