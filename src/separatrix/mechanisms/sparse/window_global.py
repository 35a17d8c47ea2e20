"""Sliding-window attention with a few tokens that everyone sees."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import ClassVar

from separatrix.core.parameters import Constraint, Natural, Parameters
from separatrix.mechanisms._limits import least
from separatrix.mechanisms.sparse._pattern import ROWS, KeyPlaces, PatternMechanism, QueryPlaces, Seen
from separatrix.mechanisms.sparse.window import around, blocks_of, last_places


class WindowGlobalParameters(Parameters):
    """How far a query sees, itself included, and how many first tokens are global."""

    owner = "window-global"
    size: Natural = 64
    globals: Natural = 4
    constraints: ClassVar[tuple[Constraint, ...]] = (
        least("size", 1),
        least("globals", 0),
    )


class WindowGlobal(PatternMechanism):
    """`f = softmax(<q,k>)` over |i-j| < size and the first `globals` tokens (arXiv 2004.05150).

    Those are seen by all and see all (with causal: all up to themselves). Time and memory are linear in
    the tokens. With globals=0, a query past the end of the keys may see none and gets zeros.

    >>> import torch
    >>> from separatrix.mechanisms import mechanism_named
    >>> x = torch.arange(5.0).reshape(1, 1, 5, 1)
    >>> mechanism_named("window-global:size=1,globals=1")(0 * x, x, x).flatten()
    tensor([2.0000, 0.5000, 1.0000, 1.5000, 2.0000])
    """

    name = "window-global"
    formula = "softmax(<q,k>) over |i-j| < size or i < globals or j < globals"
    source = "[rec] Longformer, arXiv 2004.05150"
    schema = WindowGlobalParameters
    parameters: WindowGlobalParameters

    def sees(self, i: QueryPlaces, j: KeyPlaces, keys: int, causal: bool) -> Seen:
        first = self.parameters.globals
        return ((i - j).abs() < self.parameters.size) | (i < first) | (j < first)

    def columns(self, rows: range, keys: int, causal: bool) -> list[range]:
        first = self.parameters.globals
        if rows.start < first:
            return [range(keys)]
        return [range(min(first, keys)), around(rows, self.parameters.size, keys, first)]

    def readable(self, tokens: int, stream: str = "keys") -> tuple[range, ...]:
        first, near = self.parameters.globals, last_places(tokens, self.parameters.size - 1)
        return (range(tokens),) if near.start <= first else (*(range(first),) * bool(first), near)

    def row_blocks(self, queries: int) -> Iterable[range]:
        first = min(self.parameters.globals, queries)
        step = max(ROWS, min(self.parameters.size, queries))
        return chain(blocks_of(step, 0, first), blocks_of(step, first, queries))
