"""Cross-attention: the queries come from elsewhere and carry no spike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from separatrix.constructions._base import BlockModel, Label, Presence, QueryRow, Tokens
from separatrix.constructions._blocks import EXAMPLE, BlockConstruction, BlockParameters, amplitude
from separatrix.core.parameters import Constraint, Exact
from separatrix.core.tensors import Tensor, torch


class CrossParameters(BlockParameters):
    """As BlockParameters, with the row sum of the queries."""

    owner = "cross"
    r_Q: Exact
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *BlockParameters.constraints,
        amplitude("r_Q"),
    )


class Cross(BlockConstruction):
    """Queries with row sum r_Q and no spike; keys and values are the spiked A; X = 11ᵀ."""

    name = "cross"
    title = "The spike is in the keys and values; the queries only have a row sum r_Q."
    section = (5,)
    provenance = "[ours] docs/theory.md 5, checked numerically"
    description = (
        "Keys and values are the n-by-d matrix of `spike`. Queries come from another n-by-d matrix whose "
        "rows sum to r_Q (here all in column d) and carry no spike. Scores are products of row sums "
        "(X = 11ᵀ), so every query row is the same. All in units of sqrt(log n); tau = c + 0.1 unless given."
    )
    schema = CrossParameters
    example: ClassVar[dict[str, object]] = {**EXAMPLE, "r_Q": 1}
    has_certificates = True
    parameters: CrossParameters

    def dense(self, label: Label, spike: int, dtype: torch.dtype) -> Tokens:
        tokens = self.matrix(label, spike, dtype)
        return Tokens(self._queries(self.n, dtype), tokens.sum(-1, keepdim=True), tokens, tokens.sum(-1))

    def groups(self, label: Label, dtype: torch.dtype, spike: int = 0) -> Tokens:
        tokens, counts = self.group_matrix(label, dtype, spike)
        return Tokens(self._queries(1, dtype), tokens.sum(-1, keepdim=True), tokens, tokens.sum(-1), counts)

    def _queries(self, rows: int, dtype: torch.dtype) -> Tensor:
        return torch.full((rows, 1), float(self.parameters.r_Q) * self.unit, dtype=dtype)

    @classmethod
    def block_model(cls, values: Mapping[str, Any], log: Callable[[Any], Any]) -> BlockModel:
        n, d, b, c, r_q = (values[name] for name in ("n", "d", "b", "c", "r_Q"))
        log_n, spikes = log(n), (values["a0"], values["a1"])
        zero = 0 * log_n
        rows = tuple(
            (QueryRow("query", Presence.ALWAYS, r_q * (b + c) * log_n, r_q * a * log_n, zero, zero),)
            for a in spikes
        )
        return BlockModel(d - 3, n / (d - 2), cls.amplitudes(values), cls.probe(values), (rows[0], rows[1]))
