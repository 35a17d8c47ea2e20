"""The tokens of D0 and D1 as rows of a picture, at any n: runs of equal tokens are one row."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from separatrix.constructions import Construction, ExactConstruction, Label, Tokens
from separatrix.core.documents import Document, shown
from separatrix.core.errors import EngineRefusal
from separatrix.core.numbers.spelling import whole_for_people
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.exact.outputs.tokens import LARGEST_COUNTED

MAX_PICTURE_TOKENS = 2000
"""The largest number of tokens of a picture, or of distinct tokens where they are counted."""
MAX_PICTURE_NUMBERS = 1 << 22
"""The largest number of numbers in all of them."""
MAX_ROWS, MAX_COLUMNS, MAX_CHANGED_ROWS = 5, 5, 3
LABELS: tuple[Label, Label] = (0, 1)
Table = Float[Tensor, "tokens columns"]
IndexRange = tuple[int, int]


@dataclass(frozen=True)
class TokenLayout:
    """The tokens of one label in order, the special one first, each run of equal tokens once."""

    tokens: Tokens
    ends: tuple[int, ...]
    """The position of the last token of each run, counted from 1: 1, 2, 3, … without runs."""

    @property
    def is_self_attention(self) -> bool:
        """Whether every token is a query."""
        return not self.tokens.last and len(self.tokens.queries) == len(self.ends)

    @property
    def counts(self) -> list[int]:
        """The length of each run."""
        return [b - a for a, b in pairwise((0, *self.ends))]


LayoutPair = tuple[TokenLayout, TokenLayout]
"""The tokens of D0 and of D1."""


@dataclass(frozen=True)
class TokenRow(Document):
    """A run of equal tokens, or tokens that are left out; positions are counted from 1."""

    first: int
    last: int
    cells: tuple[float, ...]
    """A number for each column, NaN where columns are left out; empty where the tokens are left out."""
    changed: tuple[bool, ...]
    """Which of the numbers differ in the other dataset."""

    @shown
    def count(self) -> int:
        """The number of tokens."""
        return self.last - self.first + 1

    @shown
    def tokens(self) -> str:
        """The positions as text: `1`, `2–10`, `2–10¹⁶`."""
        return format_positions(self.first, self.last)


@dataclass(frozen=True)
class TokenTable:
    """The rows of D0 and D1, and their columns."""

    rows: tuple[tuple[TokenRow, ...], tuple[TokenRow, ...]]
    columns: tuple[str, ...]
    logit_unit: str
    differences: int


def format_positions(first: int, last: int) -> str:
    """Format a range of positions.

    >>> format_positions(1, 1), format_positions(2, 10), format_positions(2, 10**16)
    ('1', '2–10', '2–10¹⁶')
    """
    ends = (first,) if first == last else (first, last)
    return "–".join(map(whole_for_people, ends))


def lay_out_tokens(construction: Construction) -> LayoutPair:
    """Lay out distinct tokens with their counts if possible, else all of them; or raise EngineRefusal."""
    if not construction.has_groups:
        return lay_out_all_tokens(construction, construction.name)
    if construction.n > LARGEST_COUNTED:
        raise EngineRefusal("counts of so many tokens do not fit a picture; take n=1e300 or less")
    _require_few(construction, construction.group_count(), "distinct tokens")
    ends = [tuple(accumulate(construction.group_counts(label))) for label in LABELS]
    d0, d1 = (TokenLayout(construction.token_groups(label, torch.float64), ends[label]) for label in LABELS)
    return d0, d1


def lay_out_all_tokens(construction: Construction, name: str) -> LayoutPair:
    """Lay out every token by itself; `name` is that of the mechanism or construction that needs it."""
    if construction.n > MAX_PICTURE_TOKENS:
        limit = f"more than a picture has, {MAX_PICTURE_TOKENS:,}"
        raise EngineRefusal(f"{name} needs every token, and n={construction.n:,} is {limit}")
    _require_few(construction, construction.n, "tokens")
    tokens = [construction.dense(label, 0, torch.float64) for label in LABELS]
    d0, d1 = (TokenLayout(dense, tuple(range(1, len(dense.keys) + 1))) for dense in tokens)
    return d0, d1


def _require_few(construction: Construction, count: int, kind: str) -> None:
    width = construction.dense_width()
    if count > MAX_PICTURE_TOKENS or count * width > MAX_PICTURE_NUMBERS:
        raise EngineRefusal(
            f"{construction.name} has {count:,} {kind} of {width:,} numbers here, more than a picture has: "
            f"{MAX_PICTURE_TOKENS:,} of them and {MAX_PICTURE_NUMBERS:,} numbers in all"
        )


def build_token_table(construction: Construction, layouts: LayoutPair) -> TokenTable:
    """Build the rows of D0 and D1."""
    in_log_n = not isinstance(construction, ExactConstruction) or construction.logit_base is not None
    values_only = all(_has_redundant_keys(layout.tokens) for layout in layouts)
    tables = [_build_table(layout.tokens, construction, in_log_n, values_only) for layout in layouts]
    columns = _select_ranges(tables[0].shape[1], MAX_COLUMNS, ())
    ends = [list(layout.ends) for layout in layouts]
    is_aligned = ends[0][-1] == ends[1][-1]
    if is_aligned and ends[0] != ends[1]:
        # Cut the runs of both labels at the same positions, so that they can be compared row by row.
        common = sorted({*ends[0], *ends[1]})
        runs = [[bisect_left(own_ends, end) for end in common] for own_ends in ends]
        tables = [table[run] for table, run in zip(tables, runs, strict=True)]
        ends = [common, common]
    d0, d1 = (_build_rows(tables, ends, label, columns, is_aligned) for label in LABELS)
    return TokenTable(
        (d0, d1),
        tuple(_heading(first, last, values_only) for first, last in columns),
        "log n" if in_log_n else "",
        _count_differences(tables, ends[0]) if is_aligned else 0,
    )


def _has_redundant_keys(tokens: Tokens) -> bool:
    """Whether keys are the values or their sums, so that the values show everything."""
    if tokens.values is None:
        return False
    sources = (tokens.values, tokens.values.sum(-1, keepdim=True))
    return any(source.shape == tokens.keys.shape and torch.equal(source, tokens.keys) for source in sources)


def _build_table(tokens: Tokens, construction: Construction, in_log_n: bool, values_only: bool) -> Table:
    """Return a row for each token: the logit of the first query, unless `values_only`, and its values."""
    if values_only and tokens.values is not None:
        return tokens.values / construction.unit
    unit = math.log(construction.n) if in_log_n else 1.0
    logits = (tokens.keys @ tokens.queries[0])[:, None] / unit
    return logits if tokens.values is None else torch.cat([logits, tokens.values / construction.unit], -1)


def _count_differences(tables: list[Table], ends: list[int]) -> int:
    """Count the numbers that differ between D0 and D1."""
    differ = (tables[0] != tables[1]).sum(-1).tolist()
    return sum(count * (b - a) for count, (a, b) in zip(differ, pairwise((0, *ends)), strict=True))


def _build_rows(
    tables: list[Table], ends: list[list[int]], label: Label, columns: list[IndexRange], is_aligned: bool
) -> tuple[TokenRow, ...]:
    """Return the rows of a dataset; if both have equally many tokens, runs are equal in both."""
    table, own_ends = tables[label], ends[label]
    differs = tables[0] != tables[1] if is_aligned else torch.zeros_like(table, dtype=torch.bool)
    starts = [*run_starts(tables if is_aligned else [table]), len(table)]
    has_change = differs.any(-1).tolist()
    changed_rows = [index for index, start in enumerate(starts[:-1]) if has_change[start]]
    rows = []
    for first, last in _select_ranges(len(starts) - 1, MAX_ROWS, changed_rows):
        start, end = starts[first], starts[last + 1]
        ranges = columns if first == last else []
        cells = tuple(float(table[start, a]) if a == b else math.nan for a, b in ranges)
        marks = tuple(a == b and bool(differs[start, a]) for a, b in ranges)
        rows.append(TokenRow(own_ends[start - 1] + 1 if start else 1, own_ends[end - 1], cells, marks))
    return tuple(rows)


def run_starts(tables: Sequence[Tensor]) -> list[int]:
    """Return the indices of rows that differ from the one before in any of the tables."""
    is_new = torch.stack([(table[1:] != table[:-1]).any(-1) for table in tables]).any(0)
    return [0, *(is_new.nonzero()[:, 0] + 1).tolist()]


def row_shares(rows: Sequence[TokenRow], layout: TokenLayout) -> Float[Tensor, "rows tokens"]:
    """Return the share of each run of tokens that lies in each row: 1, 0, or a part where a row cuts it.

    >>> tokens = Tokens(torch.ones(1, 1), torch.ones(2, 1), None, torch.ones(2))
    >>> rows = [TokenRow(1, 1, (), ()), TokenRow(2, 4, (), ())]
    >>> row_shares(rows, TokenLayout(tokens, (2, 4))).tolist()
    [[0.5, 0.0], [0.5, 1.0]]
    """
    shares = torch.zeros(len(rows), len(layout.ends), dtype=torch.float64)
    starts, ends = (0, *layout.ends[:-1]), layout.ends
    for index, row in enumerate(rows):
        first, last = bisect_left(ends, row.first), bisect_left(ends, row.last)
        shares[index, first : last + 1] = 1.0
        for run in {first, last}:
            inside = min(ends[run], row.last) - max(starts[run], row.first - 1)
            shares[index, run] = inside / (ends[run] - starts[run])
    return shares


def _select_ranges(count: int, most: int, preferred_indices: Sequence[int]) -> list[IndexRange]:
    """Return the indices 0 to count-1 singly, or about `most` of them and the ranges that are left out.

    >>> _select_ranges(4, 5, ()), _select_ranges(9, 4, [5])
    ([(0, 0), (1, 1), (2, 2), (3, 3)], [(0, 0), (1, 1), (2, 4), (5, 5), (6, 7), (8, 8)])
    """
    if count <= most + 1:  # one more than allowed takes no more room than a range that leaves it out
        return [(index, index) for index in range(count)]
    single = {*preferred_indices[:MAX_CHANGED_ROWS], count - 1}
    single |= set([index for index in range(count) if index not in single][: most - len(single)])
    ranges, last = [], -1
    for index in sorted(single):
        if index > last + 1:
            ranges.append((last + 1, index - 1))
        ranges.append((index, index))
        last = index
    return ranges


def _heading(first: int, last: int, values_only: bool) -> str:
    if first != last:
        return "⋯"
    return str(first + 1) if values_only else str(first) if first else "logit"
