"""Sliding-window attention."""

from __future__ import annotations

from collections.abc import Iterable

from separatrix.core.parameters import natural
from separatrix.mechanisms.sparse._pattern import ROWS, KeyPlaces, PatternMechanism, QueryPlaces, Seen


class Window(PatternMechanism):
    """`f = softmax(<q,k>)` over keys nearer than `size`: |i-j| < size (arXiv 2004.05150).

    With causal, 0 <= i-j < size. Time and memory are linear in the tokens. With more queries than
    keys, a query past the end of the keys may see none and gets zeros.

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
        return (last_places(tokens, self.size - 1),)

    def sees(self, i: QueryPlaces, j: KeyPlaces, keys: int, causal: bool) -> Seen:
        return (i - j).abs() < self.size

    def columns(self, rows: range, keys: int, causal: bool) -> list[range]:
        return [around(rows, self.size, keys)]

    def row_blocks(self, queries: int) -> Iterable[range]:
        return blocks_of(max(ROWS, min(self.size, queries)), 0, queries)


def around(rows: range, size: int, keys: int, first: int = 0) -> range:
    """The keys, from place `first` on, nearer than `size` to some of the rows."""
    start = max(first, rows.start - size + 1)
    return range(start, max(start, min(keys, rows.stop + size - 1)))


def last_places(tokens: int, number: int) -> range:
    """The last `number` of so many tokens, or all of them.

    >>> last_places(10, 3), last_places(2, 3)
    (range(7, 10), range(0, 2))
    """
    return range(max(0, tokens - number), tokens)


def blocks_of(step: int, first: int, stop: int) -> Iterable[range]:
    """The places from `first` up to `stop`, `step` at a time."""
    return (range(start, min(start + step, stop)) for start in range(first, stop, step))
