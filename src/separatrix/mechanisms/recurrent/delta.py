"""The delta rule without gates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms._methods import advance_method, full_precision
from separatrix.mechanisms._recompute import copy_inputs, differentiate, is_recorded, is_transformed
from separatrix.mechanisms._running_sums import add_product
from separatrix.mechanisms._types import Attended, Keys, Queries, Values
from separatrix.mechanisms.extras import BETA
from separatrix.mechanisms.recurrent._base import State
from separatrix.mechanisms.recurrent._delta_rule import MIN_LENGTH, Betas, DeltaRule, solve_writes, unit


class Delta(DeltaRule):
    """`S_t = (I - beta_t k_t k_tᵀ) S_{t-1} + beta_t k_t v_tᵀ`, `o_t = q_t S_t` [rec].

    Keys are scaled to length 1 (a zero key stays zero) unless unit_keys=no. The state is stable while `beta
    |k|²` is at most 2: longer keys make it grow without bound, as the formula says. In the paper beta is
    learned per token: `beta` of shape (batch, heads, tokens, 1), between 0 and 2; if it is not given, it is
    the parameter. The paper scales queries to length 1 as well, which only scales the output, and is left to
    the caller.

    A write multiplies what the state returns for its key by 1 - beta: up to 1 it fades, at 1 it is replaced.
    Above 1 this eigenvalue is negative (arXiv 2411.12537), and beta = 2 with a value of 0 flips the sign, so
    that a state of fixed size can count modulo 2 at any length, as no beta in [0, 1] can. Writes of a run
    then cancel each other, and rounding errors grow with their number: runs with a beta above 1 are cut to 16
    tokens.

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
    extras = (BETA,)
    stores_inputs_only = True

    @advance_method
    def advance(self, state: State, q: Queries, k: Keys, v: Values, **extras: Any) -> tuple[State, Attended]:
        inputs = expand_heads(state[0], q, k, v, extras["beta"].to(v))
        if is_recorded(*inputs) and not is_transformed():
            after, out = _run_function().apply(self.unit_keys, *inputs)
        else:
            after, out, _ = advance_run(self.unit_keys, *inputs)
        return (after,), out


def expand_heads(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Expand tensors shared by several batch elements or heads; autograd adds up their gradients."""
    shapes = [x.shape[:-2] for x in tensors]
    leading = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
    return tuple(x.expand(*leading, *x.shape[-2:]) for x in tensors)


def advance_run(
    unit_keys: bool, state: Float[Tensor, "batch heads width features"], q: Queries, k: Keys, v: Values, beta: Betas
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the state after a run of tokens, their outputs, and their writes."""
    k = unit(k) if unit_keys else k
    writes = solve_writes(k @ k.mT, v - k @ state, beta)
    out = add_product(q @ state, (q @ k.mT).tril_(), writes)
    return add_product(state, k.mT, writes), out, writes


@cache
def _run_function() -> Any:
    """Return `advance_run` with gradients by formula, defined when torch is loaded.

    Autograd would store every matrix of scores. Here only the inputs and the writes are stored, and backward
    takes half the products that computing the run again would take.
    """

    class DeltaRun(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, unit_keys: bool, *inputs: Tensor) -> tuple[Tensor, Tensor]:
            after, out, writes = advance_run(unit_keys, *inputs)
            ctx.unit_keys = unit_keys
            ctx.save_for_backward(*inputs, writes)
            return after, out

        @staticmethod
        def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
            *inputs, writes = ctx.saved_tensors
            _, *needs_grad = ctx.needs_input_grad
            with full_precision(writes):
                if not torch.is_grad_enabled():
                    return None, *run_gradients(ctx.unit_keys, needs_grad[-1], writes, slopes, inputs)
                # For second derivatives the gradients need a graph of their own.
                views = copy_inputs(inputs, needs_grad)
                outputs = advance_run(ctx.unit_keys, *views)[:2]  # type: ignore[arg-type]
                return None, *differentiate(outputs, slopes, views, needs_grad, create_graph=True)

    return DeltaRun


def run_gradients(
    unit_keys: bool, needs_beta: bool, writes: Tensor, slopes: Sequence[Tensor], inputs: Sequence[Tensor]
) -> tuple[Tensor | None, ...]:
    """Return the gradients of `advance_run` for state, q, k, v and, if it is needed, beta.

    With writes u, scores `A = tril(q kᵀ)` and overlaps `G = k kᵀ`, the run is `M u = beta (v - k S)`, `M = I
    + tril(beta G, -1)`, `out = q S + A u` and `after = S + kᵀ u`. Its adjoint is one triangular system with
    the transpose of M.
    """
    (d_after, d_out), (state, q, k, v, beta) = slopes, inputs
    keys = unit(k) if unit_keys else k
    overlaps, scores = keys @ keys.mT, (q @ keys.mT).tril_()
    d_writes = add_product(keys @ d_after, scores.mT, d_out)
    adjoint = torch.linalg.solve_triangular((beta * overlaps).mT, d_writes, upper=True, unitriangular=True)
    d_v, d_scores = beta * adjoint, (d_out @ writes.mT).tril_()
    d_system = (adjoint @ writes.mT).tril_(-1)
    d_beta = None
    if needs_beta:
        d_beta = (adjoint * (v - keys @ state)).sum(-1, keepdim=True)
        d_beta -= (d_system * overlaps).sum(-1, keepdim=True)
    d_overlaps = beta * d_system
    d_keys = add_product(writes @ d_after.mT, d_scores.mT, q)
    d_keys -= add_product(d_v @ state.mT, d_overlaps + d_overlaps.mT, keys)
    d_state = add_product(d_after, q.mT, d_out) - keys.mT @ d_v
    d_q = add_product(d_out @ state.mT, d_scores, keys)
    return d_state, d_q, unit_gradient(k, keys, d_keys) if unit_keys else d_keys, d_v, d_beta


def unit_gradient(
    k: Float[Tensor, "*tokens width"], keys: Float[Tensor, "*tokens width"], slope: Float[Tensor, "*tokens width"]
) -> Float[Tensor, "*tokens width"]:
    """Return the gradient of `unit`, whose results are `keys`: the part that does not change the length."""
    square = k.square().sum(-1, keepdim=True)
    # A key without a direction divides by 0, but nothing is recorded here, and `where` drops the result.
    tangent = (slope - keys * (keys * slope).sum(-1, keepdim=True)) / square.sqrt()
    return tangent.where(square > MIN_LENGTH**2, slope)
