"""Retention: linear attention that forgets at one fixed rate."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

from separatrix.core.numbers import format_exact
from separatrix.core.parameters import Constraint, Exact, Parameters
from separatrix.core.tensors import Bool, Tensor
from separatrix.mechanisms._base import Attended, Counts, Keys, Queries, Values, form
from separatrix.mechanisms._places import which_present
from separatrix.mechanisms._request import one_token, run_of_tokens
from separatrix.mechanisms.extras import DECAY
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
from separatrix.mechanisms.recurrent._decay import scalar_advance

There = Bool[Tensor, "batch 1 keys 1"]


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

    One decay for all heads, or `decay` of shape (heads,), one for each, as RetNet has it: 1 - 2^(-5-h). Left
    out are its normalisations, the 1/sqrt(width) on scores, the division of decays by the root of their sum
    and of rows by the size of theirs, which multiscale-retention has, its rotation of queries and keys, which
    rotary has, and the group norm, which layers have. An absent token does not decay what is kept.

    >>> import torch
    >>> from separatrix.mechanisms import mechanism_named
    >>> one = torch.ones(1, 1, 3, 1)
    >>> mechanism_named("retention:decay=0.5")(one, one, one, causal=True).flatten().tolist()
    [1.0, 1.5, 1.75]
    """

    name = "retention"
    formula = "S_t = decay S_{t-1} + k_t v_t^T, o_t = q_t S_t"
    source = "[rec] RetNet, arXiv 2307.08621, without its normalisations: multiscale-retention"
    schema = RetentionParameters
    parameters: RetentionParameters

    extras = (DECAY,)
    minds_absence = True

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        check_lengths(self, q, k)
        there = which_present(more.get("present"), k)
        place = there.double().cumsum(-1)
        distance = (place[:, None, :, None] - place[:, None, None, :]).clamp(min=0)
        kept: Tensor = (more["decay"].double()[:, None, None] ** distance).tril()
        return (q @ k.mT * kept.to(v.dtype)) @ v

    @one_token
    def step(
        self,
        state: State,
        q_t: Query,
        k_t: Key,
        v_t: Value,
        present: Bool[Tensor, "batch 1 1"] | None = None,
        **extras_t: Any,
    ) -> tuple[State, Output]:
        decay = extras_t["decay"].to(v_t)[:, None]
        kept = decay if present is None else decay.where(present, 1)
        state = (kept[..., None] * state[0] + outer(k_t, v_t),)
        return state, read(state[0], q_t)

    @run_of_tokens
    def advance(
        self,
        state: State,
        q: Queries,
        k: Keys,
        v: Values,
        present: There | None = None,
        **extras: Any,
    ) -> tuple[State, Attended]:
        log_gates = extras["decay"].double().log()[None, :, None, None].expand(1, *k.shape[1:-1], 1)
        if present is not None:
            log_gates = log_gates.where(present, 0)
        after, out = scalar_advance(state[0], q, k, v, log_gates)
        return (after,), out
