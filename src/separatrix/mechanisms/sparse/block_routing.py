"""Block routing: each query chooses the blocks of keys that it sees, by the mean of their keys."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from separatrix.core.parameters import Constraint, Natural, Parameters
from separatrix.core.tensors import Bool, Float, Tensor, functional, torch
from separatrix.mechanisms._base import (
    Attended,
    Counts,
    Keys,
    Mechanism,
    Queries,
    Values,
    by_blocks_of_queries,
    form,
    seen_keys,
)
from separatrix.mechanisms._limits import least
from separatrix.mechanisms.kernels._streamed import softmax_of
from separatrix.mechanisms.kernels.softmax import masked_softmax
from separatrix.mechanisms.sparse.topk import ULPS

Means = Float[Tensor, "batch heads blocks width"]


class BlockRoutingParameters(Parameters):
    """The size of a block, and how many blocks a query sees, its own among them."""

    owner = "block-routing"
    block: Natural = 64
    k: Natural = 3
    constraints: ClassVar[tuple[Constraint, ...]] = (least("block", 1), least("k", 1))


class BlockRouting(Mechanism):
    """`f = softmax(<q,k>)` over the own block, and the k - 1 others with the largest `<q, mean of keys>`.

    As in MoBA (arXiv 2502.13189): blocks are runs of `block` tokens, the own block is always seen, and with
    causal only whole blocks of the past are chosen from; no gradient passes through the choice. Blocks that
    tie with the last one chosen are seen as well, ties being read up to rounding. Without causal, which MoBA
    has not, all other blocks are chosen from. Absent tokens have no place: the others move up.

    The selected branch of native sparse attention (arXiv 2502.11089) chooses alike, by summaries that a
    small network makes of each block (flash-linear-attention takes means), adding up the heads that share
    keys, and always takes the first block and the two nearest; its two other branches, attention to
    summaries and a window, and the gates that mix the three, are not here. What is not chosen is masked, not
    left out: time is that of softmax, and memory is linear in the tokens.

    >>> from separatrix.mechanisms import mechanism_named
    >>> k = torch.tensor([9.0, 9, 1, 1, 5, 5, 0, 0]).reshape(1, 1, 8, 1)
    >>> routing, eye = mechanism_named("block-routing:block=2,k=2"), torch.eye(8)[None, None]
    >>> found = routing(torch.ones_like(k), k, eye, causal=True)
    >>> (found[0, 0, -1] > 0).int()
    tensor([1, 1, 0, 0, 0, 0, 1, 1], dtype=torch.int32)
    """

    name = "block-routing"
    formula = "softmax(<q,k>) over the own block and the k-1 others with the largest <q, mean of keys>"
    source = "[rec] MoBA, arXiv 2502.13189; NSA, arXiv 2502.11089; ties, and all but causal [ours]"
    family = "sparse"
    permutation_equivariant = False
    takes_counts = False
    takes_first = True
    schema = BlockRoutingParameters
    parameters: BlockRoutingParameters

    def readable(self, tokens: int, stream: str = "keys") -> tuple[range, ...]:
        """With k=1 the block of the next token alone; else any block may be chosen."""
        own = tokens - tokens % self.parameters.block
        return (range(own if self.parameters.k == 1 else 0, tokens),)

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        seen = self._seen(q, k, block_means(k, self.parameters.block), range(q.shape[-2]), causal, **more)
        return softmax_of(q @ k.mT, seen.to(q.dtype)) @ v

    @form
    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        """torch's fused softmax over the keys in sight, a block of queries at a time."""
        means = block_means(k, self.parameters.block)
        return by_blocks_of_queries(partial(self._rows, causal, more.get("first", 0)), q, k, v, means)

    def _rows(
        self, causal: bool, first: int, rows: range, q: Tensor, k: Tensor, v: Tensor, means: Tensor
    ) -> Tensor:
        """What the queries of these rows read."""
        return masked_softmax(q, k, v, self._seen(q, k, means, rows, causal, first))

    def _seen(
        self, q: Queries, k: Keys, means: Means, rows: range, causal: bool, first: int = 0
    ) -> Bool[Tensor, "batch heads queries keys"]:
        """Which keys the queries of these rows see."""
        size = min(self.parameters.block, max(1, k.shape[-2]))
        own = (
            torch.arange(first + rows.start, first + rows.stop, device=q.device)[:, None]
            // self.parameters.block
        )
        blocks = torch.arange(means.shape[-2], device=q.device)
        open_ = (blocks < own) if causal else (blocks != own)
        chosen = largest(q @ means.mT, open_, self.parameters.k - 1) | (blocks == own)
        seen = chosen.repeat_interleave(size, dim=-1)[..., : k.shape[-2]]
        past = seen_keys(rows, k, causal, first)
        return seen if past is None else seen & past


def block_means(k: Keys, block: int) -> Means:
    """The mean key of each block; the last may have fewer tokens.

    >>> block_means(torch.tensor([1.0, 3.0, 7.0]).reshape(1, 1, 3, 1), 2).flatten().tolist()
    [2.0, 7.0]
    """
    keys = k.shape[-2]
    block = min(block, max(1, keys))
    over = -keys % block
    padded = functional.pad(k.detach(), (0, 0, 0, over))
    sums = padded.reshape(*k.shape[:-2], -1, block, k.shape[-1]).sum(-2)
    sizes = k.new_full((sums.shape[-2], 1), block)
    sizes[-1:] -= over
    return sums / sizes


def largest(
    scores: Float[Tensor, "batch heads queries blocks"], open_: Bool[Tensor, "queries blocks"], number: int
) -> Bool[Tensor, "batch heads queries blocks"]:
    """The largest of the open scores, so many of each row, and those that tie with the last of them."""
    scores = scores.detach().masked_fill(~open_, -torch.inf)
    if number == 0 or not scores.numel():
        return torch.zeros_like(scores, dtype=torch.bool)
    size = scores.masked_fill(~open_, 0).abs().amax(-1, keepdim=True)
    least = scores.topk(min(number, scores.shape[-1]), -1).values[..., -1:]
    return open_ & (scores >= least - ULPS * torch.finfo(scores.dtype).eps * size)
