"""Tokens through a mechanism: one set seen through many sign vectors, or many sets at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from separatrix.constructions import Construction, Tokens
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms import AskedLast, Causality, Mechanism, ScoreMechanism

ELEMENTS = 1 << 22
"""Pre-activations held at once."""
PAIRS = 1 << 30
"""Queries times keys of one call, where there may be several: only between calls is Ctrl-C heard."""
SLACK, LOGIT_SLACK = 64, 8
"""A pre-activation is too close to the threshold to call within SLACK units of rounding, and within so many
more for each unit of the largest logit, whose rounding the scores magnify."""


def attend(
    mechanism: Mechanism,
    q: Float[Tensor, "batch queries width"],
    k: Float[Tensor, "batch keys width"],
    v: Float[Tensor, "batch keys features"],
    counts: Float[Tensor, "batch keys"] | None = None,
    last: bool = False,
) -> Float[Tensor, "batch rows features"]:
    """Attention of one head, causal if the mechanism is.

    Where places matter, a single query stands at every place, or with `last` each after all tokens: alone, if
    it can be asked so, else with itself at all places before.
    """
    order_free = mechanism.order_free(k.shape[1], k.shape[2])
    if last and not order_free:
        queries, asked = q.shape[1], mechanism.asked_last(k.shape[1], k.shape[2])
        k, v = k.repeat_interleave(queries, dim=0), v.repeat_interleave(queries, dim=0)
        counts = None if counts is None else counts.repeat_interleave(queries, dim=0)
        q = q.flatten(0, 1)[:, None]
        if asked is AskedLast.AFTER_OTHERS:
            q = q.expand(-1, k.shape[1], -1)
        elif asked is AskedLast.REVERSED:
            k, v, counts = k.flip(1), v.flip(1), None if counts is None else counts.flip(1)
        first = k.shape[1] - 1 if asked is AskedLast.PLACED else 0
        rows = _attended(mechanism, q, k, v, counts, first)[:, -1]
        return rows.reshape(-1, queries, rows.shape[-1])
    if not order_free and q.shape[1] == 1:
        q = q.expand(-1, k.shape[1], -1)
    return _attended(mechanism, q, k, v, counts)


def _attended(
    mechanism: Mechanism, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None, first: int = 0
) -> Tensor:
    counted = None if counts is None else counts[:, None]
    place = {"first": first} if first else {}
    causal = mechanism.causality is Causality.ALWAYS
    rows = q.shape[1]
    if isinstance(mechanism, ScoreMechanism) and mechanism.permutation_equivariant and not causal:
        rows = max(1, PAIRS // (k.shape[0] * k.shape[1]))
    with torch.no_grad():
        found = [
            mechanism.fitted(part[:, None], k[:, None], v[:, None], counted, causal, **place)[:, 0]
            for part in torch.split(q, rows, dim=1)
        ]
    return found[0] if len(found) == 1 else torch.cat(found, dim=1)


@dataclass(frozen=True)
class TokenBatch:
    """Token sets of equal shape side by side, as mechanisms take them."""

    queries: Float[Tensor, "batch queries width"]
    keys: Float[Tensor, "batch keys width"]
    values: Float[Tensor, "batch keys features"] | None
    probe: Float[Tensor, "batch keys"]
    counts: Float[Tensor, "batch keys"] | None
    last: bool

    @classmethod
    def of(cls, sets: Sequence[Tokens]) -> TokenBatch:
        """A batch of these token sets."""
        stacked: dict[tuple[int, ...], Tensor] = {}  # what is one tensor in all sets stays one

        def together(parts: Sequence[Tensor]) -> Tensor:
            key = tuple(map(id, parts))
            if key not in stacked:
                stacked[key] = parts[0][None] if len(parts) == 1 else torch.stack(list(parts))
            return stacked[key]

        return cls(
            together([x.queries for x in sets]),
            together([x.keys for x in sets]),
            None if sets[0].values is None else together([x.values for x in sets if x.values is not None]),
            together([x.probe for x in sets]),
            None if sets[0].counts is None else together([x.counts for x in sets if x.counts is not None]),
            sets[0].last,
        )

    @property
    def sizes(self) -> Float[Tensor, "batch keys"]:
        """The most that each key can add to a pre-activation, whatever the signs."""
        return (
            torch.ones_like(self.probe)
            if self.values is None
            else torch.linalg.vector_norm(self.values, 1, -1)
        )

    def attend(self, mechanism: Mechanism, values: Tensor) -> Float[Tensor, "batch rows columns"]:
        """What every query gets of these values."""
        return attend(mechanism, self.queries, self.keys, values, self.counts, self.last)


@dataclass(frozen=True)
class Reading:
    """What sign vectors read off each token set of a batch."""

    peaks: Float[Tensor, "batch columns"]
    """The largest pre-activation over the rows, for each sign vector."""
    probes: Float[Tensor, " batch"]
    """The same with the signs by which margins are measured."""
    slack: float
    """How far they may be off."""


def read_both(
    mechanism: Mechanism,
    batches: list[TokenBatch],
    signs: Float[Tensor, "batch columns features"],
    construction: Construction,
) -> list[Reading]:
    """What these sign vectors read off D0 and D1, in one pass.

    Where they differ in their values alone these stand side by side, else the token sets do.
    Few sign vectors are applied to the values before attending; where the mechanism is linear in these, many
    are applied to what it makes of them.
    """
    d0, d1 = batches
    columns = [_Columns(mechanism, batch, signs) for batch in batches]
    if torch.equal(d0.queries, d1.queries) and torch.equal(d0.keys, d1.keys):
        values = [column.values for column in columns]
        both = d0.attend(mechanism, torch.cat(values, dim=-1))
        attended = torch.split(both, [value.shape[-1] for value in values], dim=-1)
    elif d0.keys.shape == d1.keys.shape and d0.queries.shape == d1.queries.shape:
        q, k = torch.cat([d0.queries, d1.queries]), torch.cat([d0.keys, d1.keys])
        v = torch.cat([column.values for column in columns])
        counts = None if d0.counts is None or d1.counts is None else torch.cat([d0.counts, d1.counts])
        attended = attend(mechanism, q, k, v, counts, d0.last).chunk(2)
    else:
        attended = tuple(column.batch.attend(mechanism, column.values) for column in columns)
    return [each.read(found, construction) for each, found in zip(columns, attended, strict=True)]


def is_linear(mechanism: Mechanism) -> bool:
    """Whether columns of values may be added, multiplied and put together as one likes."""
    return mechanism.linear_in_values and mechanism.fixed_features is None


class _Columns:
    """What a mechanism is given as values so that sign vectors can be read off the result."""

    def __init__(self, mechanism: Mechanism, batch: TokenBatch, signs: Tensor) -> None:
        self.mechanism, self.batch, self.signs = mechanism, batch, signs
        linear, values = is_linear(mechanism), batch.values
        exact = not _is_format(signs.dtype)
        self.before = values is None or not (linear and exact) or signs.shape[1] < values.shape[-1]
        self.weighed = linear and exact and not mechanism.normalised
        parts = [batch.sizes[..., None]] if self.weighed else []
        if values is None or self.before:
            parts = [signs.mT if values is None else values @ signs.mT, batch.probe[..., None], *parts]
        else:
            parts = [values, *parts]
        self.values = torch.cat(parts, dim=-1)

    def read(self, attended: Tensor, construction: Construction) -> Reading:
        """The pre-activations in what the mechanism made of the values."""
        sizes = attended[..., -1:] if self.weighed else None
        attended = attended[..., :-1] if self.weighed else attended
        slack = rounding(self.mechanism, self.batch, construction, sizes)
        if self.before:
            found = attended.amax(1)
            return Reading(found[:, :-1], found[:, -1], slack)
        return Reading((attended @ self.signs.mT).amax(1), attended.sum(-1).amax(1), slack)


class View:
    """What a mechanism makes of one set of tokens, seen through sign vectors."""

    def __init__(self, mechanism: Mechanism, tokens: Tokens, columns: int) -> None:
        self.mechanism, self.tokens = mechanism, tokens
        self._attended: Tensor | None = None
        if tokens.values is not None and columns >= tokens.values.shape[-1]:
            self._attended = self._attend(tokens.values)
            self.probe = float(self._attended.sum(-1).amax())

    def peaks(self, projected: Callable[[Tokens], Tensor], signs: Tensor) -> Float[Tensor, " columns"]:
        """The largest pre-activation over the rows, one for each sign vector.

        Few sign vectors are applied to the values before attending, many after: attention costs
        n^2 (width + the lesser of features and sign vectors).
        """
        if self._attended is not None:
            step = max(1, ELEMENTS // max(1, signs.shape[0]))
            parts = [(rows @ signs.mT).amax(0) for rows in torch.split(self._attended, step)]
            return torch.stack(parts).amax(0)
        columns = torch.cat([projected(self.tokens), self.tokens.probe[:, None]], dim=-1)
        peaks = self._attend(columns).amax(0)
        self.probe = float(peaks[-1])
        return peaks[:-1]

    def _attend(self, values: Tensor) -> Float[Tensor, "rows columns"]:
        return TokenBatch.of([self.tokens]).attend(self.mechanism, values[None])[0]


def probe_peak(mechanism: Mechanism, tokens: Tokens) -> float:
    """The pre-activation that margins are measured on: the largest over the rows, with all signs +."""
    return float(TokenBatch.of([tokens]).attend(mechanism, tokens.probe[None, :, None]).amax())


def rounding(
    mechanism: Mechanism, batch: TokenBatch, construction: Construction, weighed: Tensor | None = None
) -> float:
    """How far a pre-activation may be off, by the size of the logits and of what is added up.

    `weighed` is what the mechanism makes of the sizes, where that is known.
    """
    dtype = batch.keys.dtype
    if _is_format(dtype):
        return 0.0  # the format's own answer is the question
    sizes = batch.sizes
    size = float(sizes.max())
    if not mechanism.normalised:
        weighed = batch.attend(mechanism, sizes[..., None]) if weighed is None else weighed
        size = max(size, float(weighed.abs().max()))
    logits = float(batch.queries.norm(dim=-1).max() * batch.keys.norm(dim=-1).max())
    units = (SLACK + LOGIT_SLACK * logits) * mechanism.magnified_by_fitting
    return units * torch.finfo(dtype).eps * (abs(construction.threshold) + construction.unit + size)


def _is_format(dtype: torch.dtype) -> bool:
    """Whether numbers are so short that how they are added up is part of the answer."""
    return torch.finfo(dtype).bits <= 16


def float_margin(v0: float, v1: float, size: float) -> float:
    """v1 - v0, or 0 where that is no more than rounding leaves of sums of this size.

    >>> float_margin(1.0, 1.5, 1.5), float_margin(1.0, 1.0 + 2**-50, 1.0)
    (0.5, 0.0)
    """
    margin = v1 - v0
    return 0.0 if abs(margin) <= SLACK * torch.finfo(torch.float64).eps * size else margin
