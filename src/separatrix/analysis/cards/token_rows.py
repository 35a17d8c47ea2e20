"""The tokens of D0 and D1 as rows of a picture: equal ones that follow each other are one row, at any n."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from separatrix.constructions import Construction, ExactConstruction, Label, Tokens
from separatrix.core.errors import EngineRefusal
from separatrix.core.numbers.spelling import whole_for_people
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.exact.outputs.tokens import LARGEST_COUNTED

MOST_TOKENS = 2000
"""More tokens than this, or more distinct ones where they are counted, are not pictured one by one."""
MOST_NUMBERS = 1 << 22
"""Numbers in all of them."""
MOST_ROWS, MOST_COLUMNS = 5, 5
LABELS: tuple[Label, Label] = (0, 1)
Table = Float[Tensor, "tokens columns"]
Span = tuple[int, int]


@dataclass(frozen=True)
class Laid:
    """The tokens of one label in their order, the special one first: equal ones once, and where they end."""

    tokens: Tokens
    ends: tuple[int, ...]
    """The place of the last token of each, counted from 1: 1, 2, 3, … where all are written out."""

    @property
    def total(self) -> int:
        """How many tokens there are."""
        return self.ends[-1]

    @property
    def attends_itself(self) -> bool:
        """Whether every token asks."""
        return not self.tokens.last and len(self.tokens.queries) == len(self.ends)

    @property
    def counts(self) -> list[int]:
        """How many equal tokens each stands for."""
        return [b - a for a, b in pairwise((0, *self.ends))]


@dataclass(frozen=True)
class Row:
    """Equal tokens that follow each other, counted from 1, or tokens that are left out."""

    first: int
    last: int
    cells: tuple[float, ...]
    """One number a column, not a number where columns are left out; none where the tokens are left out."""
    changed: tuple[bool, ...]
    """Which of them is another number in the other dataset."""

    @property
    def count(self) -> int:
        """How many tokens."""
        return self.last - self.first + 1

    @property
    def tokens(self) -> str:
        """Which tokens: `1`, `2–10`, `2–10¹⁶`."""
        return span_of_tokens(self.first, self.last)


@dataclass(frozen=True)
class TokenTable:
    """Rows of D0 and of D1, and what their columns are."""

    rows: tuple[tuple[Row, ...], tuple[Row, ...]]
    columns: tuple[str, ...]
    logit_unit: str
    differences: int


def span_of_tokens(first: int, last: int) -> str:
    """Places of tokens as people read them.

    >>> span_of_tokens(1, 1), span_of_tokens(2, 10), span_of_tokens(2, 10**16)
    ('1', '2–10', '2–10¹⁶')
    """
    names = whole_for_people(first), whole_for_people(last)
    return names[0] if first == last else "–".join(names)


def laid_out(construction: Construction) -> tuple[Laid, Laid]:
    """Distinct tokens with their counts where there are such, else all of them; or an EngineRefusal."""
    if not construction.has_groups:
        return all_tokens(construction, construction.name)
    if construction.n > LARGEST_COUNTED:
        raise EngineRefusal("counts of so many tokens do not fit a picture; take n=1e300 or less")
    _refuse_many(construction, construction.group_count(), "distinct tokens")
    d0, d1 = (
        Laid(
            construction.token_groups(label, torch.float64),
            tuple(accumulate(construction.group_counts(label))),
        )
        for label in LABELS
    )
    return d0, d1


def all_tokens(construction: Construction, who: str) -> tuple[Laid, Laid]:
    """Every token by itself; `who` is what needs that."""
    if construction.n > MOST_TOKENS:
        raise EngineRefusal(
            f"{who} needs every token, and n={construction.n:,} is more than a picture has, {MOST_TOKENS:,}"
        )
    _refuse_many(construction, construction.n, "tokens")
    found = [construction.dense(label, 0, torch.float64) for label in LABELS]
    d0, d1 = (Laid(each, tuple(range(1, len(each.keys) + 1))) for each in found)
    return d0, d1


def is_counted(laid: tuple[Laid, Laid]) -> bool:
    """Whether equal tokens are laid out once."""
    return laid[0].tokens.counts is not None


def _refuse_many(construction: Construction, count: int, what: str) -> None:
    if count > MOST_TOKENS or count * construction.dense_width() > MOST_NUMBERS:
        raise EngineRefusal(
            f"{construction.name} has {count:,} {what} of {construction.dense_width():,} numbers here, "
            f"more than a picture has: {MOST_TOKENS:,} of them and {MOST_NUMBERS:,} numbers in all"
        )


def token_table(construction: Construction, laid: tuple[Laid, Laid]) -> TokenTable:
    """What is to be seen of D0 and D1."""
    in_log_n = not isinstance(construction, ExactConstruction) or construction.logit_base is not None
    carried_alone = all(_keys_are_carried(each.tokens) for each in laid)
    tables = [_table(each.tokens, construction, in_log_n, carried_alone) for each in laid]
    columns = _spans(tables[0].shape[1], MOST_COLUMNS, ())
    ends = [list(each.ends) for each in laid]
    together = laid[0].total == laid[1].total
    if together and ends[0] != ends[1]:
        common = sorted({*ends[0], *ends[1]})
        places = [[bisect_left(own, end) for end in common] for own in ends]
        tables = [table[place] for table, place in zip(tables, places, strict=True)]
        ends = [common, common]
    d0, d1 = (_rows(tables, ends, label, columns, together) for label in LABELS)
    return TokenTable(
        (d0, d1),
        tuple(_heading(first, last, carried_alone) for first, last in columns),
        "log n" if in_log_n else "",
        _differences(tables, ends[0]) if together else 0,
    )


def _keys_are_carried(tokens: Tokens) -> bool:
    """Whether keys are the values or their sums, so that the values say all there is to say."""
    if tokens.values is None:
        return False
    made = (tokens.values, tokens.values.sum(-1, keepdim=True))
    return any(each.shape == tokens.keys.shape and torch.equal(each, tokens.keys) for each in made)


def _table(tokens: Tokens, construction: Construction, in_log_n: bool, carried_alone: bool) -> Table:
    """A row for each token: the logit of the first query, unless `carried_alone`, and what it carries."""
    if carried_alone and tokens.values is not None:
        return tokens.values / construction.unit
    unit = math.log(construction.n) if in_log_n else 1.0
    logits = (tokens.keys @ tokens.queries[0])[:, None] / unit
    carried = logits[:, :0] if tokens.values is None else tokens.values / construction.unit
    return torch.cat([logits, carried], -1)


def _differences(tables: list[Table], ends: list[int]) -> int:
    """In how many numbers D0 and D1 differ."""
    differ = (tables[0] != tables[1]).sum(-1).tolist()
    return sum(count * (b - a) for count, (a, b) in zip(differ, pairwise((0, *ends)), strict=True))


def _rows(
    tables: list[Table], ends: list[list[int]], label: Label, columns: list[Span], together: bool
) -> tuple[Row, ...]:
    """The tokens of a dataset; where both have as many, equal ones are those that are equal in both."""
    table, other, own = tables[label], tables[1 - label], ends[label]
    new = (table[1:] != table[:-1]).any(-1)
    differs = torch.zeros_like(table, dtype=torch.bool)
    if together:
        new, differs = new | (other[1:] != other[:-1]).any(-1), table != other
    starts = [0, *(new.nonzero()[:, 0] + 1).tolist(), len(table)]
    places = differs.any(-1).tolist()
    changed = [place for place, start in enumerate(starts[:-1]) if places[start]]
    rows = []
    for first, last in _spans(len(starts) - 1, MOST_ROWS, changed):
        start, end = starts[first], starts[last + 1]
        shown = columns if first == last else []
        rows.append(
            Row(
                own[start - 1] + 1 if start else 1,
                own[end - 1],
                tuple(float(table[start, a]) if a == b else math.nan for a, b in shown),
                tuple(a == b and bool(differs[start, a]) for a, b in shown),
            )
        )
    return tuple(rows)


def shares(rows: Sequence[Row], laid: Laid) -> Float[Tensor, "rows tokens"]:
    """How much of each of the laid-out tokens lies in each row: 1, 0, or a part where a row cuts it.

    >>> tokens = Tokens(torch.ones(1, 1), torch.ones(2, 1), None, torch.ones(2))
    >>> rows = [Row(1, 1, (), ()), Row(2, 4, (), ())]
    >>> shares(rows, Laid(tokens, (2, 4))).tolist()
    [[0.5, 0.0], [0.5, 1.0]]
    """
    found = torch.zeros(len(rows), len(laid.ends), dtype=torch.float64)
    starts, ends = (0, *laid.ends[:-1]), laid.ends
    for place, row in enumerate(rows):
        first, last = bisect_left(ends, row.first), bisect_left(ends, row.last)
        found[place, first : last + 1] = 1.0
        for cut in {first, last}:
            there = min(ends[cut], row.last) - max(starts[cut], row.first - 1)
            found[place, cut] = there / (ends[cut] - starts[cut])
    return found


def _spans(count: int, most: int, wanted: Sequence[int]) -> list[Span]:
    """Places 0 to count-1, each by itself, or so many of them and between them what is left out.

    >>> _spans(4, 5, ()), _spans(9, 4, [5])
    ([(0, 0), (1, 1), (2, 2), (3, 3)], [(0, 0), (1, 1), (2, 4), (5, 5), (6, 7), (8, 8)])
    """
    if count <= most + 1:
        return [(place, place) for place in range(count)]
    shown = {*wanted[:3], count - 1}
    shown |= set([place for place in range(count) if place not in shown][: most - len(shown)])
    spans, last = [], -1
    for place in sorted(shown):
        if place > last + 1:
            spans.append((last + 1, place - 1))
        spans.append((place, place))
        last = place
    return spans


def _heading(first: int, last: int, carried_alone: bool) -> str:
    if first != last:
        return "⋯"
    return str(first + 1) if carried_alone else str(first) if first else "logit"
