"""The delta rule: a write first takes back what the state says about its key."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

from separatrix.mechanisms._base import Attended, Counts, Keys, Queries, Values, form
from separatrix.mechanisms._request import one_token, run_of_tokens
from separatrix.mechanisms._running import add_product
from separatrix.mechanisms.extras import BETA
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
from separatrix.numbers import format_exact
from separatrix.parameters import Constraint, Exact, Flag, Parameters
from separatrix.tensors import Float, Tensor, torch

SHORTEST = 1e-12
"""A key that is shorter has no direction."""

REFLECTED = 16
"""Writes solved for at once where one is stronger than 1: more of them magnify rounding."""

Betas = Float[Tensor, "batch heads keys 1"]


class DeltaParameters(Parameters):
    """The strength of a write, and whether keys are scaled to length 1."""

    owner = "delta"
    beta: Exact = Fraction(1)
    unit_keys: Flag = True
    constraints: ClassVar[tuple[Constraint, ...]] = (
        Constraint(
            ("beta",),
            lambda p: 0 < p.beta <= 2,
            lambda p: f"beta={format_exact(p.beta)} is out of range; beta must be above 0, up to 2",
        ),
    )


class Delta(RecurrentMechanism):
    """`S_t = (I - beta_t k_t k_tᵀ) S_{t-1} + beta_t k_t v_tᵀ`, `o_t = q_t S_t` [rec].

    Keys are scaled to length 1 (a zero key stays zero) unless unit_keys=no. The state is stable while
    `beta |k|²` is at most 2: longer keys make it grow without bound, as the formula says. In the paper
    beta is learned per token: `beta` of shape (batch, heads, tokens, 1), between 0 and 2; where none is given
    it is the parameter. The paper scales queries to length 1 as well, which is left to whoever makes them: it
    scales the output alone.

    A write multiplies what the state says about its key by 1 - beta: up to 1 it fades, at 1 it is replaced.
    Above 1 this eigenvalue is negative (arXiv 2411.12537), and beta = 2 with a value of 0 flips the sign of
    what is held, so that a state of fixed size can count modulo 2 at any length, as no beta in [0, 1] can.
    Writes of a run then cancel each other, and rounding grows with their number: runs with a beta above 1
    are cut to 16 tokens.

    >>> from separatrix.mechanisms import mechanism_named
    >>> one = torch.ones(1, 1, 2, 1)
    >>> v = torch.tensor([5.0, 7.0]).reshape(1, 1, 2, 1)
    >>> mechanism_named("delta")(one, one, v, causal=True).flatten().tolist()
    [5.0, 7.0]

    The parity of the ones so far, as a sign: a zero has beta 0 and leaves the state alone, a one has beta 2.

    >>> bits = torch.tensor([1.0, 0, 1, 1, 1]).reshape(1, 1, 5, 1)
    >>> one, start = torch.ones(1, 1, 6, 1), torch.tensor([1.0, 0, 0, 0, 0, 0]).reshape(1, 1, 6, 1)
    >>> beta = torch.cat([one[..., :1, :], 2 * bits], dim=-2)
    >>> mechanism_named("delta")(one, one, start, causal=True, beta=beta).flatten().tolist()
    [1.0, -1.0, -1.0, 1.0, -1.0, 1.0]
    """

    name = "delta"
    formula = "S_t = (I - beta k_t k_t^T) S_{t-1} + beta k_t v_t^T, o_t = q_t S_t"
    source = "[rec] arXiv 2406.06484, with a beta that is not learned, and queries of any length"
    schema = DeltaParameters
    parameters: DeltaParameters

    extras = (BETA,)

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        check_lengths(self, q, k)
        return delta_definition(q, self._keys(k), v, more["beta"])

    @one_token
    def step(self, state: State, q_t: Query, k_t: Key, v_t: Value, **extras_t: Any) -> tuple[State, Output]:
        k_t = self._keys(k_t)
        error = extras_t["beta"].to(v_t) * (v_t - read(state[0], k_t))
        state = (state[0] + outer(k_t, error),)
        return state, read(state[0], q_t)

    @run_of_tokens
    def advance(self, state: State, q: Queries, k: Keys, v: Values, **extras: Any) -> tuple[State, Attended]:
        k = self._keys(k)
        errors = solved(k @ k.mT, v - k @ state[0], extras["beta"])
        after = add_product(state[0], k.mT, errors)
        return (after,), add_product(q @ state[0], (q @ k.mT).tril_(), errors)

    def longest_run(self, extras: Mapping[str, Tensor]) -> int | None:
        return reflected_run(self.parameters.beta, extras)

    def _keys(self, k: Tensor) -> Tensor:
        return unit(k) if self.parameters.unit_keys else k


def reflected_run(beta: Fraction, extras: Mapping[str, Tensor]) -> int | None:
    """The longest run for these betas, or for the parameter where none are given.

    At 2 a write turns the sign of what the state says about its key, so that the writes u_j of keys alike
    have alternating signs: of `sum_j <k_i,k_j> u_j` each of the n terms is as large as the sum, and none of
    their rounding fades. Read through the state, only the sum is rounded.
    """
    given = extras.get("beta")
    stronger = beta > 1 if given is None else bool((given.detach() > 1).any())
    return REFLECTED if stronger else None


def unit(k: Float[Tensor, "*tokens width"]) -> Float[Tensor, "*tokens width"]:
    """Keys scaled to length 1. One without a direction stays as it is, and so do its gradients.

    >>> unit(torch.tensor([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    square = k.square().sum(-1, keepdim=True)
    return k / square.where(square > SHORTEST**2, 1).sqrt()


def delta_definition(
    q: Queries,
    k: Keys,
    v: Values,
    beta: Betas,
    gates: Float[Tensor, "batch heads keys 1"] | None = None,
) -> Attended:
    """`S_t = gate_t (I - beta_t k_t k_tᵀ) S_{t-1} + beta_t k_t v_tᵀ`, `o_t = q_t S_t`, literally."""
    identity = torch.eye(k.shape[-1], dtype=k.dtype, device=k.device)
    state, out, beta = memory(q, v), [], beta.to(v)
    for t in range(k.shape[-2]):
        key, value, strength = k[..., t, :, None], v[..., t, :, None], beta[..., t, :, None]
        state = (identity - strength * key @ key.mT) @ state
        if gates is not None:
            state = gates[..., t, :, None] * state
        state = state + strength * key @ value.mT
        out.append(q[..., t, None, :] @ state)
    return torch.cat(out, dim=-2) if out else v


def solved(
    overlaps: Float[Tensor, "batch heads keys keys"], targets: Values, beta: Betas
) -> Float[Tensor, "batch heads keys features"]:
    """What each token of a chunk writes: `u_i = beta_i (target_i - sum_{j<i} overlap_ij u_j)`.

    One triangular system, `(I + beta tril(overlaps, -1)) u = beta targets`: the UT transform of the
    paper, applied to the right-hand side instead of inverted.
    """
    beta = beta.to(targets)
    # Of the system only what is below the diagonal is read, here and by its derivative.
    system = beta * overlaps
    written: Tensor = torch.linalg.solve_triangular(system, beta * targets, upper=False, unitriangular=True)
    return written
