"""Softmax over the keys that a query sees because of its position."""

from __future__ import annotations

from abc import abstractmethod

from separatrix.core.tensors import Bool, Int, Tensor, torch
from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms._blocks import rows_per_block, split_range
from separatrix.mechanisms._methods import attention_method
from separatrix.mechanisms._types import Attended, CallOptions, Keys, Queries, Values
from separatrix.mechanisms.kernels._streamed import softmax
from separatrix.mechanisms.kernels.softmax import masked_softmax

QueryPositions = Int[Tensor, "queries 1"]
KeyPositions = Int[Tensor, "#queries keys"]
Mask = Bool[Tensor, "queries keys"]

ROWS = 128
"""Queries in a block, unless a pattern has a block of its own."""


class PatternMechanism(Mechanism):
    """`f = softmax(<q,k>)` over the visible keys, 0 elsewhere; a query that sees none gets zeros.

    Query i is at position `first + i` among the keys. Absent tokens have no position: the others move up.
    """

    family = "sparse"
    permutation_equivariant = False
    takes_first = True

    @abstractmethod
    def sees(self, i: QueryPositions, j: KeyPositions, keys: int, causal: bool) -> Mask:
        """Return whether query i sees key j of `keys` keys; the future is masked later."""

    @abstractmethod
    def columns(self, rows: range, keys: int, causal: bool) -> list[range]:
        """Return the keys that some of these queries see, in ascending ranges that do not overlap."""

    def row_blocks(self, queries: int) -> list[range]:
        """Split the queries into the blocks in which they are computed."""
        return split_range(0, queries, ROWS)

    def _mask(self, i: QueryPositions, j: KeyPositions, keys: int, causal: bool) -> Mask:
        visible = self.sees(i, j, keys, causal)
        return visible & (j <= i) if causal else visible

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions) -> Attended:
        i = torch.arange(options.first, options.first + q.shape[-2], device=q.device)[:, None]
        j = torch.arange(k.shape[-2], device=q.device)[None, :]
        return softmax(q @ k.mT, self._mask(i, j, k.shape[-2], options.causal).to(q.dtype)) @ v

    @attention_method
    def __call__(self, q: Queries, k: Keys, v: Values, options: CallOptions) -> Attended:
        """Compute blocks of queries, each with the keys that it sees and no others."""
        keys, first, causal = k.shape[-2], options.first, options.causal
        out = []
        for block in self.row_blocks(first + q.shape[-2]):
            rows = range(max(block.start, first), block.stop)
            if not rows:
                continue
            # Causal rows see no key after the last of them, so these are not even masked.
            columns = self.columns(rows, min(keys, rows.stop) if causal else keys, causal)
            # There is no softmax over nothing.
            if not any(columns):
                out.append(v.new_zeros(*q.shape[:-2], len(rows), v.shape[-1]))
                continue
            block_k, block_v = (torch.cat([x[..., part.start : part.stop, :] for part in columns], -2) for x in (k, v))
            j = torch.cat([torch.arange(part.start, part.stop, device=q.device) for part in columns])[None, :]
            # A block that sees many keys is split again, to limit its scores.
            for part in split_range(rows.start, rows.stop, rows_per_block(j.numel() * k.shape[0] * k.shape[1])):
                i = torch.arange(part.start, part.stop, device=q.device)[:, None]
                part_q = q[..., part.start - first : part.stop - first, :]
                out.append(masked_softmax(part_q, block_k, block_v, self._mask(i, j, keys, causal)))
        return torch.cat(out, dim=-2)
