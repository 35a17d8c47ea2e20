"""The margin alone, by the strongest engine that has it: no reader is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from separatrix.constructions import Construction, ExactConstruction, Label, Tokens
from separatrix.engines import ENGINES, EngineRefusal, solve
from separatrix.engines._base import significant_bits
from separatrix.mechanisms import Mechanism
from separatrix.outputs.attention import SLACK, attend
from separatrix.outputs.kernels import exact_model, kernel_rows, probe_margin, with_kernel
from separatrix.outputs.memory import LARGEST_COUNTED, dense_bytes, group_bytes, refuse_if_too_large
from separatrix.outputs.places import place_matters
from separatrix.parameters import UsageError, nearest
from separatrix.tensors import torch

EVIDENCE = {
    "certified": "rationals and balls, every digit shown is right",
    "exact": "closed form in float64",
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
    if engine != "auto":
        return _by(engine, construction, mechanism)
    refusals = []
    for each in ("certified", "grouped", "dense"):
        try:
            return _by(each, construction, mechanism)
        except EngineRefusal as refused:
            refusals.append(f"{each}: {str(refused).split('; use --engine')[0]}")
    raise EngineRefusal(f"no engine has the margin here ({'; '.join(refusals)})")


def is_literal(construction: Construction, mechanism: Mechanism) -> bool:
    """Whether margins take all tokens, one by one."""
    return not (mechanism.takes_counts and construction.has_groups)


def _by(engine: str, construction: Construction, mechanism: Mechanism) -> Margin:
    if engine == "certified":
        return _certified(construction, mechanism)
    if engine == "exact":
        found = solve(construction, mechanism, "exact")
        return _rounded(found.v0, found.v1, engine)
    if engine == "grouped":
        return _grouped(construction, mechanism)
    if engine == "dense":
        return _dense(construction, mechanism)
    known = ", ".join(ENGINES)
    raise UsageError(f"there is no engine {engine}{nearest(engine, list(ENGINES))}; there are: {known}")


def _certified(construction: Construction, mechanism: Mechanism) -> Margin:
    if isinstance(construction, ExactConstruction):
        _, v1, value = map(float, kernel_rows(construction, mechanism).margin())
    else:
        _, v1, value = map(float, probe_margin(with_kernel(mechanism), exact_model(construction)))
    return Margin(value, v1, FULL, "certified")


def _grouped(construction: Construction, mechanism: Mechanism) -> Margin:
    if is_literal(construction, mechanism):
        raise EngineRefusal(f"{mechanism.spelled} needs every token here; use --engine dense")
    if construction.n > LARGEST_COUNTED:
        raise EngineRefusal("counts of so many tokens do not fit; use --engine certified")
    refuse_if_too_large(
        "grouped", group_bytes(construction), f"the groups of {construction.name}", "certified"
    )
    return _least(
        construction,
        mechanism,
        "grouped",
        lambda label, place: construction.groups(label, torch.float64, place),
    )


def _dense(construction: Construction, mechanism: Mechanism) -> Margin:
    needed = dense_bytes(construction, mechanism, torch.float64)
    refuse_if_too_large("dense", needed, f"n={construction.n:,} tokens", "auto with a smaller n")
    return _least(
        construction, mechanism, "dense", lambda label, place: construction.dense(label, place, torch.float64)
    )


def _least(
    construction: Construction, mechanism: Mechanism, engine: str, tokens: Callable[[Label, int], Tokens]
) -> Margin:
    """The margin at the only place that counts, or the least at a few."""
    n, matters = construction.n, place_matters(construction, mechanism)
    places = tuple(dict.fromkeys((0, n // 2, n - 1))) if matters else (0,)
    peaks = ([_peak(mechanism, tokens(label, x)) / construction.unit for label in (0, 1)] for x in places)
    return min((_rounded(v0, v1, engine) for v0, v1 in peaks), key=lambda each: each.value)


def _peak(mechanism: Mechanism, tokens: Tokens) -> float:
    """The largest pre-activation over the rows, with all signs +."""
    counts = None if tokens.counts is None else tokens.counts[None]
    seen = attend(
        mechanism, tokens.queries[None], tokens.keys[None], tokens.probe[None, :, None], counts, tokens.last
    )
    peak = float(seen.amax())
    if peak != peak or abs(peak) == float("inf"):
        raise EngineRefusal(f"{mechanism.spelled} cannot bear these tokens: its result is not finite")
    return peak


def _rounded(v0: float, v1: float, engine: str) -> Margin:
    """A difference of two float64 numbers, and how much of it they leave."""
    value = v1 - v0
    size = SLACK * torch.finfo(torch.float64).eps * max(abs(v0), abs(v1))
    return Margin(value, v1, size / abs(value) if value else float("inf"), engine)
