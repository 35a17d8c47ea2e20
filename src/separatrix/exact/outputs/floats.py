"""Attention outputs in float64 for any mechanism: on distinct tokens with counts, or on all tokens."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np

from separatrix.constructions import Construction, Label, Tokens
from separatrix.core.errors import EngineRefusal
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.exact.outputs._base import Array, Ends, Feature, Outputs, RowDifference
from separatrix.exact.outputs.attention import TokenBatch
from separatrix.exact.outputs.tokens import by_counts, counted_tokens, literal_tokens, place_matters
from separatrix.mechanisms import Causality, Mechanism

SLACK = 1e-9
"""The allowance for rounding in float64 attention, relative to the absolute sum."""
MOST_DEFINED = 4096
"""The maximum length for definitions, which hold all scores or iterate over tokens."""


class FloatOutputs(Outputs):
    """Rows in float64, each value with an allowance of SLACK times the absolute sum behind it."""

    proves = False
    has_equal_rows = False

    def __init__(self, construction: Construction, mechanism: Mechanism, place: int = 0, literal: bool = False) -> None:
        self.grouped = by_counts(construction, mechanism)
        self.unit = Fraction(construction.unit), Fraction(construction.unit)
        if self.grouped:
            tokens_at = counted_tokens(construction, mechanism, torch.float64, columns=0)
        else:
            tokens_at = literal_tokens(construction, mechanism, torch.float64)
        outputs = []
        for label in (0, 1):
            tokens = tokens_at(label, place)
            outputs.append(_attend(mechanism, tokens, literal))
        self.rows, self.sizes = ([pair[part] / construction.unit for pair in outputs] for part in (0, 1))
        if not all(np.isfinite(row).all() for row in self.rows):
            raise EngineRefusal(
                f"{mechanism.spelled} cannot handle these tokens: its scores overflow or divide by zero"
            )
        self._query_counts = construction.query_counts(0) if self.grouped else ()
        source = "distinct tokens with counts" if self.grouped else "all tokens"
        depends = place_matters(construction, mechanism)
        position = f" with the special one at {place}, the worst position tried" if depends else ""
        self.evidence = f"float64 on {source}{position}"
        self.counts = len(self.rows[0]), len(self.rows[1])
        has_unit_values, special = tokens.values is None, 0 if self.grouped else place
        self.features = _features(construction, self.grouped and has_unit_values)
        self.probe_weights = tuple(
            Fraction(int(not has_unit_values or i == special)) for i in range(len(self.features))
        )

    @cached_property
    def offsets(self) -> tuple[Array, Array]:
        d0, d1 = ((rows - self.rows[0][0]) * self._roots for rows in self.rows)
        return d0, d1

    @cached_property
    def differences(self) -> Array:
        if self.counts[0] != self.counts[1]:
            return np.empty((0, len(self.features)))
        return (self.rows[1] - self.rows[0]) * self._roots

    @cached_property
    def row_differences(self) -> tuple[RowDifference, ...]:
        squares = (self.differences**2).sum(axis=1)
        if not len(squares):
            return ()
        counts = self._query_counts if self.grouped else (1,) * len(squares)
        return tuple(RowDifference(rows, Fraction(float(x))) for rows, x in zip(counts, squares, strict=True))

    @property
    def _roots(self) -> Array:
        return np.sqrt([float(feature.copies) for feature in self.features])

    @property
    def differ(self) -> bool:
        """Whether a value differs by more than the allowance for rounding."""
        if self.rows[0].shape != self.rows[1].shape:
            return True
        # Strict: where nothing is added up the allowance is 0, and 0 > 0 claims no difference.
        allowance = SLACK * np.maximum(*self.sizes)
        return bool((np.abs(self.rows[1] - self.rows[0]) > allowance).any())

    def reading(self, label: Label, weights: Sequence[Fraction]) -> Ends:
        factors = np.array([float(w) * feature.copies for feature, w in zip(self.features, weights, strict=True)])
        read, off = self.rows[label] @ factors, SLACK * self.sizes[label] @ np.abs(factors)
        # The largest lower bound is a lower bound of the maximum, whichever row attains it.
        return Fraction(float((read - off).max())), Fraction(float((read + off).max()))

    def entries(self, label: Label, nearest: bool) -> tuple[Array, Array]:
        unit, off = float(self.unit[0]), SLACK * self.sizes[label]
        return unit * (self.rows[label] - off), unit * (self.rows[label] + off)


def by_definition(construction: Construction, mechanism: Mechanism, place: int) -> FloatOutputs:
    """Return the rows computed by the definition, or raise an EngineRefusal if that takes too long."""
    if not by_counts(construction, mechanism) and construction.n > MOST_DEFINED:
        raise EngineRefusal(f"n={construction.n:,} tokens are too many for the definition")
    return FloatOutputs(construction, mechanism, place, literal=True)


def _features(construction: Construction, counted_tokens: bool) -> tuple[Feature, ...]:
    """Return one feature each; for counted tokens with unit vectors, the token's and all others'."""
    if counted_tokens:
        return Feature(1), Feature(2, construction.n - 1)
    return tuple(Feature(place) for place in range(1, construction.signs + 1))


def _attend(mechanism: Mechanism, tokens: Tokens, literal: bool) -> tuple[Array, Array]:
    """Return the output of each row, and the absolute sum behind it, feature by feature."""
    values = tokens.values
    if values is None:
        counts = torch.ones(len(tokens.keys)) if tokens.counts is None else tokens.counts
        values = torch.diag(1 / counts.to(tokens.keys.dtype))
    with_sizes = torch.cat([values, values.abs()], dim=-1)
    with torch.no_grad():
        out = (
            _attend_by_definition(mechanism, tokens, with_sizes)
            if literal
            else TokenBatch.of([tokens]).attend(mechanism, with_sizes[None])[0]
        )
    features = values.shape[-1]
    # With negative weights, the sum of w |v| may be smaller than that of w v.
    sizes = out[:, features:].abs().maximum(out[:, :features].abs())
    return out[:, :features].numpy(), sizes.numpy()


def _attend_by_definition(
    mechanism: Mechanism, tokens: Tokens, values: Float[Tensor, "keys features"]
) -> Float[Tensor, "rows features"]:
    """Like `attend`, by the definition instead of the fast form."""
    causal = mechanism.causality is Causality.ALWAYS
    keys, head_values = tokens.keys[None, None], values[None, None]
    counts = None if tokens.counts is None else tokens.counts[None, None]
    if mechanism.permutation_equivariant:
        return mechanism.definition(tokens.queries[None, None], keys, head_values, counts, causal)[0, 0]
    alone = tokens.last or len(tokens.queries) == 1
    sets = [query.expand(len(tokens.keys), -1) for query in tokens.queries] if alone else [tokens.queries]
    rows = [mechanism.definition(q[None, None], keys, head_values, counts, causal)[0, 0] for q in sets]
    return torch.cat([row[-1:] for row in rows] if tokens.last else rows)
