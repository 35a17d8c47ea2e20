"""The delta rule: a write first takes back what the state says about its key."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

from separatrix.core.numbers import format_exact
from separatrix.core.parameters import Constraint, Exact, Flag, Parameters
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms._base import Attended, Counts, Keys, Queries, Values, form
from separatrix.mechanisms._recomputed import is_transformed
from separatrix.mechanisms._request import full_precision, one_token, run_of_tokens
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
    keeps_inputs_only = True

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
        inputs = with_equal_heads(state[0], q, k, v, extras["beta"].to(v))
        recording = torch.is_grad_enabled() and any(x.requires_grad for x in inputs)
        if recording and not is_transformed():
            after, out = delta_run().apply(self.parameters.unit_keys, *inputs)
        else:
            after, out, _ = advance_run(self.parameters.unit_keys, *inputs)
        return (after,), out

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


def with_equal_heads(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Expand what is shared by several batch elements or heads; autograd adds up its gradients."""
    shapes = [x.shape[:-2] for x in tensors]
    leading = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
    return tuple(x.expand(*leading, *x.shape[-2:]) for x in tensors)


def advance_run(
    unit_keys: bool,
    state: Float[Tensor, "batch heads width features"],
    q: Queries,
    k: Keys,
    v: Values,
    beta: Betas,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the state after a run of tokens, their outputs, and what each of them wrote."""
    k = unit(k) if unit_keys else k
    written = solved(k @ k.mT, v - k @ state, beta)
    out = add_product(q @ state, (q @ k.mT).tril_(), written)
    return add_product(state, k.mT, written), out, written


@cache
def delta_run() -> Any:
    """`advance_run` with the gradients of its formula; the class is made once torch is loaded.

    Autograd would keep every matrix of scores. Here only the inputs and the writes are kept, and backward
    takes half the products that computing the run again would take.
    """

    class DeltaRun(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, unit_keys: bool, *inputs: Tensor) -> tuple[Tensor, Tensor]:
            after, out, written = advance_run(unit_keys, *inputs)
            ctx.unit_keys = unit_keys
            ctx.save_for_backward(*inputs, written)
            return after, out

        @staticmethod
        def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
            *inputs, written = ctx.saved_tensors
            _, *needed = ctx.needs_input_grad
            with full_precision(written):
                if not torch.is_grad_enabled():
                    return None, *run_gradients(ctx.unit_keys, needed[-1], written, *slopes, *inputs)
                # For derivatives of second order the gradients need a graph of their own.
                views = [x.view_as(x) for x in inputs]
                outputs = advance_run(ctx.unit_keys, *views)[:2]
                # The state after the run does not depend on q, nor the outputs on inputs without gradients.
                pairs = [
                    (out, slope) for out, slope in zip(outputs, slopes, strict=True) if out.requires_grad
                ]
                recorded, along = zip(*pairs, strict=True)
                wanted = [x for x, need in zip(views, needed, strict=True) if need]
                gradients = iter(
                    torch.autograd.grad(recorded, wanted, along, create_graph=True, allow_unused=True)
                )
                return None, *(next(gradients) if need else None for need in needed)

    return DeltaRun


def run_gradients(
    unit_keys: bool,
    beta_needed: bool,
    written: Tensor,
    d_after: Tensor,
    d_out: Tensor,
    state: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
) -> tuple[Tensor | None, ...]:
    """The gradients of `advance_run` for state, q, k, v and, if it is needed, beta.

    With writes u, scores `A = tril(q kᵀ)` and overlaps `G = k kᵀ`, the run is `M u = beta (v - k S)`,
    `M = I + tril(beta G, -1)`, `out = q S + A u` and `after = S + kᵀ u`. Its adjoint is one triangular system
    with the transpose of M.
    """
    keys = unit(k) if unit_keys else k
    overlaps, scores = keys @ keys.mT, (q @ keys.mT).tril_()
    d_written = add_product(keys @ d_after, scores.mT, d_out)
    adjoint = torch.linalg.solve_triangular((beta * overlaps).mT, d_written, upper=True, unitriangular=True)
    d_v, d_scores = beta * adjoint, (d_out @ written.mT).tril_()
    d_system = (adjoint @ written.mT).tril_(-1)
    d_beta = None
    if beta_needed:
        d_beta = (adjoint * (v - keys @ state)).sum(-1, keepdim=True)
        d_beta -= (d_system * overlaps).sum(-1, keepdim=True)
    d_overlaps = beta * d_system
    d_keys = add_product(written @ d_after.mT, d_scores.mT, q)
    d_keys -= add_product(d_v @ state.mT, d_overlaps + d_overlaps.mT, keys)
    d_state = add_product(d_after, q.mT, d_out) - keys.mT @ d_v
    d_q = add_product(d_out @ state.mT, d_scores, keys)
    return d_state, d_q, unit_gradient(k, keys, d_keys) if unit_keys else d_keys, d_v, d_beta


def unit_gradient(
    k: Float[Tensor, "*tokens width"],
    keys: Float[Tensor, "*tokens width"],
    slope: Float[Tensor, "*tokens width"],
) -> Float[Tensor, "*tokens width"]:
    """The gradient of `unit`, whose results are `keys`: what turns a key without changing its length."""
    square = k.square().sum(-1, keepdim=True)
    turned = (slope - keys * (keys * slope).sum(-1, keepdim=True)) / square.sqrt()
    return turned.where(square > SHORTEST**2, slope)
