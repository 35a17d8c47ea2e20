"""Softmax over the keys that a query sees by its place."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

from separatrix.mechanisms import _base
from separatrix.mechanisms._base import (
    Attended,
    Counts,
    Keys,
    Mechanism,
    Queries,
    Values,
    check_request,
    widened,
)
from separatrix.mechanisms.kernels._streamed import softmax_of
from separatrix.tensors import Bool, Int, Tensor, functional, torch

QueryPlaces = Int[Tensor, "queries 1"]
KeyPlaces = Int[Tensor, "#queries keys"]
Seen = Bool[Tensor, "queries keys"]

ROWS = 128
"""Queries in a block, unless a pattern has a block of its own."""


class PatternMechanism(Mechanism):
    """`f = softmax(<q,k>)` over the keys in sight, 0 elsewhere; a query that sees none gets zeros."""

    family = "sparse"
    permutation_equivariant = False
    takes_counts = False

    @abstractmethod
    def sees(self, i: QueryPlaces, j: KeyPlaces, keys: int, causal: bool) -> Seen:
        """Whether the query at place i sees the key at place j, of so many; the future is cut later."""

    @abstractmethod
    def columns(self, rows: range, keys: int, causal: bool) -> list[range]:
        """The keys that some of these queries see, in ascending ranges that do not overlap."""

    def row_blocks(self, queries: int) -> Iterable[range]:
        """The queries, in the blocks in which they are computed."""
        return (range(start, min(start + ROWS, queries)) for start in range(0, queries, ROWS))

    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False
    ) -> Attended:
        check_request(self, counts, causal)
        dtype, (q, k, v) = v.dtype, widened(q, k, v)
        i = torch.arange(q.shape[-2], device=q.device)[:, None]
        j = torch.arange(k.shape[-2], device=q.device)[None, :]
        seen = self.sees(i, j, k.shape[-2], causal)
        if causal:
            seen = seen & (j <= i)
        return (softmax_of(q @ k.mT, seen.to(q.dtype)) @ v).to(dtype)

    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False
    ) -> Attended:
        """A block of queries at a time, each with the keys that it sees and no others."""
        check_request(self, counts, causal)
        dtype, (q, k, v) = v.dtype, widened(q, k, v)
        keys = k.shape[-2]
        out = []
        for rows in self.row_blocks(q.shape[-2]):
            columns = self.columns(rows, min(keys, rows.stop) if causal else keys, causal)
            if not any(columns):
                out.append(v.new_zeros(*q.shape[:-2], len(rows), v.shape[-1]))
                continue
            some_k, some_v = (torch.cat([x[..., c.start : c.stop, :] for c in columns], -2) for x in (k, v))
            j = torch.cat([torch.arange(c.start, c.stop, device=q.device) for c in columns])[None, :]
            step = max(1, _base.BLOCK // (j.numel() * k.shape[0] * k.shape[1]))
            for start in range(rows.start, rows.stop, step):
                i = torch.arange(start, min(start + step, rows.stop), device=q.device)[:, None]
                seen = self.sees(i, j, keys, causal)
                if causal:
                    seen = seen & (j <= i)
                out.append(masked_softmax(q[..., start : start + len(i), :], some_k, some_v, seen))
        return torch.cat(out, dim=-2).to(dtype)


def masked_softmax(q: Queries, k: Keys, v: Values, seen: Seen) -> Attended:
    """torch's fused softmax over the keys in sight, and zeros for a query that sees none."""
    blind = ~seen.any(-1, keepdim=True)
    found = functional.scaled_dot_product_attention(q, k, v, attn_mask=seen | blind, scale=1.0)
    return found.masked_fill(blind, 0)
