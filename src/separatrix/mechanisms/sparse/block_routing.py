"""Block routing: each query selects the blocks of keys that it sees, by the mean of their keys."""

from __future__ import annotations

from separatrix.core.parameters import natural
from separatrix.core.tensors import Bool, Float, Tensor, functional, torch
from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms._blocks import attend_by_blocks
from separatrix.mechanisms._methods import attention_method
from separatrix.mechanisms._types import Attended, CallOptions, Keys, Queries, Values
from separatrix.mechanisms.kernels._streamed import softmax
from separatrix.mechanisms.kernels.softmax import masked_softmax
from separatrix.mechanisms.sparse.topk import rounding_slack

Means = Float[Tensor, "batch heads blocks width"]


class BlockRouting(Mechanism):
    """`f = softmax(<q,k>)` over the own block, and the k - 1 others with the largest `<q, mean of keys>`.

    As in MoBA (arXiv 2502.13189): blocks are runs of `block` tokens, the own block is always seen, and with
    causal only whole blocks of the past are candidates; no gradient passes through the choice. Blocks that
    tie with the last selected one, up to rounding, are seen as well. Without causal, which MoBA has not, all
    other blocks are candidates. Absent tokens have no position: the others move up.

    The selected branch of native sparse attention (arXiv 2502.11089) is similar. It selects by summaries that
    a small network computes of each block (flash-linear-attention uses means), adds up the heads that share
    keys, and always takes the first block and the two nearest; its two other branches, attention to summaries
    and a window, and the gates that mix the three, are not here. Other blocks are masked, not left out: time
    is that of softmax, and memory is linear in the tokens.

    >>> from separatrix.mechanisms import mechanism_named
    >>> k = torch.tensor([9.0, 9, 1, 1, 5, 5, 0, 0]).reshape(1, 1, 8, 1)
    >>> routing, eye = mechanism_named("block-routing:block=2,k=2"), torch.eye(8)[None, None]
    >>> out = routing(torch.ones_like(k), k, eye, causal=True)
    >>> (out[0, 0, -1] > 0).int()
    tensor([1, 1, 0, 0, 0, 0, 1, 1], dtype=torch.int32)
    """

    name = "block-routing"
    formula = "softmax(<q,k>) over the own block and the k-1 others with the largest <q, mean of keys>"
    source = "[rec] MoBA, arXiv 2502.13189; NSA, arXiv 2502.11089; ties, and all but causal [ours]"
    family = "sparse"
    permutation_equivariant = False
    takes_first = True
    block: int = natural(64, at_least=1)
    """The number of tokens in a block."""
    k: int = natural(3, at_least=1)
    """The number of blocks that a query sees, its own included."""

    def readable(self, tokens: int, stream: str = "keys") -> tuple[range, ...]:
        """With k=1 the block of the next token alone; else any block may be selected."""
        start = tokens - tokens % self.block
        return (range(start if self.k == 1 else 0, tokens),)

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions) -> Attended:
        visible = self._visible(q, k, block_means(k, self.block), range(q.shape[-2]), options)
        return softmax(q @ k.mT, visible.to(q.dtype)) @ v

    @attention_method
    def __call__(self, q: Queries, k: Keys, v: Values, options: CallOptions) -> Attended:
        """Apply torch's fused softmax to the visible keys, a block of queries at a time."""

        def attend(rows: range, q: Tensor, k: Tensor, v: Tensor, means: Tensor) -> Tensor:
            return masked_softmax(q, k, v, self._visible(q, k, means, rows, options))

        return attend_by_blocks(attend, q, k, v, block_means(k, self.block))

    def _visible(
        self, q: Queries, k: Keys, means: Means, rows: range, options: CallOptions
    ) -> Bool[Tensor, "batch heads queries keys"]:
        """Return which keys the queries of these rows see."""
        start, stop = options.first + rows.start, options.first + rows.stop
        query_blocks = torch.arange(start, stop, device=q.device)[:, None] // self.block
        blocks = torch.arange(means.shape[-2], device=q.device)
        candidates = (blocks < query_blocks) if options.causal else (blocks != query_blocks)
        selected_blocks = select_largest(q @ means.mT, candidates, self.k - 1) | (blocks == query_blocks)
        size = min(self.block, max(1, k.shape[-2]))
        visible = selected_blocks.repeat_interleave(size, dim=-1)[..., : k.shape[-2]]
        past = options.visible_keys(rows, k)
        return visible if past is None else visible & past


def block_means(k: Keys, block: int) -> Means:
    """Return the mean key of each block; the last may have fewer tokens.

    >>> block_means(torch.tensor([1.0, 3.0, 7.0]).reshape(1, 1, 3, 1), 2).flatten().tolist()
    [2.0, 7.0]
    """
    keys = k.shape[-2]
    block = min(block, max(1, keys))
    over = -keys % block
    blocks = functional.pad(k.detach(), (0, 0, 0, over)).reshape(*k.shape[:-2], -1, block, k.shape[-1])
    sizes = k.new_full((blocks.shape[-3], 1), block)
    # The zeros that fill the last block add nothing to its sum, and must not count.
    sizes[-1:] -= over
    return blocks.sum(-2) / sizes


def select_largest(
    scores: Float[Tensor, "batch heads queries blocks"], candidates: Bool[Tensor, "queries blocks"], number: int
) -> Bool[Tensor, "batch heads queries blocks"]:
    """Select the `number` largest candidates of each row, and those that tie with the last of them."""
    scores = scores.detach().masked_fill(~candidates, -torch.inf)
    if number == 0 or not scores.numel():
        return torch.zeros_like(scores, dtype=torch.bool)
    threshold = scores.topk(min(number, scores.shape[-1]), -1).values[..., -1:]
    return candidates & (scores >= threshold - rounding_slack(scores.masked_fill(~candidates, 0)))
