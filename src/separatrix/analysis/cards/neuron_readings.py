"""Attention weights of one mechanism, and the readings of every neuron for one draw of signs, at any n."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from separatrix.analysis.cards.token_rows import LayoutPair, TokenLayout, format_positions, run_starts
from separatrix.constructions import Construction
from separatrix.core.errors import EngineRefusal
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.exact.engines.grouped import LARGEST_DRAWN
from separatrix.exact.outputs.attention import ELEMENTS, TokenBatch, attend, is_linear, rounding
from separatrix.exact.reader import draw_signs
from separatrix.mechanisms import Mechanism

MAX_NEURONS = 1000
MAX_QUERY_KINDS = 3
"""Kinds of query whose weights are shown."""


@dataclass(frozen=True)
class QueryKind:
    """A run of equal queries: the first and the last index, counted from 0."""

    first: int
    last: int
    positions: str
    """The positions of the tokens that are these queries, counted from 1; empty where no token is one."""


@dataclass(frozen=True)
class NeuronReadings:
    """The attention of one mechanism on one label, and the neurons that read it."""

    weights: Float[Tensor, "kinds tokens"] | None
    """The weights that a query of each kind gives to the runs of tokens: the first query of its kind, or the
    last one where positions matter.

    None for a mechanism that is not linear in the values, and so has no weights."""
    readings: tuple[float, ...]
    """The reading of each neuron, the largest over the queries, in units of the margin.

    A reading that rounding errors do not separate from the threshold is set to it: nearly all are ties."""
    probe: float
    """The reading with all signs +, or with the signs that define margins, in the units of the tokens."""
    slack: float
    """A bound on the error of the readings, in the units of the tokens."""


ReadingPair = tuple[NeuronReadings, NeuronReadings]
"""The readings for D0 and for D1."""


@dataclass(frozen=True)
class SignDraw:
    """One draw of the reader's signs, by a seed."""

    construction: Construction
    seed: int

    def __post_init__(self) -> None:
        m = self.construction.m
        if m > MAX_NEURONS:
            raise EngineRefusal(f"m={m:,} is more neurons than a picture has, {MAX_NEURONS:,}")

    def for_features(self) -> Float[Tensor, "neurons features"]:
        """Return a sign for every feature: those of `FourLayerNetwork` with this seed."""
        return draw_signs(self.construction, self.seed)

    def for_tokens(self, layout: TokenLayout) -> Float[Tensor, "tokens neurons"]:
        """Return the signs of tokens that carry a sign and nothing else; the mean over a run of them."""
        point, counts = self.construction, layout.counts
        if point.m * point.n <= ELEMENTS:
            return torch.stack([part.mean(1) for part in torch.split(self.for_features(), counts, dim=1)])
        # Too many signs to draw one by one: draw the sum over each run from its binomial distribution.
        if point.n > LARGEST_DRAWN:
            raise EngineRefusal("signs of so many tokens cannot be drawn", ("closed",))
        return torch.from_numpy(point.group_signs(np.random.default_rng(self.seed), point.m, np.array(counts)))


def find_query_kinds(layouts: LayoutPair) -> list[QueryKind]:
    """Return the first runs of queries that are equal in both D0 and D1.

    If D0 and D1 have different numbers of queries, only the first query of each is shown.
    """
    queries, layout = [label.tokens.queries for label in layouts], layouts[1]
    if queries[0].shape != queries[1].shape:
        return [QueryKind(0, 0, "")]
    starts, ends = [*run_starts(queries), len(queries[0])], (0, *layout.ends)
    return [
        QueryKind(a, b - 1, format_positions(ends[a] + 1, ends[b]) if layout.is_self_attention else "")
        for a, b in pairwise(starts[: MAX_QUERY_KINDS + 1])
    ]


def read_neurons(mechanism: Mechanism, layouts: LayoutPair, signs: SignDraw) -> ReadingPair:
    """Return the readings for D0 and D1, or raise EngineRefusal."""
    kinds = find_query_kinds(layouts)
    d0, d1 = (_read_label(mechanism, layout, kinds, signs) for layout in layouts)
    return d0, d1


def _read_label(mechanism: Mechanism, layout: TokenLayout, kinds: list[QueryKind], signs: SignDraw) -> NeuronReadings:
    construction, tokens = signs.construction, layout.tokens
    is_counted, has_weights = tokens.counts is not None, is_linear(mechanism)

    def attend_with(queries: Tensor, values: Tensor) -> Tensor:
        counts = None if tokens.counts is None else tokens.counts[None]
        return attend(mechanism, queries[None], tokens.keys[None], values[None], counts, tokens.last)[0]

    # Equal queries get equal rows, so one of each run is enough; without counts, positions may matter.
    queries = tokens.queries[run_starts([tokens.queries])] if is_counted else tokens.queries
    if has_weights or tokens.values is None:
        # Attention is linear in the values: the neurons are applied to the values, which are fewer numbers.
        values = signs.for_tokens(layout) if tokens.values is None else tokens.values @ signs.for_features().T
        outputs = attend_with(queries, torch.cat([values, tokens.probe[:, None]], -1))
    else:
        rows = attend_with(queries, tokens.values)
        outputs = torch.cat([rows @ signs.for_features().T, rows.sum(-1, keepdim=True)], -1)
    if not outputs.isfinite().all():
        raise EngineRefusal(f"{mechanism.spelled} cannot process these tokens: its scores overflow or divide by zero")
    weights = None
    if has_weights:
        # With unit vectors as values, the outputs are the weights.
        units = torch.eye(len(tokens.keys), dtype=outputs.dtype)
        if is_counted:
            weights = attend_with(tokens.queries[[kind.first for kind in kinds]], units)
        else:
            by_query = attend_with(queries, units)
            is_ordered = not mechanism.order_free(*tokens.keys.shape)
            lasts = [kind.last if len(by_query) == len(queries) else len(by_query) - 1 for kind in kinds]
            weights = by_query[lasts if is_ordered else [kind.first for kind in kinds]]
    slack = rounding(mechanism, TokenBatch.of([tokens]), construction)
    peaks, threshold = outputs.amax(0), construction.threshold
    is_tie = (peaks - threshold).abs() <= slack
    readings = peaks.where(~is_tie, torch.tensor(threshold, dtype=peaks.dtype)) / construction.unit
    return NeuronReadings(weights, tuple(readings[:-1].tolist()), float(peaks[-1]), slack)
