"""Softmax over the keys that a query sees by its place."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from separatrix.core.tensors import Bool, Int, Tensor, torch
from separatrix.mechanisms import _base
from separatrix.mechanisms._base import (
    Attended,
    Counts,
    Keys,
    Mechanism,
    Queries,
    Values,
    form,
)
from separatrix.mechanisms.kernels._streamed import softmax_of
from separatrix.mechanisms.kernels.softmax import masked_softmax

QueryPlaces = Int[Tensor, "queries 1"]
KeyPlaces = Int[Tensor, "#queries keys"]
Seen = Bool[Tensor, "queries keys"]

ROWS = 128
"""Queries in a block, unless a pattern has a block of its own."""


class PatternMechanism(Mechanism):
    """`f = softmax(<q,k>)` over the keys in sight, 0 elsewhere; a query that sees none gets zeros.

    Query i stands at place `first + i` among the keys. Absent tokens have no place: the others move up.
    """

    family = "sparse"
    permutation_equivariant = False
    takes_counts = False
    takes_first = True

    @abstractmethod
    def sees(self, i: QueryPlaces, j: KeyPlaces, keys: int, causal: bool) -> Seen:
        """Whether the query at place i sees the key at place j, of so many; the future is cut later."""

    @abstractmethod
    def columns(self, rows: range, keys: int, causal: bool) -> list[range]:
        """The keys that some of these queries see, in ascending ranges that do not overlap."""

    def row_blocks(self, queries: int) -> Iterable[range]:
        """The queries, in the blocks in which they are computed."""
        return (range(start, min(start + ROWS, queries)) for start in range(0, queries, ROWS))

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        first = more.get("first", 0)
        i = torch.arange(first, first + q.shape[-2], device=q.device)[:, None]
        j = torch.arange(k.shape[-2], device=q.device)[None, :]
        seen = self.sees(i, j, k.shape[-2], causal)
        if causal:
            seen = seen & (j <= i)
        return softmax_of(q @ k.mT, seen.to(q.dtype)) @ v

    @form
    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        """A block of queries at a time, each with the keys that it sees and no others."""
        keys, first = k.shape[-2], more.get("first", 0)
        out = []
        for block in self.row_blocks(first + q.shape[-2]):
            rows = range(max(block.start, first), block.stop)
            if not rows:
                continue
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
                some_q = q[..., start - first : start - first + len(i), :]
                out.append(masked_softmax(some_q, some_k, some_v, seen))
        return torch.cat(out, dim=-2)
