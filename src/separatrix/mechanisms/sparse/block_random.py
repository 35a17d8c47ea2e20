"""Block-sparse attention with random blocks."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import ClassVar

from separatrix.core.parameters import Constraint, Natural, Parameters
from separatrix.core.tensors import torch
from separatrix.mechanisms._limits import least
from separatrix.mechanisms.sparse._pattern import KeyPlaces, PatternMechanism, QueryPlaces, Seen
from separatrix.mechanisms.sparse.window import blocks_of


class BlockRandomParameters(Parameters):
    """The size of a block, how many random ones a query sees, and which."""

    owner = "block-random"
    block: Natural = 64
    random: Natural = 2
    seed: Natural = 0
    constraints: ClassVar[tuple[Constraint, ...]] = (
        least("block", 1),
        least("random", 0),
    )


class BlockRandom(PatternMechanism):
    """`f = softmax(<q,k>)` over whole blocks of keys, as BigBird chooses them (arXiv 2007.14062).

    A query sees its own block, the two beside it, the first block, and `random` others, drawn once for
    each block of queries and seed; the first block sees all. With causal the random blocks are drawn
    from the past, and the same ones however long the input is. With more queries than keys, those past
    the end still see the first block.

    BigBird has no causal form. Its program lets the last block see all and be seen by all, too, which here it
    is not; it draws 3 random blocks, and others for each head, where all heads have the same here.

    >>> import torch
    >>> from separatrix.mechanisms import mechanism_named
    >>> x = torch.arange(6.0).reshape(1, 1, 6, 1)
    >>> mechanism_named("block-random:block=1,random=0")(0 * x, x, x).flatten()
    tensor([2.5000, 1.0000, 1.5000, 2.2500, 3.0000, 3.0000])
    """

    name = "block-random"
    formula = "softmax(<q,k>) over the own, neighbouring, first and random blocks"
    source = "[rec] BigBird, arXiv 2007.14062, whose last block is global, too, and whose heads draw apart"
    schema = BlockRandomParameters
    parameters: BlockRandomParameters

    def blocks_seen(self, own: int, keys: int, causal: bool) -> list[int]:
        """The blocks of keys that the queries of block `own` see, ascending."""
        number = -(-keys // self.parameters.block)
        if own == 0:
            return list(range(number))
        near = sorted({block for block in (0, own - 1, own, own + 1) if block < number})
        limit = min(own - 1, number) if causal else number
        free = limit - sum(block < limit for block in near)
        draw = random.Random(f"{self.parameters.seed}/{own}/{None if causal else number}")
        drawn = draw.sample(range(free), min(self.parameters.random, free))
        return sorted({*near, *(_skipping(near, place) for place in drawn)})

    def sees(self, i: QueryPlaces, j: KeyPlaces, keys: int, causal: bool) -> Seen:
        own, other = i // self.parameters.block, j // self.parameters.block
        seen = torch.zeros(i.shape[0], j.shape[-1], dtype=torch.bool, device=i.device)
        for block in range(int(own.min()), int(own.max()) + 1):
            among = torch.tensor(self.blocks_seen(block, keys, causal), device=i.device)
            seen = seen | ((own == block) & torch.isin(other, among))
        return seen

    def columns(self, rows: range, keys: int, causal: bool) -> list[range]:
        size = self.parameters.block
        blocks = self.blocks_seen(rows.start // size, keys, causal)
        return [range(block * size, min((block + 1) * size, keys)) for block in blocks]

    def readable(self, tokens: int, stream: str = "keys") -> tuple[range, ...]:
        """Without random blocks: the first, that of the next token, and the one before it; else all."""
        size = self.parameters.block
        near = (tokens // size - 1) * size
        # Which blocks are drawn depends on the number of the own block, so none is ever out of reach.
        return (
            (range(tokens),) if self.parameters.random or near <= size else (range(size), range(near, tokens))
        )

    def row_blocks(self, queries: int) -> Iterable[range]:
        return blocks_of(min(self.parameters.block, queries), 0, queries)


def _skipping(taken: list[int], place: int) -> int:
    """The block at this place among those that are not taken."""
    for block in taken:
        place += block <= place
    return place
