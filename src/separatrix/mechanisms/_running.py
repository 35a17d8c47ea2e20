"""Running sums of outer products, `S_t = S_{t-1} + k_t v_tᵀ`, read by every token: chunks as one batch."""

from __future__ import annotations

from itertools import accumulate

from separatrix.tensors import Float, Tensor, functional, torch

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
    *summed, sums = accumulate((k.mT @ v).unbind(-3), initial=sums)
    scores = (q @ k.mT if scores is None else scores).tril_()
    read = (q @ torch.stack(summed, dim=-3)).add_(scores @ v)
    return sums, read.flatten(-3, -2)[..., :length, :]


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
