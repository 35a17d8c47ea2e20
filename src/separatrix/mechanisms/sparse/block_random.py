"""Block-sparse attention with random blocks."""

from __future__ import annotations

import random

from separatrix.core.parameters import natural
from separatrix.core.tensors import torch
from separatrix.mechanisms._blocks import split_range
from separatrix.mechanisms.sparse._pattern import KeyPositions, Mask, PatternMechanism, QueryPositions


class BlockRandom(PatternMechanism):
    """`f = softmax(<q,k>)` over whole blocks of keys, as BigBird selects them (arXiv 2007.14062).

    A query sees its own block, the two adjacent blocks, the first block, and `random` others, drawn once for
    each block of queries and seed; the first block sees all. With causal the random blocks are drawn from the
    past, and do not depend on the length of the input. With more queries than keys, those past the end still
    see the first block.

    BigBird has no causal form. In its program the last block sees all and is seen by all, too, unlike here;
    it draws 3 random blocks, and other ones for each head, while here all heads have the same.

    >>> import torch
    >>> from separatrix.mechanisms import mechanism_named
    >>> x = torch.arange(6.0).reshape(1, 1, 6, 1)
    >>> mechanism_named("block-random:block=1,random=0")(0 * x, x, x).flatten()
    tensor([2.5000, 1.0000, 1.5000, 2.2500, 3.0000, 3.0000])
    """

    name = "block-random"
    formula = "softmax(<q,k>) over the own, neighbouring, first and random blocks"
    source = "[rec] BigBird, arXiv 2007.14062, whose last block is global, too, and whose heads draw apart"
    block: int = natural(64, at_least=1)
    """The number of tokens in a block."""
    random: int = natural(2, at_least=0)
    """The number of random blocks that a query sees."""
    seed: int = natural(0)
    """The seed of the random blocks."""

    def visible_blocks(self, query_block: int, keys: int, causal: bool) -> list[int]:
        """Return the blocks of keys that the queries of one block see, ascending."""
        number = -(-keys // self.block)
        if query_block == 0:
            return list(range(number))
        adjacent = (0, query_block - 1, query_block, query_block + 1)
        near = sorted({block for block in adjacent if block < number})
        limit = min(query_block - 1, number) if causal else number
        free = limit - sum(block < limit for block in near)
        # A string as the seed gives the same blocks on every platform, and others for each block of queries.
        generator = random.Random(f"{self.seed}/{query_block}/{None if causal else number}")
        ranks = generator.sample(range(free), min(self.random, free))
        return sorted({*near, *(_nth_free(near, rank) for rank in ranks)})

    def sees(self, i: QueryPositions, j: KeyPositions, keys: int, causal: bool) -> Mask:
        query_blocks, key_blocks = i // self.block, j // self.block
        visible = torch.zeros(i.shape[0], j.shape[-1], dtype=torch.bool, device=i.device)
        for block in range(int(query_blocks.min()), int(query_blocks.max()) + 1):
            blocks = torch.tensor(self.visible_blocks(block, keys, causal), device=i.device)
            visible = visible | ((query_blocks == block) & torch.isin(key_blocks, blocks))
        return visible

    def columns(self, rows: range, keys: int, causal: bool) -> list[range]:
        blocks = self.visible_blocks(rows.start // self.block, keys, causal)
        return [range(block * self.block, min((block + 1) * self.block, keys)) for block in blocks]

    def readable(self, tokens: int, stream: str = "keys") -> tuple[range, ...]:
        """Without random blocks: the first, that of the next token, and the one before it; else all."""
        near = (tokens // self.block - 1) * self.block
        # The drawn blocks depend on the number of the query's block, so none is ever out of reach.
        if self.random or near <= self.block:
            return (range(tokens),)
        return range(self.block), range(near, tokens)

    def row_blocks(self, queries: int) -> list[range]:
        return split_range(0, queries, min(self.block, queries))


def _nth_free(occupied_blocks: list[int], rank: int) -> int:
    """Return the block of this rank among those that are not occupied."""
    # In ascending order, each occupied block at or below the rank moves it up by one.
    for block in occupied_blocks:
        rank += block <= rank
    return rank
