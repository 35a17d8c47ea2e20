"""DeltaProduct: several writes of the delta rule per token."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

from separatrix.core.parameters import Constraint, Exact, Flag, Natural, Parameters
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms._base import Attended, Counts, Keys, Queries, Values, form
from separatrix.mechanisms._limits import least
from separatrix.mechanisms._request import one_token, run_of_tokens
from separatrix.mechanisms.extras import FACTOR_BETAS, FURTHER_KEYS, FURTHER_VALUES, Sizes
from separatrix.mechanisms.recurrent._base import (
    Key,
    Output,
    Query,
    RecurrentMechanism,
    State,
    Value,
    check_lengths,
    memory,
    outer,
    read,
)
from separatrix.mechanisms.recurrent.delta import REFLECTED, DeltaParameters, solved, unit


class DeltaProductParameters(Parameters):
    """How many writes there are per token, how strong they are, and whether keys are scaled to length 1."""

    owner = "deltaproduct"
    factors: Natural = 2
    beta: Exact = Fraction(1)
    unit_keys: Flag = True
    constraints: ClassVar[tuple[Constraint, ...]] = (least("factors", 1), *DeltaParameters.constraints)


class DeltaProduct(RecurrentMechanism):
    """`S ← (I - beta_j k_j k_jᵀ) S + beta_j k_j v_jᵀ` for each key of a token in turn, then `o_t = q_t S_t`.

    The transition of a token is a product of `factors` matrices I - beta k kᵀ (arXiv 2502.10297): with betas
    up to 2, whose eigenvalues reach -1 (arXiv 2411.12537), two factors make any rotation of a plane. One
    factor is delta. In the paper all keys, values and betas of a token are learned: those before the last,
    which is k and v, are `further_keys` and `further_values`, side by side in (batch, heads, tokens,
    (factors - 1) · width or features), and `beta` is (batch, heads, tokens, factors). Where they are not
    given, factor j before the last has the key with its channels moved up by j and the value 0, so that it
    only takes back, and every beta is the parameter. The forget gate of the paper's gated form is left out.

    With a beta of 2 writes are reflections, which keep lengths: what was rounded never fades, and adds up
    like the root of the number of writes.

    >>> from separatrix.mechanisms import mechanism_named
    >>> eye, both = torch.eye(2)[None, None], torch.ones(1, 1, 2, 2)
    >>> mechanism_named("deltaproduct")(both, eye, eye, causal=True)[0, 0].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    name = "deltaproduct"
    formula = "S <- (I - beta k_j k_j^T) S + beta k_j v_j^T for each key of the token, then o_t = q_t S_t"
    source = "[rec] arXiv 2502.10297, with further keys and betas that are not learned"
    schema = DeltaProductParameters
    parameters: DeltaProductParameters
    extras = (FURTHER_KEYS, FURTHER_VALUES, FACTOR_BETAS)
    run = 64

    def sizes(self, q: Queries, k: Keys, v: Values) -> Sizes:
        return replace(super().sizes(q, k, v), rank=self.parameters.factors)

    def further_keys(self, k: Keys) -> Float[Tensor, "batch heads keys further"]:
        """The keys of the factors before the last, where none are given, side by side."""
        moved = [k.roll(j, -1) for j in range(self.parameters.factors - 1, 0, -1)]
        return torch.cat([k[..., :0], *moved], dim=-1)

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        check_lengths(self, q, k)
        keys, values, betas = self._factors(k, v, more)
        identity = torch.eye(k.shape[-1], dtype=k.dtype, device=k.device)
        state, out = memory(q, v), [v[..., :0, :]]
        for t in range(k.shape[-2]):
            for j in range(self.parameters.factors):
                key, value = keys[..., t, j, :, None], values[..., t, j, :, None]
                beta = betas[..., t, j, :, None]
                state = (identity - beta * key @ key.mT) @ state + beta * key @ value.mT
            out.append(q[..., t, None, :] @ state)
        return torch.cat(out, dim=-2)

    @one_token
    def step(self, state: State, q_t: Query, k_t: Key, v_t: Value, **extras_t: Any) -> tuple[State, Output]:
        keys, values, betas = self._factors(k_t, v_t, extras_t)
        for j in range(self.parameters.factors):
            key, value, beta = keys[..., j, :], values[..., j, :], betas[..., j, :]
            state = (state[0] + outer(key, beta * (value - read(state[0], key))),)
        return state, read(state[0], q_t)

    @run_of_tokens
    def advance(self, state: State, q: Queries, k: Keys, v: Values, **extras: Any) -> tuple[State, Attended]:
        """The triangular system of delta over a few tokens' writes at a time."""
        factors, now, out = self.parameters.factors, state[0], []
        whole = self._factors(k, v, extras)
        length = max(1, REFLECTED // factors)
        future = torch.ones(length, length, dtype=torch.bool, device=k.device).triu(1)
        future = future.repeat_interleave(factors, dim=-1)
        for start in range(0, k.shape[-2], length):
            here = slice(start, start + length)
            keys, values, betas = (x[..., here, :, :].flatten(-3, -2) for x in whole)
            errors = solved(keys @ keys.mT, values - keys @ now, betas)
            heard = q[..., here, :] @ keys.mT
            heard = heard.masked_fill(future[: heard.shape[-2], : heard.shape[-1]], 0)
            out.append(q[..., here, :] @ now + heard @ errors)
            now = now + keys.mT @ errors
        return (now,), torch.cat(out, dim=-2)

    def _factors(self, k: Tensor, v: Tensor, extras: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Keys, values and betas of all writes, (…, tokens, factors, width, features or 1)."""
        further = self.parameters.factors - 1
        keys, values = (
            torch.cat(
                [more.to(own).reshape(*own.shape[:-1], further, own.shape[-1]), own[..., None, :]], dim=-2
            )
            for more, own in ((extras["further_keys"], k), (extras["further_values"], v))
        )
        return unit(keys) if self.parameters.unit_keys else keys, values, extras["beta"].to(v)[..., None]
