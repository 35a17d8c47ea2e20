"""DeltaProduct: several writes of the delta rule per token."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from separatrix.core.parameters import exact, flag, natural
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms._methods import advance_method, attention_method, step_method
from separatrix.mechanisms._types import Attended, CallOptions, Key, Keys, Output, Queries, Query, Value, Values
from separatrix.mechanisms.extras import FACTOR_BETAS, FURTHER_KEYS, FURTHER_VALUES, TokenSizes
from separatrix.mechanisms.recurrent._base import RecurrentMechanism, State, outer, read
from separatrix.mechanisms.recurrent._delta_rule import MAX_REFLECTIONS, delta_loop, solve_writes, unit


class DeltaProduct(RecurrentMechanism):
    """`S ← (I - beta_j k_j k_jᵀ) S + beta_j k_j v_jᵀ` for each key of a token in turn, then `o_t = q_t S_t`.

    The transition of a token is a product of `factors` matrices I - beta k kᵀ (arXiv 2502.10297): with betas
    up to 2, whose eigenvalues reach -1 (arXiv 2411.12537), two factors make any rotation of a plane. One
    factor is delta. In the paper all keys, values and betas of a token are learned: those before the last,
    which is k and v, are `further_keys` and `further_values`, side by side in (batch, heads, tokens, (factors
    - 1) · width or features), and `beta` is (batch, heads, tokens, factors). If they are not given, factor j
    before the last has the key with its channels rolled by j and the value 0, so that it only removes, and
    every beta is the parameter. The forget gate of the paper's gated form is left out.

    With a beta of 2 writes are reflections, which keep lengths: rounding errors never fade, and add up like
    the root of the number of writes.

    >>> from separatrix.mechanisms import mechanism_named
    >>> eye, both = torch.eye(2)[None, None], torch.ones(1, 1, 2, 2)
    >>> mechanism_named("deltaproduct")(both, eye, eye, causal=True)[0, 0].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    name = "deltaproduct"
    formula = "S <- (I - beta k_j k_j^T) S + beta k_j v_j^T for each key of the token, then o_t = q_t S_t"
    source = "[rec] arXiv 2502.10297, with further keys and betas that are not learned"
    extras = (FURTHER_KEYS, FURTHER_VALUES, FACTOR_BETAS)
    run = 64
    factors: int = natural(2, at_least=1)
    """The number of writes per token."""
    beta: Fraction = exact(1, above=0, at_most=2)
    """The strength of a write."""
    unit_keys: bool = flag(True)
    """Whether keys are scaled to length 1."""

    def sizes(self, q: Queries, k: Keys, v: Values) -> TokenSizes:
        return replace(super().sizes(q, k, v), rank=self.factors)

    def default_further_keys(self, k: Keys) -> Float[Tensor, "batch heads keys further"]:
        """Return the keys of the factors before the last, side by side, of a call that does not give them."""
        return torch.cat([k[..., :0], *(k.roll(j, -1) for j in range(self.factors - 1, 0, -1))], dim=-1)

    def default_further_values(self, v: Values) -> Float[Tensor, "batch heads keys further"]:
        """Return zeros, the values of the factors before the last, of a call that does not give them."""
        return v.new_zeros(*v.shape[:-1], (self.factors - 1) * v.shape[-1])

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        """Apply the delta rule to all writes in turn, and read after the last of each token."""
        writes = (x.flatten(-3, -2) for x in self._writes(k, v, extras))
        out = delta_loop(q.repeat_interleave(self.factors, dim=-2), *writes)
        return out[..., self.factors - 1 :: self.factors, :]

    @step_method
    def step(self, state: State, q_t: Query, k_t: Key, v_t: Value, **extras_t: Any) -> tuple[State, Output]:
        keys, values, betas = (x.unbind(-2) for x in self._writes(k_t, v_t, extras_t))
        for key, value, beta in zip(keys, values, betas, strict=True):
            state = (state[0] + outer(key, beta * (value - read(state[0], key))),)
        return state, read(state[0], q_t)

    @advance_method
    def advance(self, state: State, q: Queries, k: Keys, v: Values, **extras: Any) -> tuple[State, Attended]:
        """Solve the triangular system of delta for the writes of a few tokens at a time."""
        now, out = state[0], []
        # Writes of one system magnify rounding errors, see `DeltaRule.longest_run`.
        length = max(1, MAX_REFLECTIONS // self.factors)
        future = torch.ones(length, length, dtype=torch.bool, device=k.device).triu(1)
        future = future.repeat_interleave(self.factors, dim=-1)
        parts = (torch.split(x, length, -3) for x in self._writes(k, v, extras))
        for part_q, *part in zip(torch.split(q, length, -2), *parts, strict=True):
            keys, values, betas = (x.flatten(-3, -2) for x in part)
            errors = solve_writes(keys @ keys.mT, values - keys @ now, betas)
            scores = part_q @ keys.mT
            scores = scores.masked_fill(future[: scores.shape[-2], : scores.shape[-1]], 0)
            out.append(part_q @ now + scores @ errors)
            now = now + keys.mT @ errors
        return (now,), torch.cat(out, dim=-2)

    def _writes(self, k: Tensor, v: Tensor, extras: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Return keys, values and betas of all writes, (…, tokens, factors, width, features or 1)."""
        keys, values = (
            torch.cat([further.to(x).reshape(*x.shape[:-1], self.factors - 1, x.shape[-1]), x[..., None, :]], dim=-2)
            for further, x in ((extras["further_keys"], k), (extras["further_values"], v))
        )
        return unit(keys) if self.unit_keys else keys, values, extras["beta"].to(v)[..., None]
