"""Computation in blocks of tokens, so that no matrix of tokens by tokens is held."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

from separatrix.core.tensors import Tensor, torch
from separatrix.mechanisms._recompute import recompute_by_rows
from separatrix.mechanisms._types import Attended, Keys, Queries, Values

MAX_SCORES = 1 << 22
"""Scores held at once by a mechanism that computes them in blocks of queries."""


def rows_per_block(scores_per_row: int) -> int:
    """Return the number of queries computed at once if each needs `scores_per_row` scores."""
    return max(1, MAX_SCORES // max(1, scores_per_row))


def split_range(start: int, stop: int, step: int) -> list[range]:
    """Split positions into consecutive ranges of `step`.

    >>> split_range(1, 6, 3)
    [range(1, 4), range(4, 6)]
    """
    return [range(first, min(first + step, stop)) for first in range(start, stop, step)]


def split_tokens(step: int, *tensors: Tensor | None) -> Iterator[tuple[Any, ...]]:
    """Iterate over consecutive blocks of tokens of several tensors; None stays None."""
    return zip(*(repeat(None) if x is None else torch.split(x, step, dim=-2) for x in tensors), strict=False)


def attend_by_blocks(
    attend: Callable[..., Attended],
    q: Queries,
    k: Keys,
    v: Values,
    *inputs: Tensor | None,
    scores_per_query: int | None = None,
) -> Attended:
    """Concatenate `attend(rows, queries of these rows, k, v, *inputs)` over blocks of queries.

    Each query of a head needs `scores_per_query`, one for each key by default. Backward computes each block
    again, unless there is only one: memory stays linear in the tokens.
    """
    scores = k.shape[-2] if scores_per_query is None else scores_per_query
    blocks = split_range(0, q.shape[-2], rows_per_block(scores * k.shape[0] * k.shape[1]))
    if len(blocks) < 2:
        return attend(range(q.shape[-2]), q, k, v, *inputs)
    return recompute_by_rows(attend, blocks, q, k, v, *inputs)


def divide(x: Tensor, total: Tensor) -> Tensor:
    """Return `x / total`, and 0 where the total is 0."""
    return x / divisor(total)


def divisor(total: Tensor) -> Tensor:
    """Return the totals to divide by: infinity instead of 0, so that an empty row is 0."""
    # Twice as fast as `masked_fill(total == 0, inf)`, which is visible in the time of a single head.
    return torch.where(total.bool(), total, torch.inf)
