"""Retention: linear attention that forgets at one fixed rate."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from separatrix.core.parameters import exact
from separatrix.core.tensors import Bool, Float, Tensor, torch
from separatrix.mechanisms._methods import advance_method, attention_method, step_method
from separatrix.mechanisms._positions import presence_mask
from separatrix.mechanisms._types import Attended, CallOptions, Key, Keys, Output, Queries, Query, Value, Values
from separatrix.mechanisms.extras import DECAY
from separatrix.mechanisms.recurrent._base import RecurrentMechanism, RunPresence, State, outer, read
from separatrix.mechanisms.recurrent._decay import LogGates, advance_scalar, scalar_decays

Decay = Float[Tensor, " heads"]
Presence = Bool[Tensor, "batch 1 1"]
"""Whether a token is present."""


class Retention(RecurrentMechanism):
    """`S_t = decay S_{t-1} + k_t v_tᵀ`, `o_t = q_t S_t` [rec]; decay = 1 is causal-linear.

    One decay for all heads, or `decay` of shape (heads,), one for each, as in RetNet: 1 - 2^(-5-h). Left out
    are its normalisations, the 1/sqrt(width) on scores, the division of decays by the root of their sum and
    of rows by the size of theirs, which multiscale-retention has, its rotation of queries and keys, which
    rotary has, and the group norm, which layers have. An absent token does not decay the state.

    >>> import torch
    >>> from separatrix.mechanisms import mechanism_named
    >>> one = torch.ones(1, 1, 3, 1)
    >>> mechanism_named("retention:decay=0.5")(one, one, one, causal=True).flatten().tolist()
    [1.0, 1.5, 1.75]
    """

    name = "retention"
    formula = "S_t = decay S_{t-1} + k_t v_t^T, o_t = q_t S_t"
    source = "[rec] RetNet, arXiv 2307.08621, without its normalisations: multiscale-retention"
    extras = (DECAY,)
    step_takes_present = True
    decay: Fraction = exact(Fraction(97, 100), above=0, at_most=1)
    """The share of the state that is left after one token."""

    def default_decays(self, k: Keys) -> Decay:
        """Return the decay of each head, in float64: they are close to 1."""
        return k.new_full((k.shape[1],), float(self.decay), dtype=torch.float64)

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        return (q @ k.mT * decay_powers(extras["decay"], k, options.present).to(v.dtype)) @ v

    @step_method
    def step(
        self, state: State, q_t: Query, k_t: Key, v_t: Value, present: Presence | None = None, **extras_t: Any
    ) -> tuple[State, Output]:
        decay = extras_t["decay"].to(v_t)[:, None]
        decay = decay if present is None else decay.where(present, 1)
        state = (decay[..., None] * state[0] + outer(k_t, v_t),)
        return state, read(state[0], q_t)

    @advance_method
    def advance(
        self, state: State, q: Queries, k: Keys, v: Values, present: RunPresence | None = None, **extras: Any
    ) -> tuple[State, Attended]:
        decays = scalar_decays(decay_gates(extras["decay"], k, present), v.dtype)
        after, out = advance_scalar(state[0], q, k, v, *decays)
        return (after,), out


def decay_powers(decay: Decay, k: Keys, present: Tensor | None) -> Float[Tensor, "#batch heads keys keys"]:
    """Return `decay^(i - j)` for j up to i, else 0, in float64; absent tokens have no position."""
    position = presence_mask(present, k).double().cumsum(-1)
    # A negative distance may overflow, and its gradient would not be a number even if it is masked.
    distance = (position[:, None, :, None] - position[:, None, None, :]).clamp(min=0)
    powers: Tensor = decay.double()[:, None, None] ** distance
    return powers.tril()


def decay_gates(decay: Decay, k: Keys, present: Tensor | None) -> LogGates:
    """Return the decay of each head as log gates of its tokens: 0 for absent ones."""
    log_gates = decay.double().log()[None, :, None, None].expand(1, -1, k.shape[-2], 1)
    return log_gates if present is None else log_gates.where(present, 0)
