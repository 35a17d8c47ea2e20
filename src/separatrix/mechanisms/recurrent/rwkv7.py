"""RWKV-7: a delta rule with separate vectors for gates, rates of learning, and keys that remove."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from separatrix.core.parameters import exact
from separatrix.core.tensors import Float, Tensor, functional, torch
from separatrix.mechanisms._methods import advance_method, attention_method, step_method
from separatrix.mechanisms._types import Attended, CallOptions, Key, Keys, Output, Queries, Query, Value, Values
from separatrix.mechanisms.extras import RATES, REMOVAL, REPLACEMENT, SIGMOID_GATES
from separatrix.mechanisms.recurrent._base import State, outer, read, zero_state
from separatrix.mechanisms.recurrent._decay import Decays, accumulate_gates, decay_state, pad_to_power_of_two
from separatrix.mechanisms.recurrent._delta_rule import unit
from separatrix.mechanisms.recurrent._gated import GatedMechanism
from separatrix.mechanisms.recurrent.gla import decayed_overlaps

MIN_LOG_GATE = -math.exp(-0.5)
"""The log of the smallest gate that the paper's parametrisation reaches."""


class Rwkv7(GatedMechanism):
    """`S_t = (diag(w_t) - (a_t ⊙ κ_t) κ_tᵀ) S_{t-1} + k̃_t v_tᵀ`, `o_t = q_t S_t` (arXiv 2503.14456).

    Removing and writing have keys of their own: `κ_t = k_t ⊙ ξ` scaled to length 1, and `k̃_t = k_t ⊙ (1 +
    (a_t - 1) ⊙ α)`. Gates w and rates a are learned per token and channel: `log_gates` and `rates`, between 0
    and 1, both of shape (batch, heads, tokens, width); ξ is `removal` and α is `replacement`, of shape
    (heads, width). A gate of 0 is no reset: what is removed stays, negated. If they are not given, gate=key
    sets `w_t = exp(-sigmoid(k_t)/sqrt(e))`, in the paper's range, gate=0.9 a constant, rates and α are the
    parameters, and ξ is 1. On keys of length 1, gate=1 is delta with beta = rate; rates of 0 and α = 0 are
    gla. Around it the paper has a shift of tokens, a bonus for the current token, an output gate, and the
    first layer's values mixed in: these belong to a model.

    >>> from separatrix.mechanisms import mechanism_named
    >>> eye, both = torch.eye(2)[None, None], torch.ones(1, 1, 2, 2)
    >>> mechanism_named("rwkv7:gate=1,rate=1/2")(both, eye, eye, causal=True)[0, 0].tolist()
    [[0.5, 0.0], [0.5, 0.5]]
    """

    name = "rwkv7"
    formula = "S_t = (diag(w_t) - (a r_t) r_t^T) S_{t-1} + a k_t v_t^T, o_t = q_t S_t, r_t = k_t / |k_t|"
    source = "[rec] arXiv 2503.14456, with gates and rates that are not learned"
    extras = (SIGMOID_GATES, RATES, REMOVAL, REPLACEMENT)
    run = 64
    rate: Fraction = exact(Fraction(1, 2), at_least=0, at_most=1)
    """The rate of learning in context."""
    replacement: Fraction = exact(1, at_least=-(10**6), at_most=10**6)
    """The share of the rate that goes into a new key."""

    def key_gates(self, k: Float[Tensor, "*tokens width"]) -> Float[Tensor, "*tokens width"]:
        return MIN_LOG_GATE * k.sigmoid()

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        gates = extras["log_gates"].to(v).exp()
        removal_keys, rates, write_keys = self._keys(k, extras)
        state, out = zero_state(q, v), [v[..., :0, :]]
        for t in range(k.shape[-2]):
            kappa = removal_keys[..., t, :, None]
            transition = gates[..., t, :].diag_embed() - rates[..., t, :, None] * kappa @ kappa.mT
            state = transition @ state + write_keys[..., t, :, None] @ v[..., t, None, :]
            out.append(q[..., t, None, :] @ state)
        return torch.cat(out, dim=-2)

    @step_method
    def step(self, state: State, q_t: Query, k_t: Key, v_t: Value, **extras_t: Any) -> tuple[State, Output]:
        extras = {**extras_t, "rates": extras_t["rates"][..., None, :]}
        removal_key, rate, write_key = (x[..., 0, :] for x in self._keys(k_t[..., None, :], extras))
        removal = outer(rate * removal_key, read(state[0], removal_key))
        state = (decay_state(extras_t["log_gates"], state[0]) - removal + outer(write_key, v_t),)
        return state, read(state[0], q_t)

    @advance_method
    def advance(self, state: State, q: Queries, k: Keys, v: Values, **extras: Any) -> tuple[State, Attended]:
        """Solve one triangular system for what each token removes from the state before it.

        With `u_i = κ_i S_{i-1}` the state is a decayed sum of `k̃_j v_jᵀ - (a_j ⊙ κ_j) u_jᵀ`. A token reads
        the state before its own gate, so κ is shifted by one token to be compared with earlier writes.
        """
        length = k.shape[-2]
        inputs = (*self._keys(k, extras), q, v, extras["log_gates"])
        removal_keys, rates, write_keys, q, v, log_gates = pad_to_power_of_two(*inputs)
        decays, weighted_keys = accumulate_gates(log_gates, v.dtype), rates * removal_keys
        from_start, to_end = decays.from_start(), decays.to_end()
        next_keys = functional.pad(removal_keys[..., 1:, :], (0, 0, 0, 1))
        before = functional.pad(from_start[..., :-1, :], (0, 0, 1, 0), value=1.0)
        removal_removal, removal_write, query_removal, query_write = _overlap_pairs(
            (next_keys, next_keys, q, q), (weighted_keys, write_keys, weighted_keys, write_keys), decays
        )
        targets = (removal_keys * before) @ state[0] + _shift_rows(removal_write) @ v
        system = _shift_rows(removal_removal)
        removals = torch.linalg.solve_triangular(system, targets, upper=False, unitriangular=True)
        out = (q * from_start) @ state[0] + query_write @ v - query_removal @ removals
        writes = (write_keys * to_end).mT @ v - (weighted_keys * to_end).mT @ removals
        return (from_start[..., -1:, :].mT * state[0] + writes,), out[..., :length, :]

    def _keys(self, k: Keys, extras: dict[str, Tensor]) -> tuple[Keys, Keys, Keys]:
        """Return keys that remove, rates, and keys that write."""
        rates = extras["rates"].to(k)
        removal, replacement = (extras[name].to(k)[:, None, :] for name in ("removal", "replacement"))
        return unit(k * removal), rates, k * (1 + (rates - 1) * replacement)


def _overlap_pairs(
    queries: tuple[Tensor, ...], keys: tuple[Tensor, ...], decays: Decays
) -> tuple[Float[Tensor, "batch heads queries keys"], ...]:
    """Return the `decayed_overlaps` of several pairs, computed as one batch."""
    repeats = (len(keys), 1, 1, 1)
    resets = None if decays.resets is None else decays.resets.repeat(repeats)
    repeated_decays = Decays(decays.logs.repeat(repeats), resets, decays.dtype)
    return decayed_overlaps(torch.cat(queries), torch.cat(keys), repeated_decays).chunk(len(keys))


def _shift_rows(overlaps: Float[Tensor, "batch heads keys keys"]) -> Float[Tensor, "batch heads keys keys"]:
    """Move the row of each token to the next one; the first row is 0."""
    return functional.pad(overlaps[..., :-1, :], (0, 0, 1, 0))
