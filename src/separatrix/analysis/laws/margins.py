"""The margin alone, by the strongest engine that computes it: no reader is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from separatrix.constructions import Construction, ExactConstruction
from separatrix.core.tensors import torch
from separatrix.exact.engines import ENGINES, EngineRefusal, closed, engine_named, strongest
from separatrix.exact.engines.outcome import significant_bits
from separatrix.exact.outputs.attention import SLACK, probe_peak
from separatrix.exact.outputs.kernels import kernel_rows, probe_margin, rational_model, with_kernel
from separatrix.exact.outputs.tokens import TokensAt, counted_tokens, literal_tokens, place_matters
from separatrix.mechanisms import Mechanism

EVIDENCE = {
    "certified": "rationals and balls, every digit shown is right",
    "closed": "closed form in float64",
    "grouped": "token groups attended in float64",
    "dense": "all tokens attended in float64",
}
POSITIONS = "the least margin with the spike first, in the middle and last"
"""The evidence if the margin depends on the position of the spike."""


@dataclass(frozen=True)
class OutputMargin:
    """v(D1) - v(D0), with all signs +, in the construction's unit."""

    value: float
    v1: float
    accuracy: float
    """The error of the value, relative to itself."""
    engine: str

    @property
    def bits(self) -> float:
        """The significant bits needed to tell the labels apart."""
        return significant_bits(self.v1, self.value)

    @property
    def is_lost(self) -> bool:
        """Whether rounding leaves no digits of it."""
        return self.accuracy > 1e-3


def margin(construction: Construction, mechanism: Mechanism, engine: str = "auto") -> OutputMargin:
    """Compute the margin by the engine named, or by the strongest that applies.

    >>> from separatrix.constructions.spike import Spike
    >>> from separatrix.mechanisms import mechanism_named
    >>> result = margin(Spike.read({**Spike.example, "n": 10**6}), mechanism_named("linear"))
    >>> f"{result.value:.5e}", result.engine
    ('5.98964e-06', 'certified')
    """
    if engine_named(engine).name in MARGINS:
        return MARGINS[engine](construction, mechanism)
    # The closed form in float64 is no better than `grouped` here.
    engines = [ENGINES[name] for name in MARGINS if name != "closed"]
    return strongest(engines, lambda candidate: MARGINS[candidate.name](construction, mechanism))


def is_literal(construction: Construction, mechanism: Mechanism) -> bool:
    """Whether a margin needs all tokens, one by one."""
    return not (mechanism.takes_counts and construction.has_groups)


def _certified_margin(construction: Construction, mechanism: Mechanism) -> OutputMargin:
    if isinstance(construction, ExactConstruction):
        _, v1, value = map(float, kernel_rows(construction, mechanism).margin())
    else:
        _, v1, value = map(float, probe_margin(with_kernel(mechanism), rational_model(construction)))
    return OutputMargin(value, v1, 1e-14, "certified")


def _closed_margin(construction: Construction, mechanism: Mechanism) -> OutputMargin:
    outcome = closed.solve(construction, mechanism)
    return _float_margin(outcome.v0, outcome.v1, "closed")


def _least_margin(construction: Construction, mechanism: Mechanism, engine: str, tokens: TokensAt) -> OutputMargin:
    """Return the margin, or the least at three positions of the spike if the position matters."""
    n = construction.n
    positions = {0, n // 2, n - 1} if place_matters(construction, mechanism) else {0}
    peaks = [
        [probe_peak(mechanism, tokens(label, position)) / construction.unit for label in (0, 1)]
        for position in sorted(positions)
    ]
    if not all(math.isfinite(peak) for pair in peaks for peak in pair):
        raise EngineRefusal(f"{mechanism.spelled} returns numbers that are not finite for these tokens")
    return min((_float_margin(v0, v1, engine) for v0, v1 in peaks), key=lambda margin: margin.value)


def _float_margin(v0: float, v1: float, engine: str) -> OutputMargin:
    """Return the difference of two float64 numbers, and the error that their rounding leaves."""
    value = v1 - v0
    error = SLACK * torch.finfo(torch.float64).eps * max(abs(v0), abs(v1))
    return OutputMargin(value, v1, error / abs(value) if value else math.inf, engine)


MARGINS: dict[str, Callable[[Construction, Mechanism], OutputMargin]] = {
    "certified": _certified_margin,
    "grouped": lambda point, mechanism: _least_margin(
        point, mechanism, "grouped", counted_tokens(point, mechanism, torch.float64, columns=1)
    ),
    "dense": lambda point, mechanism: _least_margin(
        point, mechanism, "dense", literal_tokens(point, mechanism, torch.float64)
    ),
    "closed": _closed_margin,
}
"""The margin by each engine, in the order in which `auto` tries them."""
