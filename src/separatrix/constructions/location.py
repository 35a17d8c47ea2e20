"""Single-location regression: one token holds the signal, the others hold noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from separatrix.constructions._base import (
    BlockModel,
    Presence,
    QueryRow,
    Tokens,
    amplitude,
    amplitude_or_zero,
    reader_threshold,
)
from separatrix.constructions._blocks import BlockConstruction
from separatrix.core.parameters import exact, natural
from separatrix.core.tensors import Tensor, torch


class Location(BlockConstruction):
    """The token at a marked position carries the signal a0 (D0) or a1 (D1); all carry noise.

    n = (d-2)t tokens. One of them, at any position, has the logit 1+gap, the others 1, in units of log n; it
    carries the signal, a0=0 in D0 and a1=1 in D1, in the first feature. Every token carries noise b in the
    feature of its block (the reader's random signs make it noise) and c in the last. Softmax reads the marked
    token alone, linear attention the mean of the noise and (1+gap)/(n+gap) of the signal. Values are in units
    of sqrt(log n); tau=1/2.
    """

    name = "location"
    section = (6, 8)
    provenance = "[rec] docs/theory.md 6.8, after arXiv 2509.21936"
    special = "the marked token"
    has_certificates = True
    d: int = natural(102, at_least=4)
    a0: Fraction = exact(0, at_least=0)
    a1: Fraction = amplitude(1)
    b: Fraction = amplitude("1/5")
    c: Fraction = amplitude("1/10")
    tau: Fraction = reader_threshold("1/2")
    gap: Fraction = amplitude_or_zero(2)

    def tokens(self, matrix: Tensor, spike: int, counts: Tensor | None = None) -> Tokens:
        is_marked = torch.arange(len(matrix)) == spike
        keys = self.unit**2 * (1 + float(self.gap) * is_marked.to(matrix.dtype))
        return Tokens(matrix.new_ones(1, 1), keys[:, None], matrix, matrix.sum(-1), counts, last=True)

    @classmethod
    def block_model(cls, values: Mapping[str, Any], log: Callable[[Any], Any]) -> BlockModel:
        n, d, log_n = values["n"], values["d"], log(values["n"])
        zero = 0 * log_n
        row = (QueryRow("query", Presence.ALWAYS, log_n, values["gap"] * log_n, zero, zero),)
        return BlockModel(d - 3, n / (d - 2), cls.amplitudes(values), cls.probe(values), (row, row))
