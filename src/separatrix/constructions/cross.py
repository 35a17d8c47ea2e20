"""Cross-attention: the queries come from another matrix and carry no spike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, ClassVar

from separatrix.constructions._base import BlockModel, Label, Presence, QueryRow, Tokens, amplitude
from separatrix.constructions._blocks import EXAMPLE, BlockConstruction
from separatrix.core.tensors import Tensor, torch


class Cross(BlockConstruction):
    """Queries with row sum r_Q and no spike; keys and values are A, which has the spike; X = 11ᵀ."""

    name = "cross"
    title = "The spike is in the keys and values; the queries only have a row sum r_Q."
    section = (5,)
    provenance = "[ours] docs/theory.md 5, checked numerically"
    description = (
        "Keys and values are the n-by-d matrix of `spike`. Queries come from another n-by-d matrix whose "
        "rows sum to r_Q (here all in column d) and carry no spike. Scores are products of row sums "
        "(X = 11ᵀ), so every query row is the same. All in units of sqrt(log n); tau = c + 0.1 unless given."
    )
    example: ClassVar[dict[str, object]] = {**EXAMPLE, "r_Q": 1}
    has_certificates = True
    r_Q: Fraction = amplitude()

    def dense(self, label: Label, spike: int, dtype: torch.dtype) -> Tokens:
        return self._tokens(self.n, self.matrix(label, spike, dtype))

    def token_groups(self, label: Label, dtype: torch.dtype, spike: int = 0) -> Tokens:
        # All query rows are equal, so one stands for them all.
        return self._tokens(1, *self.group_matrix(label, dtype, spike))

    def query_counts(self, label: Label) -> tuple[int, ...]:
        """One query stands for all n."""
        return (self.n,)

    def _tokens(self, queries: int, matrix: Tensor, counts: Tensor | None = None) -> Tokens:
        query = matrix.new_full((queries, 1), float(self.r_Q) * self.unit)
        return Tokens(query, matrix.sum(-1, keepdim=True), matrix, matrix.sum(-1), counts)

    @classmethod
    def block_model(cls, values: Mapping[str, Any], log: Callable[[Any], Any]) -> BlockModel:
        n, d, b, c, r_q = (values[name] for name in ("n", "d", "b", "c", "r_Q"))
        log_n = log(n)
        zero = 0 * log_n
        quiet, loud = (
            (QueryRow("query", Presence.ALWAYS, r_q * (b + c) * log_n, r_q * a * log_n, zero, zero),)
            for a in (values["a0"], values["a1"])
        )
        return BlockModel(d - 3, n / (d - 2), cls.amplitudes(values), cls.probe(values), (quiet, loud))
