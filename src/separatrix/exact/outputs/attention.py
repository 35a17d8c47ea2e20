"""Attention on token sets: one set read by many sign vectors, or many sets in a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from separatrix.constructions import Construction, Tokens
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms import Causality, LastQueryMode, Mechanism, ScoreMechanism

ELEMENTS = 1 << 22
"""The number of pre-activations held at once."""
PAIRS = 1 << 30
"""Queries times keys of one call; longer work is split, since Ctrl-C takes effect between calls only."""
SLACK, LOGIT_SLACK = 64, 8
"""A pre-activation is too close to the threshold to decide within SLACK units of rounding, plus LOGIT_SLACK
for each unit of the largest logit, whose rounding the scores amplify."""


def attend(
    mechanism: Mechanism,
    q: Float[Tensor, "batch queries width"],
    k: Float[Tensor, "batch keys width"],
    v: Float[Tensor, "batch keys features"],
    counts: Float[Tensor, "batch keys"] | None = None,
    last: bool = False,
) -> Float[Tensor, "batch rows features"]:
    """Compute attention of one head, causal if the mechanism is.

    If positions matter, a single query is repeated at every position. With `last`, every query comes after
    all tokens: alone if the mechanism supports that, otherwise repeated at the positions before.
    """
    order_free = mechanism.order_free(k.shape[1], k.shape[2])
    if last and not order_free:
        queries, asked_last = q.shape[1], mechanism.last_query_mode(k.shape[1], k.shape[2])
        k, v = k.repeat_interleave(queries, dim=0), v.repeat_interleave(queries, dim=0)
        counts = None if counts is None else counts.repeat_interleave(queries, dim=0)
        q = q.flatten(0, 1)[:, None]
        if asked_last is LastQueryMode.AFTER_OTHERS:
            q = q.expand(-1, k.shape[1], -1)
        elif asked_last is LastQueryMode.REVERSED:
            k, v, counts = k.flip(1), v.flip(1), None if counts is None else counts.flip(1)
        first = k.shape[1] - 1 if asked_last is LastQueryMode.AT_POSITION else 0
        rows = _attend_heads(mechanism, q, k, v, counts, first)[:, -1]
        return rows.reshape(-1, queries, rows.shape[-1])
    if not order_free and q.shape[1] == 1:
        q = q.expand(-1, k.shape[1], -1)
    return _attend_heads(mechanism, q, k, v, counts)


def _attend_heads(
    mechanism: Mechanism, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None, first: int = 0
) -> Tensor:
    head_counts = None if counts is None else counts[:, None]
    position = {"first": first} if first else {}
    causal = mechanism.causality is Causality.ALWAYS
    attend, rows = mechanism.attend_any_size, q.shape[1]
    if isinstance(mechanism, ScoreMechanism) and mechanism.permutation_equivariant and not causal:
        rows = max(1, PAIRS // (k.shape[0] * k.shape[1]))
    with torch.no_grad():
        parts = [
            attend(part[:, None], k[:, None], v[:, None], head_counts, causal, **position)[:, 0]
            for part in torch.split(q, rows, dim=1)
        ]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


@dataclass(frozen=True)
class TokenBatch:
    """A batch of token sets of equal shape."""

    queries: Float[Tensor, "batch queries width"]
    keys: Float[Tensor, "batch keys width"]
    values: Float[Tensor, "batch keys features"] | None
    probe: Float[Tensor, "batch keys"]
    counts: Float[Tensor, "batch keys"] | None
    last: bool

    @classmethod
    def of(cls, sets: Sequence[Tokens]) -> TokenBatch:
        """Return a batch of these token sets."""
        batches: dict[tuple[int, ...], Tensor] = {}  # a tensor shared by all sets is stacked once

        def batch(parts: Sequence[Tensor]) -> Tensor:
            key = tuple(map(id, parts))
            if key not in batches:
                batches[key] = parts[0][None] if len(parts) == 1 else torch.stack(list(parts))
            return batches[key]

        return cls(
            batch([x.queries for x in sets]),
            batch([x.keys for x in sets]),
            None if sets[0].values is None else batch([x.values for x in sets if x.values is not None]),
            batch([x.probe for x in sets]),
            None if sets[0].counts is None else batch([x.counts for x in sets if x.counts is not None]),
            sets[0].last,
        )

    @property
    def sizes(self) -> Float[Tensor, "batch keys"]:
        """The maximum contribution of each key to a pre-activation, over all signs."""
        return torch.ones_like(self.probe) if self.values is None else torch.linalg.vector_norm(self.values, 1, -1)

    def attend(self, mechanism: Mechanism, values: Tensor) -> Float[Tensor, "batch rows columns"]:
        """Return the attention output of every query for these values."""
        return attend(mechanism, self.queries, self.keys, values, self.counts, self.last)


@dataclass(frozen=True)
class Reading:
    """The readings of sign vectors for each token set of a batch."""

    peaks: Float[Tensor, "batch columns"]
    """The largest pre-activation over the rows, for each sign vector."""
    probes: Float[Tensor, " batch"]
    """The same for the signs that define the margin."""
    slack: float
    """A bound on their rounding error."""


def read_both(
    mechanism: Mechanism,
    batches: list[TokenBatch],
    signs: Float[Tensor, "batch columns features"],
    construction: Construction,
) -> list[Reading]:
    """Read D0 and D1 with these sign vectors, in one attention pass.

    If the labels differ only in their values, the values are concatenated; otherwise the token sets are
    batched. Few sign vectors are applied to the values before attention; many are applied to its output if
    the mechanism is linear in the values.
    """
    d0, d1 = batches
    columns = [_Columns(mechanism, batch, signs) for batch in batches]
    if torch.equal(d0.queries, d1.queries) and torch.equal(d0.keys, d1.keys):
        values = [column.values for column in columns]
        joint = d0.attend(mechanism, torch.cat(values, dim=-1))
        outputs = torch.split(joint, [value.shape[-1] for value in values], dim=-1)
    elif d0.keys.shape == d1.keys.shape and d0.queries.shape == d1.queries.shape:
        q, k = torch.cat([d0.queries, d1.queries]), torch.cat([d0.keys, d1.keys])
        v = torch.cat([column.values for column in columns])
        counts = None if d0.counts is None or d1.counts is None else torch.cat([d0.counts, d1.counts])
        outputs = attend(mechanism, q, k, v, counts, d0.last).chunk(2)
    else:
        outputs = tuple(column.batch.attend(mechanism, column.values) for column in columns)
    return [column.read(output, construction) for column, output in zip(columns, outputs, strict=True)]


def is_linear(mechanism: Mechanism) -> bool:
    """Whether value columns may be combined freely: the output is linear in them, of any width."""
    return mechanism.linear_in_values and mechanism.fixed_features is None


class _Columns:
    """The value columns passed to a mechanism, and how sign vectors read its output."""

    def __init__(self, mechanism: Mechanism, batch: TokenBatch, signs: Tensor) -> None:
        self.mechanism, self.batch, self.signs = mechanism, batch, signs
        linear, values = is_linear(mechanism), batch.values
        exact = not _is_format(signs.dtype)
        self.before = values is None or not (linear and exact) or signs.shape[1] < values.shape[-1]
        self.weighed = linear and exact and not mechanism.is_normalised
        parts = [batch.sizes[..., None]] if self.weighed else []
        if values is None or self.before:
            parts = [signs.mT if values is None else values @ signs.mT, batch.probe[..., None], *parts]
        else:
            parts = [values, *parts]
        self.values = torch.cat(parts, dim=-1)

    def read(self, output: Tensor, construction: Construction) -> Reading:
        """Return the pre-activations from the attention output."""
        sizes = output[..., -1:] if self.weighed else None
        output = output[..., :-1] if self.weighed else output
        slack = rounding(self.mechanism, self.batch, construction, sizes)
        if self.before:
            peaks = output.amax(1)
            return Reading(peaks[:, :-1], peaks[:, -1], slack)
        return Reading((output @ self.signs.mT).amax(1), output.sum(-1).amax(1), slack)


class View:
    """Attention on one token set, read by sign vectors."""

    def __init__(self, mechanism: Mechanism, tokens: Tokens, columns: int) -> None:
        self.mechanism, self.tokens = mechanism, tokens
        self._attended: Tensor | None = None
        if tokens.values is not None and columns >= tokens.values.shape[-1]:
            self._attended = self._attend(tokens.values)
            self.probe = float(self._attended.sum(-1).amax())

    def peaks(self, project: Callable[[Tokens], Tensor], signs: Tensor) -> Float[Tensor, " columns"]:
        """Return the largest pre-activation over the rows for each sign vector.

        Few sign vectors are applied to the values before attention, many to its output: the cost is
        n^2 (width + min(features, sign vectors)).
        """
        if self._attended is not None:
            step = max(1, ELEMENTS // max(1, signs.shape[0]))
            parts = [(rows @ signs.mT).amax(0) for rows in torch.split(self._attended, step)]
            return torch.stack(parts).amax(0)
        columns = torch.cat([project(self.tokens), self.tokens.probe[:, None]], dim=-1)
        peaks = self._attend(columns).amax(0)
        self.probe = float(peaks[-1])
        return peaks[:-1]

    def _attend(self, values: Tensor) -> Float[Tensor, "rows columns"]:
        return TokenBatch.of([self.tokens]).attend(self.mechanism, values[None])[0]


def probe_peak(mechanism: Mechanism, tokens: Tokens) -> float:
    """Return the pre-activation that defines the margin: the largest over the rows, with all signs +."""
    return float(TokenBatch.of([tokens]).attend(mechanism, tokens.probe[None, :, None]).amax())


def rounding(
    mechanism: Mechanism, batch: TokenBatch, construction: Construction, weighed_sizes: Tensor | None = None
) -> float:
    """Return a bound on the rounding error of a pre-activation, from the size of logits and sums.

    `weighed_sizes` is the attention output for the sizes, if it is known.
    """
    dtype = batch.keys.dtype
    if _is_format(dtype):
        return 0.0  # the answer of the number format itself is requested
    sizes = batch.sizes
    # Weights that add up to 1 are taken to return no more than the largest value; others may return more.
    size = float(sizes.max())
    if not mechanism.is_normalised:
        weighed_sizes = batch.attend(mechanism, sizes[..., None]) if weighed_sizes is None else weighed_sizes
        size = max(size, float(weighed_sizes.abs().max()))
    # By Cauchy and Schwarz, which needs no product of all queries and keys.
    logits = float(batch.queries.norm(dim=-1).max() * batch.keys.norm(dim=-1).max())
    units = (SLACK + LOGIT_SLACK * logits) * mechanism.resizing_error_factor
    return units * torch.finfo(dtype).eps * (abs(construction.threshold) + construction.unit + size)


def _is_format(dtype: torch.dtype) -> bool:
    """Whether the format is so short that the order of summation is part of the answer."""
    return torch.finfo(dtype).bits <= 16


def float_margin(v0: float, v1: float, size: float) -> float:
    """Return v1 - v0, or 0 if it is within the rounding error of sums of this size.

    >>> float_margin(1.0, 1.5, 1.5), float_margin(1.0, 1.0 + 2**-50, 1.0)
    (0.5, 0.0)
    """
    margin = v1 - v0
    return 0.0 if abs(margin) <= SLACK * torch.finfo(torch.float64).eps * size else margin
