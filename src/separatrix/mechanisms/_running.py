"""Running sums of outer products, `S_t = S_{t-1} + k_t v_tᵀ`, read by every token: chunks as one batch."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from separatrix.tensors import Float, Tensor, functional, torch

CACHED = 1 << 20
"""Numbers held at once where a core works fastest on what lies near it."""

Sums = Float[Tensor, "batch heads width features"]
Totals = Float[Tensor, "batch heads width 1"]


@dataclass(frozen=True)
class Running:
    """What the tokens read, and the sums after the last of them."""

    read: Float[Tensor, "batch heads tokens features"]
    """`q_t S_t`."""
    total: Float[Tensor, "batch heads tokens 1"] | None
    """`<q_t, k_1 + ... + k_t>`, if totals are kept."""
    sums: Sums
    totals: Totals | None


def running(
    sums: Sums,
    totals: Totals | None,
    q: Float[Tensor, "batch heads tokens width"],
    k: Float[Tensor, "batch heads tokens width"],
    v: Float[Tensor, "batch heads tokens features"],
    chunk: int,
) -> Running:
    """Tokens of one chunk hear each other by their scores, and what came before through the sums.

    >>> x, zero = torch.ones(1, 1, 3, 1), torch.zeros(1, 1, 1, 1)
    >>> running(zero, zero, x, x, x, chunk=2).read.flatten().tolist()
    [1.0, 2.0, 3.0]
    """
    length = q.shape[-2]
    q, k, v = (_parts(x, min(chunk, length)) for x in (q, k, v))
    *summed, sums = accumulate((k.mT @ v).unbind(-3), initial=sums)
    scores = (q @ k.mT).tril_()
    read = (q @ torch.stack(summed, dim=-3)).add_(scores @ v).flatten(-3, -2)[..., :length, :]
    if totals is None:
        return Running(read, None, sums, None)
    *counted, totals = accumulate(k.sum(-2)[..., None].unbind(-3), initial=totals)
    total = (q @ torch.stack(counted, dim=-3)).add_(scores.sum(-1, keepdim=True))
    return Running(read, total.flatten(-3, -2)[..., :length, :], sums, totals)


def tokens_at_once(sums: Sums, chunk: int) -> int:
    """How many tokens make a batch whose sums and scores lie near a core."""
    heads = sums.shape[0] * sums.shape[1]
    return chunk * max(1, CACHED // (sums.numel() + heads * chunk * chunk))


def _parts(
    x: Float[Tensor, "batch heads tokens width"], chunk: int
) -> Float[Tensor, "batch heads parts {chunk} width"]:
    over = -x.shape[-2] % chunk
    return (functional.pad(x, (0, 0, 0, over)) if over else x).reshape(*x.shape[:-2], -1, chunk, x.shape[-1])
