"""Sliding-window attention."""

from __future__ import annotations

from separatrix.core.parameters import natural
from separatrix.mechanisms._blocks import split_range
from separatrix.mechanisms.sparse._pattern import ROWS, KeyPositions, Mask, PatternMechanism, QueryPositions


class Window(PatternMechanism):
    """`f = softmax(<q,k>)` over keys nearer than `size`: |i-j| < size (arXiv 2004.05150).

    With causal, 0 <= i-j < size. Time and memory are linear in the tokens. With more queries than keys, a
    query past the end of the keys may see none and gets zeros.

    >>> import torch
    >>> from separatrix.mechanisms import mechanism_named
    >>> x = torch.arange(5.0).reshape(1, 1, 5, 1)
    >>> mechanism_named("window:size=2")(0 * x, x, x).flatten()
    tensor([0.5000, 1.0000, 2.0000, 3.0000, 3.5000])
    """

    name = "window"
    formula = "softmax(<q,k>) over |i-j| < size"
    source = "[rec] Longformer, arXiv 2004.05150"
    size: int = natural(64, at_least=1)
    """How far a query sees, itself included."""

    def readable(self, tokens: int, stream: str = "keys") -> tuple[range, ...]:
        return (last_positions(tokens, self.size - 1),)

    def sees(self, i: QueryPositions, j: KeyPositions, keys: int, causal: bool) -> Mask:
        return (i - j).abs() < self.size

    def columns(self, rows: range, keys: int, causal: bool) -> list[range]:
        return [nearby_keys(rows, self.size, keys)]

    def row_blocks(self, queries: int) -> list[range]:
        # Rows of one block share the keys of a window; shorter blocks would copy the same keys more often.
        return split_range(0, queries, max(ROWS, min(self.size, queries)))


def nearby_keys(rows: range, size: int, keys: int, first: int = 0) -> range:
    """Return the keys, from position `first` on, nearer than `size` to some of the rows."""
    start = max(first, rows.start - size + 1)
    return range(start, max(start, min(keys, rows.stop + size - 1)))


def last_positions(tokens: int, number: int) -> range:
    """Return the last `number` positions of `tokens` tokens, or all of them.

    >>> last_positions(10, 3), last_positions(2, 3)
    (range(7, 10), range(0, 2))
    """
    return range(max(0, tokens - number), tokens)
