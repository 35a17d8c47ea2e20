"""What one mechanism gives each token, and what every neuron of one drawn reader makes of it, at any n."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from separatrix.analysis.cards.token_rows import Laid, span_of_tokens
from separatrix.constructions import Construction
from separatrix.core.errors import EngineRefusal
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.exact.engines.grouped import LARGEST_DRAWN
from separatrix.exact.outputs.attention import ELEMENTS, TokenBatch, attend, is_linear, rounding
from separatrix.exact.reader import draw_signs
from separatrix.mechanisms import Mechanism

MOST_NEURONS = 1000
MOST_QUERIES = 3
"""Kinds of query whose weights are shown."""


@dataclass(frozen=True)
class QueryKind:
    """Equal queries that follow each other: the first and the last of them, counted from 0."""

    first: int
    last: int
    span: tuple[int, int] | None
    """The first and the last token that asks so, counted from 1; None where no tokens ask."""

    @property
    def tokens(self) -> str:
        """Which tokens ask; empty where none do."""
        return "" if self.span is None else span_of_tokens(*self.span)


@dataclass(frozen=True)
class Received:
    """What attention makes of one label, and the neurons of that."""

    weights: Float[Tensor, "kinds tokens"] | None
    """What a query of each kind gives the laid-out tokens, equal ones together: the first of its kind, and
    where places matter the last.

    None where a mechanism is not linear in what tokens carry, and so has no weights."""
    readings: tuple[float, ...]
    """What each neuron reads, the largest over the queries, in units of the margin.

    Too close to the threshold to call is taken to be at it: nearly all that is so close is a tie."""
    probe: float
    """The same with all signs +, or those by which margins are measured, in the units of the tokens."""
    slack: float
    """How far these may be off, in the units of the tokens."""


@dataclass(frozen=True)
class DrawnSigns:
    """One draw of the reader's signs, by a seed."""

    construction: Construction
    seed: int

    def __post_init__(self) -> None:
        if self.construction.m > MOST_NEURONS:
            raise EngineRefusal(
                f"m={self.construction.m:,} is more neurons than a picture has, {MOST_NEURONS:,}"
            )

    def of_features(self) -> Float[Tensor, "neurons features"]:
        """A sign for every feature: those of `FourLayerNetwork` with this seed."""
        return draw_signs(self.construction, self.seed)

    def of_tokens(self, laid: Laid) -> Float[Tensor, "tokens neurons"]:
        """Where tokens carry their own sign and nothing else: that, and of equal ones the mean."""
        point, counts = self.construction, laid.counts
        if point.m * point.n <= ELEMENTS:
            parts = torch.split(self.of_features(), counts, dim=1)
            return torch.stack([part.mean(1) for part in parts])
        if point.n > LARGEST_DRAWN:
            raise EngineRefusal("signs of so many tokens cannot be drawn", ("closed",))
        rng = np.random.default_rng(self.seed)
        return torch.from_numpy(point.group_signs(rng, point.m, np.array(counts)))


def kinds_of_query(laid: tuple[Laid, Laid]) -> list[QueryKind]:
    """Queries that are equal in D0 as in D1 are of one kind; if one has fewer, the first of both are one."""
    queries = [each.tokens.queries for each in laid]
    if queries[0].shape != queries[1].shape:
        return [QueryKind(0, 0, None)]
    starts, ends = [*_starts(queries), len(queries[0])], (0, *laid[1].ends)
    return [
        QueryKind(a, b - 1, (ends[a] + 1, ends[b]) if laid[1].attends_itself else None)
        for a, b in pairwise(starts)
    ]


def _starts(tables: Sequence[Tensor]) -> list[int]:
    """Where a row differs from the one before it, in one of the tables."""
    new = torch.stack([(table[1:] != table[:-1]).any(-1) for table in tables]).any(0)
    return [0, *(new.nonzero()[:, 0] + 1).tolist()]


def read_neurons(
    construction: Construction, mechanism: Mechanism, laid: tuple[Laid, Laid], signs: DrawnSigns
) -> tuple[Received, Received]:
    """What each label gives these neurons, or an EngineRefusal."""
    kinds = kinds_of_query(laid)
    d0, d1 = (_read(construction, mechanism, each, kinds, signs) for each in laid)
    return d0, d1


def _read(
    construction: Construction, mechanism: Mechanism, laid: Laid, kinds: list[QueryKind], signs: DrawnSigns
) -> Received:
    tokens = laid.tokens
    counted, linear = tokens.counts is not None, is_linear(mechanism)

    def attended(queries: Tensor, values: Tensor) -> Tensor:
        counts = None if tokens.counts is None else tokens.counts[None]
        return attend(mechanism, queries[None], tokens.keys[None], values[None], counts, tokens.last)[0]

    asked = tokens.queries[_starts([tokens.queries])] if counted else tokens.queries
    if linear or tokens.values is None:
        seen = signs.of_tokens(laid) if tokens.values is None else tokens.values @ signs.of_features().T
        found = attended(asked, torch.cat([seen, tokens.probe[:, None]], -1))
    else:
        rows = attended(asked, tokens.values)
        found = torch.cat([rows @ signs.of_features().T, rows.sum(-1, keepdim=True)], -1)
    if not found.isfinite().all():
        raise EngineRefusal(
            f"{mechanism.spelled} cannot bear these tokens: its scores overflow or divide by zero"
        )
    weights, few = None, kinds[:MOST_QUERIES]
    if linear:
        units = torch.eye(len(tokens.keys), dtype=found.dtype)
        firsts = [kind.first for kind in few]
        if counted:
            weights = attended(tokens.queries[firsts], units)
        else:
            given = attended(asked, units)
            ordered = not mechanism.order_free(*tokens.keys.shape)
            lasts = [kind.last if len(given) == len(asked) else len(given) - 1 for kind in few]
            weights = given[lasts if ordered else firsts]
    slack = rounding(mechanism, TokenBatch.of([tokens]), construction)
    return Received(weights, *_called(construction, found.amax(0), slack), slack)


def _called(construction: Construction, peaks: Tensor, slack: float) -> tuple[tuple[float, ...], float]:
    """Readings in units of the margin, ties at the threshold, and the probe."""
    tie = (peaks - construction.threshold).abs() <= slack
    unit, threshold = construction.unit, construction.threshold / construction.unit
    readings = (peaks / unit).where(~tie, torch.tensor(threshold, dtype=peaks.dtype))
    return tuple(readings[:-1].tolist()), float(peaks[-1])
