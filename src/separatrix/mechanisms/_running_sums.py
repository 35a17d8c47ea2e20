"""Running sums of outer products, `S_t = S_{t-1} + k_t v_tᵀ`, that every token reads: chunks as one batch."""

from __future__ import annotations

import math
from functools import cache
from itertools import accumulate
from typing import Any

from separatrix.core.tensors import Float, Tensor, functional, torch
from separatrix.mechanisms._methods import full_precision
from separatrix.mechanisms._recompute import is_recorded, is_transformed

MAX_CACHED_NUMBERS = 1 << 20
"""Numbers that are computed with at once: about as many as the cache of a core holds."""

Sums = Float[Tensor, "batch heads width features"]


def read_running_sums(
    sums: Sums,
    q: Float[Tensor, "batch heads tokens width"],
    k: Float[Tensor, "batch heads tokens width"],
    v: Float[Tensor, "batch heads tokens features"],
    chunk: int,
    scores: Float[Tensor, "batch heads chunks chunk chunk"] | None = None,
) -> tuple[Sums, Float[Tensor, "batch heads tokens features"]]:
    """Return the sums after the last token, and the output `q_t S_t` of each token.

    Tokens of one chunk read each other by their scores, `q kᵀ` unless they are given, and earlier chunks
    through the sums. With a column of ones in v, the last column of the output is the sum of the scores.

    >>> x, zero = torch.ones(1, 1, 3, 1), torch.zeros(1, 1, 1, 1)
    >>> read_running_sums(zero, x, x, x, chunk=2)[1].flatten().tolist()
    [1.0, 2.0, 3.0]
    """
    length = q.shape[-2]
    q, k, v = (split_chunks(x, chunk) for x in (q, k, v))
    if scores is not None or is_transformed():
        sums, out = _read_chunks(sums, q, k, v, scores)
    elif is_recorded(sums, q, k, v):
        sums, out = _read_function().apply(sums, q, k, v)
    else:
        sums, out = _read_groups(sums, q, k, v)
    return sums, out.flatten(-3, -2)[..., :length, :]


def append_ones(v: Float[Tensor, "*tokens features"]) -> Float[Tensor, "*tokens columns"]:
    """Append a column of ones to the values."""
    return functional.pad(v, (0, 1), value=1.0)


def tokens_in_cache(heads: int, width: int, features: int, chunk: int) -> int:
    """Return how many tokens, a multiple of `chunk`, have sums and scores that fit into the cache.

    `heads` counts those of all batch elements.
    """
    return chunk * max(1, MAX_CACHED_NUMBERS // max(1, 4 * heads * (width * features + chunk * chunk)))


def split_chunks(
    x: Float[Tensor, "batch heads tokens width"], chunk: int
) -> Float[Tensor, "batch heads chunks chunk width"]:
    """Split tokens into chunks, the last one filled up with zeros; fewer tokens make one shorter chunk."""
    chunk = min(chunk, x.shape[-2])
    over = -x.shape[-2] % chunk
    return (functional.pad(x, (0, 0, 0, over)) if over else x).reshape(*x.shape[:-2], -1, chunk, x.shape[-1])


def add_product(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Return `x + a @ b`, by one operation if the leading dimensions agree."""
    leading = x.shape[:-2]
    if not a.shape[:-2] == leading == b.shape[:-2]:
        return x + a @ b
    # Batched gradients know `reshape` but not `flatten`; -1 is ambiguous for an empty batch.
    flat = (factor.reshape(math.prod(leading), *factor.shape[-2:]) for factor in (x, a, b))
    return torch.baddbmm(*flat).reshape(x.shape)


def _groups(q: Tensor, v: Tensor) -> list[slice]:
    """Group chunks so that sums and scores fit into the cache, with no more scores than numbers in q."""
    batch, heads, chunks, chunk, width = q.shape
    fitting = tokens_in_cache(batch * heads, width, v.shape[-1], chunk) // chunk
    step = max(1, min(fitting, chunks * width // chunk))
    return [slice(start, start + step) for start in range(0, chunks, step)]


def _read_groups(sums: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Apply `_read_chunks` to one group of chunks after the other."""
    groups = _groups(q, v)
    if len(groups) < 2:
        return _read_chunks(sums, q, k, v)
    out = v.new_empty(*q.shape[:-1], v.shape[-1])
    for group in groups:
        sums, out[:, :, group] = _read_chunks(sums, *(x[:, :, group] for x in (q, k, v)))
    return sums, out


def _read_chunks(sums: Tensor, q: Tensor, k: Tensor, v: Tensor, scores: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the sums after the last chunk, and the outputs of all tokens."""
    before, sums = _sums_before(sums, k, v)
    # In place: nothing else reads these scores, whether computed here or given.
    scores = (q @ k.mT if scores is None else scores).tril_()
    return sums, add_product(q @ before, scores, v)


def _sums_before(sums: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sums before each chunk, and after the last."""
    *before, after = accumulate((k.mT @ v).unbind(-3), initial=sums)
    return _stack(before), after


def _sums_after(sums: Tensor, q: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of the sums before the first chunk, and of those after each chunk."""
    *after, before = accumulate((q.mT @ slope).unbind(-3)[::-1], initial=sums)
    return before, _stack(after[::-1])


def _stack(sums: list[Tensor]) -> Tensor:
    """Stack the sums of several chunks, without a copy if there is only one."""
    return sums[0][..., None, :, :] if len(sums) == 1 else torch.stack(sums, dim=-3)


@cache
def _read_function() -> Any:
    """Return `_read_chunks` with gradients by formula, defined when torch is loaded.

    Autograd would store scores and sums; here only the inputs are stored, and backward computes these again.
    """

    class ReadChunks(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, sums: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(sums, q, k, v)
            return _read_groups(sums, q, k, v)

        @staticmethod
        def backward(ctx: Any, *slopes: Tensor | None) -> tuple[Tensor, ...]:
            sums, q, k, v = ctx.saved_tensors
            after, slope = slopes
            after = torch.zeros_like(sums) if after is None else after
            slope = v.new_zeros(*q.shape[:-1], v.shape[-1]) if slope is None else slope
            with full_precision(q):
                differentiate = _gradients if torch.is_grad_enabled() else _gradients_by_groups
                return differentiate(sums, after, slope, q, k, v)

    return ReadChunks


def _gradients(
    sums: Tensor, after: Tensor, slope: Tensor, q: Tensor, k: Tensor, v: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of sums, q, k and v from those of the final sums and of the outputs."""
    before, _ = _sums_before(sums, k, v)
    first, later = _sums_after(after, q, slope)
    weights, scores = (slope @ v.mT).tril_(), (q @ k.mT).tril_()
    return (
        first,
        add_product(slope @ before.mT, weights, k),
        add_product(v @ later.mT, weights.mT, q),
        add_product(k @ later, scores.mT, slope),
    )


def _gradients_by_groups(
    sums: Tensor, after: Tensor, slope: Tensor, q: Tensor, k: Tensor, v: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Apply `_gradients` to one group of chunks after the other, from the last to the first."""
    groups = _groups(q, v)
    if len(groups) < 2:
        return _gradients(sums, after, slope, q, k, v)
    # Only the sums before each group are stored; those before each chunk are computed again.
    starts = [sums]
    for group in groups[:-1]:
        starts.append(starts[-1] + (k[:, :, group].mT @ v[:, :, group]).sum(-3))
    dq, dk, dv = (torch.empty_like(x, memory_format=torch.contiguous_format) for x in (q, k, v))
    for group, start in zip(groups[::-1], starts[::-1], strict=True):
        parts = (x[:, :, group] for x in (slope, q, k, v))
        after, dq[:, :, group], dk[:, :, group], dv[:, :, group] = _gradients(start, after, *parts)
    return after, dq, dk, dv
