"""The margin alone, by the strongest engine that has it: no reader is drawn."""

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
PLACES = "the least margin with the spike first, in the middle and last"
"""What is taken where the answer depends on the place."""
FULL = 1e-14


@dataclass(frozen=True)
class Margin:
    """v(D1) - v(D0), with all signs +, in the construction's unit."""

    value: float
    v1: float
    accuracy: float
    """How far the value may be off, relative to itself."""
    engine: str

    @property
    def bits(self) -> float:
        """The significant bits needed to tell the labels apart."""
        return significant_bits(self.v1, self.value)

    @property
    def lost(self) -> bool:
        """Whether rounding leaves no digits of it."""
        return self.accuracy > 1e-3


def margin(construction: Construction, mechanism: Mechanism, engine: str = "auto") -> Margin:
    """The margin by the engine named, or the strongest that applies.

    >>> from separatrix.constructions.spike import Spike
    >>> from separatrix.mechanisms import mechanism_named
    >>> found = margin(Spike.read({**Spike.example, "n": 10**6}), mechanism_named("linear"))
    >>> f"{found.value:.5e}", found.engine
    ('5.98964e-06', 'certified')
    """
    if engine_named(engine).name in MARGINS:
        return MARGINS[engine](construction, mechanism)
    tried = [ENGINES[name] for name in MARGINS if name != "closed"]  # no stronger than `grouped` in this
    return strongest(tried, lambda each: MARGINS[each.name](construction, mechanism))


def is_literal(construction: Construction, mechanism: Mechanism) -> bool:
    """Whether margins take all tokens, one by one."""
    return not (mechanism.takes_counts and construction.has_groups)


def _certified(construction: Construction, mechanism: Mechanism) -> Margin:
    if isinstance(construction, ExactConstruction):
        _, v1, value = map(float, kernel_rows(construction, mechanism).margin())
    else:
        _, v1, value = map(float, probe_margin(with_kernel(mechanism), rational_model(construction)))
    return Margin(value, v1, FULL, "certified")


def _closed(construction: Construction, mechanism: Mechanism) -> Margin:
    found = closed.solve(construction, mechanism)
    return _rounded(found.v0, found.v1, "closed")


def _grouped(construction: Construction, mechanism: Mechanism) -> Margin:
    tokens = counted_tokens(construction, mechanism, torch.float64, columns=1)
    return _least(construction, mechanism, "grouped", tokens)


def _dense(construction: Construction, mechanism: Mechanism) -> Margin:
    return _least(construction, mechanism, "dense", literal_tokens(construction, mechanism, torch.float64))


def _least(construction: Construction, mechanism: Mechanism, engine: str, tokens: TokensAt) -> Margin:
    """The margin at the only place that counts, or the least at a few."""
    n, matters = construction.n, place_matters(construction, mechanism)
    places = tuple(dict.fromkeys((0, n // 2, n - 1))) if matters else (0,)
    peaks = [
        [probe_peak(mechanism, tokens(label, x)) / construction.unit for label in (0, 1)] for x in places
    ]
    if not all(math.isfinite(peak) for pair in peaks for peak in pair):
        raise EngineRefusal(f"{mechanism.spelled} cannot bear these tokens: its result is not finite")
    return min((_rounded(v0, v1, engine) for v0, v1 in peaks), key=lambda each: each.value)


def _rounded(v0: float, v1: float, engine: str) -> Margin:
    """A difference of two float64 numbers, and how much of it they leave."""
    value = v1 - v0
    size = SLACK * torch.finfo(torch.float64).eps * max(abs(v0), abs(v1))
    return Margin(value, v1, size / abs(value) if value else float("inf"), engine)


MARGINS: dict[str, Callable[[Construction, Mechanism], Margin]] = {
    "certified": _certified,
    "grouped": _grouped,
    "dense": _dense,
    "closed": _closed,
}
"""The margin by each engine, in the order in which `auto` tries them."""
