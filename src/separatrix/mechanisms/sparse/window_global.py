"""Sliding-window attention with a few tokens that everyone sees."""

from __future__ import annotations

from separatrix.core.parameters import natural
from separatrix.mechanisms._blocks import split_range
from separatrix.mechanisms.sparse._pattern import ROWS, KeyPositions, Mask, QueryPositions
from separatrix.mechanisms.sparse.window import Window, last_positions, nearby_keys


class WindowGlobal(Window):
    """`f = softmax(<q,k>)` over |i-j| < size and the first `globals` tokens (arXiv 2004.05150).

    The first tokens are seen by all and see all (with causal: all up to themselves). Time and memory are
    linear in the tokens. With globals=0, a query past the end of the keys may see none and gets zeros.

    >>> import torch
    >>> from separatrix.mechanisms import mechanism_named
    >>> x = torch.arange(5.0).reshape(1, 1, 5, 1)
    >>> mechanism_named("window-global:size=1,globals=1")(0 * x, x, x).flatten()
    tensor([2.0000, 0.5000, 1.0000, 1.5000, 2.0000])
    """

    name = "window-global"
    formula = "softmax(<q,k>) over |i-j| < size or i < globals or j < globals"
    source = "[rec] Longformer, arXiv 2004.05150"
    globals: int = natural(4, at_least=0)
    """The number of first tokens that are global."""

    def sees(self, i: QueryPositions, j: KeyPositions, keys: int, causal: bool) -> Mask:
        return super().sees(i, j, keys, causal) | (i < self.globals) | (j < self.globals)

    def columns(self, rows: range, keys: int, causal: bool) -> list[range]:
        if rows.start < self.globals:
            return [range(keys)]
        return [range(min(self.globals, keys)), nearby_keys(rows, self.size, keys, self.globals)]

    def readable(self, tokens: int, stream: str = "keys") -> tuple[range, ...]:
        near = last_positions(tokens, self.size - 1)
        if near.start <= self.globals:
            return (range(tokens),)
        return (range(self.globals), near) if self.globals else (near,)

    def row_blocks(self, queries: int) -> list[range]:
        # Global rows see all keys; in a block with others, these would be computed for all keys as well.
        first, step = min(self.globals, queries), max(ROWS, min(self.size, queries))
        return [*split_range(0, first, step), *split_range(first, queries, step)]
