"""RWKV-7: a delta rule whose gates, rates of learning and keys for taking back are vectors of their own."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar

from separatrix.core.numbers import format_exact
from separatrix.core.parameters import Constraint, Exact
from separatrix.core.tensors import Float, Tensor, functional, torch
from separatrix.mechanisms._base import Attended, Counts, Keys, Queries, Values, form
from separatrix.mechanisms._request import one_token, run_of_tokens
from separatrix.mechanisms.extras import RATES, REMOVAL, REPLACEMENT, SIGMOID_GATES
from separatrix.mechanisms.recurrent._base import (
    Key,
    Output,
    Query,
    State,
    Value,
    check_lengths,
    memory,
    outer,
    read,
)
from separatrix.mechanisms.recurrent._decay import Kept, accumulated, gated
from separatrix.mechanisms.recurrent._gated import GatedMechanism, GateParameters
from separatrix.mechanisms.recurrent.delta import unit
from separatrix.mechanisms.recurrent.gla import faded_overlaps

FASTEST = -math.exp(-0.5)
"""The log of the smallest gate that the paper's parametrisation reaches."""


class Rwkv7Parameters(GateParameters):
    """Where the gates come from, the rate of learning, and how much of it goes into a new key."""

    owner = "rwkv7"
    rate: Exact = Fraction(1, 2)
    replacement: Exact = Fraction(1)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *GateParameters.constraints,
        Constraint(
            ("rate",),
            lambda p: 0 <= p.rate <= 1,
            lambda p: f"rate={format_exact(p.rate)} is out of range; rate must be between 0 and 1",
        ),
        Constraint(
            ("replacement",),
            lambda p: abs(p.replacement) <= 10**6,
            lambda p: (
                f"replacement={format_exact(p.replacement)} is out of range; "
                "replacement must be between -1e6 and 1e6"
            ),
        ),
    )


class Rwkv7(GatedMechanism):
    """`S_t = (diag(w_t) - (a_t ⊙ κ_t) κ_tᵀ) S_{t-1} + k̃_t v_tᵀ`, `o_t = q_t S_t` (arXiv 2503.14456).

    What is taken back and what is put in its place have keys of their own: `κ_t = k_t ⊙ ξ` scaled to length
    1, and `k̃_t = k_t ⊙ (1 + (a_t - 1) ⊙ α)`. Gates w and rates a are learned per token and channel:
    `log_gates` and `rates`, between 0 and 1, both of shape (batch, heads, tokens, width); ξ is `removal` and
    α is `replacement`, of shape (heads, width). A gate of 0 is no reset: what is taken back stays, negated.
    Where they are not given, gate=key sets `w_t = exp(-sigmoid(k_t)/sqrt(e))`, in the paper's range, gate=0.9
    a constant, rates and α are the parameters, and ξ is 1. On keys of length 1, gate=1 is delta with
    beta = rate; rates of 0 and α = 0 are gla. Around it the paper has a shift of tokens, a bonus for the
    current token, an output gate, and the first layer's values mixed in: left to whoever builds a model.

    >>> from separatrix.mechanisms import mechanism_named
    >>> eye, both = torch.eye(2)[None, None], torch.ones(1, 1, 2, 2)
    >>> mechanism_named("rwkv7:gate=1,rate=1/2")(both, eye, eye, causal=True)[0, 0].tolist()
    [[0.5, 0.0], [0.5, 0.5]]
    """

    name = "rwkv7"
    formula = "S_t = (diag(w_t) - (a r_t) r_t^T) S_{t-1} + a k_t v_t^T, o_t = q_t S_t, r_t = k_t / |k_t|"
    source = "[rec] arXiv 2503.14456, with gates and rates that are not learned"
    schema = Rwkv7Parameters
    parameters: Rwkv7Parameters
    extras = (SIGMOID_GATES, RATES, REMOVAL, REPLACEMENT)
    run = 64

    def key_gates(self, k: Float[Tensor, "*tokens width"]) -> Float[Tensor, "*tokens width"]:
        return FASTEST * k.sigmoid()

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        check_lengths(self, q, k)
        gates = more["log_gates"].to(v).exp()
        removed, rates, written = self._keys(k, more)
        state, out = memory(q, v), [v[..., :0, :]]
        for t in range(k.shape[-2]):
            kappa = removed[..., t, :, None]
            turned = gates[..., t, :].diag_embed() - rates[..., t, :, None] * kappa @ kappa.mT
            state = turned @ state + written[..., t, :, None] @ v[..., t, None, :]
            out.append(q[..., t, None, :] @ state)
        return torch.cat(out, dim=-2)

    @one_token
    def step(self, state: State, q_t: Query, k_t: Key, v_t: Value, **extras_t: Any) -> tuple[State, Output]:
        one = {**extras_t, "rates": extras_t["rates"][..., None, :]}
        removed, rates, written = (x[..., 0, :] for x in self._keys(k_t[..., None, :], one))
        taken = outer(rates * removed, read(state[0], removed))
        state = (gated(extras_t["log_gates"], state[0]) - taken + outer(written, v_t),)
        return state, read(state[0], q_t)

    @run_of_tokens
    def advance(self, state: State, q: Queries, k: Keys, v: Values, **extras: Any) -> tuple[State, Attended]:
        """What each token takes back from the state before it solves one triangular system.

        With `u_i = κ_i S_{i-1}` the state is a decayed sum of `k̃_j v_jᵀ - (a_j ⊙ κ_j) u_jᵀ`. A token asks the
        state before its own gate, so that κ is moved up by a token to be compared with what was written.
        """
        length = k.shape[-2]
        padding = (0, 0, 0, (1 << (length - 1).bit_length()) - length)
        removed, rates, written = (functional.pad(x, padding) for x in self._keys(k, extras))
        q, v, log_gates = (functional.pad(x, padding) for x in (q, v, extras["log_gates"]))
        kept, taken = accumulated(log_gates, v.dtype), rates * removed
        asking = functional.pad(removed[..., 1:, :], (0, 0, 0, 1))
        before = functional.pad(kept.whole[..., :-1, :], (0, 0, 1, 0), value=1.0)
        asked_taken, asked_written, heard_taken, heard_written = _overlaps(
            (asking, asking, q, q), (taken, written, taken, written), kept
        )
        targets = (removed * before) @ state[0] + _later(asked_written) @ v
        found = torch.linalg.solve_triangular(_later(asked_taken), targets, upper=False, unitriangular=True)
        out = (q * kept.whole) @ state[0] + heard_written @ v - heard_taken @ found
        after = (written * kept.rest).mT @ v - (taken * kept.rest).mT @ found
        return (kept.whole[..., -1:, :].mT * state[0] + after,), out[..., :length, :]

    def _keys(self, k: Keys, extras: dict[str, Tensor]) -> tuple[Keys, Keys, Keys]:
        """Keys for taking back, rates, and keys for writing."""
        rates = extras["rates"].to(k)
        removal, replacement = (extras[name].to(k)[:, None, :] for name in ("removal", "replacement"))
        return unit(k * removal), rates, k * (1 + (rates - 1) * replacement)


def _overlaps(
    queries: tuple[Tensor, ...], keys: tuple[Tensor, ...], kept: Kept
) -> tuple[Float[Tensor, "batch heads queries keys"], ...]:
    """`faded_overlaps` of several pairs at once, as one batch."""
    times = (len(keys), 1, 1, 1)
    resets = None if kept.resets is None else kept.resets.repeat(times)
    whole = Kept(kept.logs.repeat(times), resets, kept.dtype)
    return faded_overlaps(torch.cat(queries), torch.cat(keys), whole).chunk(len(keys))


def _later(overlaps: Float[Tensor, "batch heads keys keys"]) -> Float[Tensor, "batch heads keys keys"]:
    """The row of each token from that of the token before it; the first asks nobody."""
    return functional.pad(overlaps[..., :-1, :], (0, 0, 1, 0))
