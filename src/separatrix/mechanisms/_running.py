"""Running sums of outer products, `S_t = S_{t-1} + k_t v_tᵀ`, read by every token: chunks as one batch."""

from __future__ import annotations

import math
from functools import cache
from itertools import accumulate
from typing import Any

from separatrix.core.tensors import Float, Tensor, functional, torch
from separatrix.mechanisms._recomputed import is_transformed
from separatrix.mechanisms._request import full_precision

CACHED = 1 << 20
"""Numbers held at once where a core works fastest on what lies near it."""

Sums = Float[Tensor, "batch heads width features"]


def running(
    sums: Sums,
    q: Float[Tensor, "batch heads tokens width"],
    k: Float[Tensor, "batch heads tokens width"],
    v: Float[Tensor, "batch heads tokens features"],
    chunk: int,
    scores: Float[Tensor, "batch heads parts chunk chunk"] | None = None,
) -> tuple[Sums, Float[Tensor, "batch heads tokens features"]]:
    """The sums after the last token, and what each token reads, `q_t S_t`.

    Tokens of one chunk hear each other by their scores, `q kᵀ` unless they are given, and what came before
    through the sums. With a column of ones beside v, tokens also read what their scores add up to.

    >>> x, zero = torch.ones(1, 1, 3, 1), torch.zeros(1, 1, 1, 1)
    >>> running(zero, x, x, x, chunk=2)[1].flatten().tolist()
    [1.0, 2.0, 3.0]
    """
    length = q.shape[-2]
    q, k, v = (parts(x, chunk) for x in (q, k, v))
    if scores is not None or is_transformed():
        sums, read = _read_chunks(sums, q, k, v, scores)
    elif torch.is_grad_enabled() and any(x.requires_grad for x in (sums, q, k, v)):
        sums, read = _function().apply(sums, q, k, v)
    else:
        sums, read = _read_groups(sums, q, k, v)
    return sums, read.flatten(-3, -2)[..., :length, :]


def _groups(q: Tensor, v: Tensor) -> list[slice]:
    """Chunks in groups whose sums and scores lie near a core; no more scores than numbers in q."""
    batch, heads, chunks, chunk, width = q.shape
    near = tokens_at_once(batch * heads, width, v.shape[-1], chunk) // chunk
    step = max(1, min(near, chunks * width // chunk))
    return [slice(start, start + step) for start in range(0, chunks, step)]


def _read_groups(sums: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """`_read_chunks`, one group of chunks after the other."""
    groups = _groups(q, v)
    if len(groups) < 2:
        return _read_chunks(sums, q, k, v)
    read = v.new_empty(*q.shape[:-1], v.shape[-1])
    for group in groups:
        sums, read[:, :, group] = _read_chunks(sums, *(x[:, :, group] for x in (q, k, v)))
    return sums, read


def _read_chunks(
    sums: Tensor, q: Tensor, k: Tensor, v: Tensor, scores: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The sums after the last chunk, and what the tokens of each chunk read."""
    before, sums = _sums_before(sums, k, v)
    scores = (q @ k.mT if scores is None else scores).tril_()
    return sums, add_product(q @ before, scores, v)


def _sums_before(sums: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The sums before each chunk, and after the last."""
    *before, after = accumulate((k.mT @ v).unbind(-3), initial=sums)
    return _stacked(before), after


def _sums_after(sums: Tensor, q: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of the sums before the first chunk, and after each: what later chunks read of them."""
    *after, before = accumulate((q.mT @ slope).unbind(-3)[::-1], initial=sums)
    return before, _stacked(after[::-1])


def _stacked(sums: list[Tensor]) -> Tensor:
    """Sums of several chunks as one tensor, without a copy if there is only one."""
    return sums[0][..., None, :, :] if len(sums) == 1 else torch.stack(sums, dim=-3)


def add_product(x: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """`x + one @ other`, in one operation where the leading dimensions are the same."""
    leading = x.shape[:-2]
    if not one.shape[:-2] == leading == other.shape[:-2]:
        return x + one @ other
    # Batched gradients know `reshape` but not `flatten`; -1 is ambiguous for an empty batch.
    flat = (factor.reshape(math.prod(leading), *factor.shape[-2:]) for factor in (x, one, other))
    return torch.baddbmm(*flat).reshape(x.shape)


@cache
def _function() -> Any:
    """`_read_chunks` with the gradients of its formula, made when torch is there.

    Autograd would keep scores and sums; here only the inputs are kept, and backward computes these again.
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
                if torch.is_grad_enabled():
                    return _gradients(sums, after, slope, q, k, v)
                return _gradients_by_groups(sums, after, slope, q, k, v)

    return ReadChunks


def with_one(v: Float[Tensor, "*tokens features"]) -> Float[Tensor, "*tokens columns"]:
    """Values with a column of ones beside them."""
    return functional.pad(v, (0, 1), value=1.0)


def tokens_at_once(heads: int, width: int, features: int, chunk: int) -> int:
    """How many tokens make a batch whose sums and scores lie near a core, for the heads of all elements."""
    return chunk * max(1, CACHED // max(1, 4 * heads * (width * features + chunk * chunk)))


def parts(
    x: Float[Tensor, "batch heads tokens width"], chunk: int
) -> Float[Tensor, "batch heads parts chunk width"]:
    """Tokens in chunks, or in one that is shorter, the last filled up with zeros."""
    chunk = min(chunk, x.shape[-2])
    over = -x.shape[-2] % chunk
    return (functional.pad(x, (0, 0, 0, over)) if over else x).reshape(*x.shape[:-2], -1, chunk, x.shape[-1])


def _gradients(
    sums: Tensor, after: Tensor, slope: Tensor, q: Tensor, k: Tensor, v: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of sums, q, k and v, from those of the sums after the last chunk and of what was read."""
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
    """The same, one group of chunks after the other from the last."""
    groups = _groups(q, v)
    if len(groups) < 2:
        return _gradients(sums, after, slope, q, k, v)
    starts = [sums]
    for group in groups[:-1]:
        starts.append(starts[-1] + (k[:, :, group].mT @ v[:, :, group]).sum(-3))
    dq, dk, dv = (torch.empty_like(x, memory_format=torch.contiguous_format) for x in (q, k, v))
    for group, start in zip(groups[::-1], starts[::-1], strict=True):
        some = (x[:, :, group] for x in (slope, q, k, v))
        after, dq[:, :, group], dk[:, :, group], dv[:, :, group] = _gradients(start, after, *some)
    return after, dq, dk, dv
