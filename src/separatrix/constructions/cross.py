"""Cross-attention: the queries come from another matrix and carry no spike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, ClassVar

from separatrix.constructions._base import BlockModel, Label, Presence, QueryRow, Tokens, amplitude
from separatrix.constructions._blocks import EXAMPLE, BlockConstruction
from separatrix.core.tensors import Tensor


class Cross(BlockConstruction):
    """The spike is in the keys and values; the queries only have a row sum r_Q.

    Keys and values are the n-by-d matrix of `spike`. Queries come from another n-by-d matrix whose rows sum
    to r_Q (here all in column d) and carry no spike. Scores are products of row sums (X = 11ᵀ), so every
    query row is the same. All in units of sqrt(log n); tau = c + 0.1 unless given.
    """

    name = "cross"
    section = (5,)
    provenance = "[ours] docs/theory.md 5, checked numerically"
    example: ClassVar[dict[str, object]] = {**EXAMPLE, "r_Q": 1}
    has_certificates = True
    r_Q: Fraction = amplitude()

    def query_counts(self, label: Label) -> tuple[int, ...]:
        """One query stands for all n."""
        return (self.n,)

    def tokens(self, matrix: Tensor, spike: int, counts: Tensor | None = None) -> Tokens:
        # All query rows are equal, so one stands for them all if tokens are counted.
        query = matrix.new_full((self.n if counts is None else 1, 1), float(self.r_Q) * self.unit)
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
