"""Single-location regression: one token holds the signal, the others hold noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, ClassVar

from separatrix.constructions._base import BlockModel, Label, Presence, QueryRow, Tokens
from separatrix.constructions._blocks import BlockConstruction, BlockParameters
from separatrix.core.parameters import Constraint, Exact, Natural, between
from separatrix.core.tensors import Tensor, torch


class LocationParameters(BlockParameters):
    """The signal a0 or a1, the noise b, what is common to all, and how far the location stands out."""

    owner = "location"
    d: Natural = 102
    a0: Exact = Fraction(0)
    a1: Exact = Fraction(1)
    b: Exact = Fraction(1, 5)
    c: Exact = Fraction(1, 10)
    tau: Exact | None = Fraction(1, 2)
    gap: Exact = Fraction(2)
    constraints: ClassVar[tuple[Constraint, ...]] = (*BlockParameters.constraints, between("gap", 0, 10**6))


class Location(BlockConstruction):
    """The values of `spike`, with keys that say where the signal is and not how large."""

    name = "location"
    title = "The token at a marked place carries the signal a0 (D0) or a1 (D1); all carry noise."
    section = (6, 8)
    provenance = "[rec] docs/theory.md 6.8, after arXiv 2509.21936"
    description = (
        "n = (d-2)t tokens. One of them, wherever it is, has the logit 1+gap, the others 1, in units of log "
        "n; it carries the signal, a0=0 in D0 and a1=1 in D1, in the first feature. Every token carries "
        "noise b in the feature of its block (the reader's random signs make it noise) and c in the last. "
        "Softmax reads the marked token alone, linear attention the mean of the noise and (1+gap)/(n+gap) "
        "of the signal. Values are in units of sqrt(log n); tau=1/2."
    )
    schema = LocationParameters
    example: ClassVar[dict[str, object]] = {"n": 1000, "m": 12}
    special = "the marked token"
    parameters: LocationParameters

    def dense(self, label: Label, spike: int, dtype: torch.dtype) -> Tokens:
        tokens = self.matrix(label, spike, dtype)
        return self._tokens(tokens, torch.arange(self.n) == spike, None)

    def groups(self, label: Label, dtype: torch.dtype, spike: int = 0) -> Tokens:
        tokens, counts = self.group_matrix(label, dtype, spike)
        return self._tokens(tokens, torch.arange(len(tokens)) == 0, counts)

    def _tokens(self, tokens: Tensor, marked: Tensor, counts: Tensor | None) -> Tokens:
        keys = self.unit**2 * (1 + float(self.parameters.gap) * marked.to(tokens.dtype))
        query = tokens.new_ones(1, 1)
        return Tokens(query, keys[:, None], tokens, tokens.sum(-1), counts, last=True)

    @classmethod
    def block_model(cls, values: Mapping[str, Any], log: Callable[[Any], Any]) -> BlockModel:
        n, d, log_n = values["n"], values["d"], log(values["n"])
        zero = 0 * log_n
        row = (QueryRow("query", Presence.ALWAYS, log_n, values["gap"] * log_n, zero, zero),)
        return BlockModel(d - 3, n / (d - 2), cls.amplitudes(values), cls.probe(values), (row, row))
