"""A construction at its reference point, as one looks at it: tokens, attention, the reader's neurons."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from separatrix.constructions import Construction, ExactConstruction, Label, Tokens, construction_named
from separatrix.mechanisms import mechanism_named
from separatrix.reader import FourLayerNetwork
from separatrix.tensors import Float, Tensor, torch

MECHANISMS = ("softmax", "linear")
UNNORMALISED = "identity-features:normalised=no"
"""Shown besides where neither of the two tells D0 from D1."""
NAMES = {"softmax": "softmax", "linear": "linear attention", UNNORMALISED: "unnormalised linear attention"}
"""As sentences call them."""
SEED = 0
"""Of the reader's signs."""
MOST_ROWS, MOST_COLUMNS = 5, 5
Table = Float[Tensor, "tokens columns"]
Span = tuple[int, int]
LABELS: tuple[Label, Label] = (0, 1)


@dataclass(frozen=True)
class Row:
    """Equal tokens that follow each other, counted from 1, or tokens that are left out."""

    first: int
    last: int
    cells: tuple[float, ...]
    """One number a column, not a number where columns are left out; none where the tokens are left out."""
    changed: tuple[bool, ...]
    """Which of them is another number in the other dataset."""
    weights: Mapping[str, float]
    """What the first query gives these tokens together, by mechanism."""

    @property
    def tokens(self) -> str:
        """Which tokens: `1`, `2–10`."""
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"


@dataclass(frozen=True)
class Dataset:
    """D0 or D1: its tokens, and what every neuron of the reader makes of them."""

    label: Label
    rows: tuple[Row, ...]
    readings: Mapping[str, tuple[float, ...]]
    """By mechanism: what each neuron reads, the largest over the queries."""


@dataclass(frozen=True)
class Illustration:
    """D0 beside D1, what attention gives each token, and which neurons pass the threshold."""

    construction: str
    title: str
    point: Mapping[str, int | str]
    columns: tuple[str, ...]
    """`logit`, unless keys are made of what tokens carry; features they carry; `⋯` for those left out."""
    logit_unit: str
    """Empty for plain numbers, as is `unit`."""
    unit: str
    """In which what is carried, the readings and the threshold are."""
    datasets: tuple[Dataset, Dataset]
    differences: int
    """In how many numbers D0 and D1 differ, shown or not; 0 where they have not as many tokens."""
    threshold: float

    @property
    def finding(self) -> str:
        """Who tells D0 from D1 with these signs, as a sentence."""
        told = [NAMES.get(name, name) for name in self.mechanisms if self.tells_apart(name)]
        others = [NAMES.get(name, name) for name in self.mechanisms if not self.tells_apart(name)]
        rest = f"neither {' nor '.join(others)}" if len(others) > 1 else "".join(others)
        if not told:
            said = f"{rest} tells D0 from D1."
        else:
            said = f"{' and '.join(told)} {'tells' if len(told) == 1 else 'tell'} D0 from D1"
            said += f", {rest} {'does' if len(others) > 1 else 'does not'}." if others else "."
        return f"{said[0].upper()}{said[1:]}"

    @property
    def difference(self) -> str:
        """In what D0 and D1 differ, in words."""
        if not self.differences:
            return "counts of tokens differ"
        return "one number differs" if self.differences == 1 else f"{self.differences:,} numbers differ"

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Those that are shown."""
        return tuple(self.datasets[0].readings)

    def fired(self, mechanism: str, label: Label) -> int:
        """How many neurons pass the threshold."""
        return sum(reading > self.threshold for reading in self.datasets[label].readings[mechanism])

    def tells_apart(self, mechanism: str) -> bool:
        """Whether this reader, with these signs, is silent on D0 and fires on D1."""
        return self.fired(mechanism, 0) == 0 and self.fired(mechanism, 1) > 0


def illustrate(name: str) -> Illustration:
    """The picture of a construction at its reference point, with one draw of the reader's signs.

    The special token stands first. Softmax and linear attention are shown, and unnormalised linear attention
    where neither of them tells D0 from D1.

    >>> spike = illustrate("spike")
    >>> spike.datasets[1].rows[0].cells[0], spike.differences
    (1.2, 1)
    >>> [(each, spike.fired(each, 0), spike.fired(each, 1) > 0) for each in spike.mechanisms]
    [('softmax', 0, True), ('linear', 0, False)]
    """
    kind = construction_named(name)
    construction = kind.read(kind.example)
    found = _illustrate(construction, MECHANISMS)
    if any(map(found.tells_apart, MECHANISMS)):
        return found
    return _illustrate(construction, (*MECHANISMS, UNNORMALISED))


def _illustrate(construction: Construction, mechanisms: tuple[str, ...]) -> Illustration:
    tokens = [construction.dense(label, 0, torch.float64) for label in LABELS]
    in_log_n = not isinstance(construction, ExactConstruction) or construction.logit_base is not None
    carried_alone = all(map(_keys_are_carried, tokens))
    tables = [_table(each, construction, in_log_n, carried_alone) for each in tokens]
    read = {name: [_read(construction, name, each) for each in tokens] for name in mechanisms}
    columns = _spans(tables[0].shape[1], MOST_COLUMNS, ())
    datasets = [
        Dataset(
            label,
            _rows(tables, label, columns, {name: read[name][label][0] for name in mechanisms}),
            {name: read[name][label][1] for name in mechanisms},
        )
        for label in LABELS
    ]
    return Illustration(
        construction.name,
        construction.title,
        construction.parameters.shown(),
        tuple(_heading(first, last, carried_alone) for first, last in columns),
        "log n" if in_log_n else "",
        "" if construction.unit == 1 else "√(log n)",
        (datasets[0], datasets[1]),
        int((tables[0] != tables[1]).sum()) if tables[0].shape == tables[1].shape else 0,
        construction.threshold / construction.unit,
    )


def _keys_are_carried(tokens: Tokens) -> bool:
    """Whether keys are the values or their sums, so that the values say all there is to say."""
    if tokens.values is None:
        return False
    made = (tokens.values, tokens.values.sum(-1, keepdim=True))
    return any(each.shape == tokens.keys.shape and torch.equal(each, tokens.keys) for each in made)


def _table(tokens: Tokens, construction: Construction, in_log_n: bool, carried_alone: bool) -> Table:
    """A row for each token: the logit of the first query, unless `carried_alone`, and what it carries."""
    unit = math.log(construction.n) if in_log_n else 1.0
    logits = (tokens.keys @ tokens.queries[0])[:, None] / unit
    carried = logits[:, :0] if tokens.values is None else tokens.values / construction.unit
    return carried if carried_alone else torch.cat([logits, carried], -1)


def _read(construction: Construction, name: str, tokens: Tokens) -> tuple[Tensor, tuple[float, ...]]:
    """What the first query gives every token, and what each neuron reads."""
    layers = FourLayerNetwork.draw(mechanism_named(name), construction, SEED).layers(tokens)
    return layers.attention[0], tuple((layers.preactivations.amax(0) / construction.unit).tolist())


def _rows(
    tables: list[Table], label: Label, columns: list[Span], weights: Mapping[str, Tensor]
) -> tuple[Row, ...]:
    """The tokens of a dataset; where both have as many, equal ones are those that are equal in both."""
    table, other = tables[label], tables[1 - label]
    same_size = table.shape == other.shape
    compared = torch.cat(tables, -1) if same_size else table
    starts = [0, *((compared[1:] != compared[:-1]).any(-1).nonzero()[:, 0] + 1).tolist(), len(table)]
    differs = table != other if same_size else torch.zeros_like(table, dtype=torch.bool)
    changed = [place for place, start in enumerate(starts[:-1]) if differs[start].any()]
    rows = []
    for span in _spans(len(starts) - 1, MOST_ROWS, changed):
        first, end = starts[span[0]], starts[span[1] + 1]
        shown = columns if span[0] == span[1] else []
        rows.append(
            Row(
                first + 1,
                end,
                tuple(float(table[first, a]) if a == b else math.nan for a, b in shown),
                tuple(a == b and bool(differs[first, a]) for a, b in shown),
                {name: float(given[first:end].sum()) for name, given in weights.items()},
            )
        )
    return tuple(rows)


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
