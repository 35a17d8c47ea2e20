"""Where a mechanism stands on each construction: verdict, growth of the margin, and where it goes blind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import linregress, t

from separatrix.constructions import Construction, construction_named
from separatrix.engines import EngineRefusal, Sampling, dense, grouped, solve
from separatrix.engines.certified import exact_model, with_kernel
from separatrix.mechanisms import Mechanism, ScoreMechanism
from separatrix.verdicts import DELTA, Verdict

SPIKE = {"n": 1000, "d": 102, "m": 12, "a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1"}
POINTS: dict[str, tuple[str, dict[str, object]]] = {
    "spike, ones": ("spike", SPIKE),
    "spike, identity": ("spike", {**SPIKE, "form": "identity"}),
    "cross": ("cross", {**SPIKE, "r_Q": "1"}),
    "plain": ("plain", {"n": 1000, "m": 12}),
}
"""The points a report card is about, by the name it shows."""
FAR = tuple(10**k for k in range(3, 13))
NEAR = (200, 400, 800, 1600)
"""Lengths at which margins are taken: with token groups, and with literal tokens."""
DRAWS = 400
"""Enough for a verdict: with fewer, no interval is narrow enough at delta = 0.01."""


@dataclass(frozen=True)
class Growth:
    """margin ~ n^exponent, fitted on log axes, with a 95% interval from the scatter."""

    exponent: float
    low: float
    high: float
    lengths: tuple[int, ...]


@dataclass(frozen=True)
class Standing:
    """One construction."""

    name: str
    verdict: Verdict
    growth: Growth | None
    blind_from: int | None
    """The least of the lengths tried from which on the verdict is `blind`; None if it is not at the last."""

    def as_json(self) -> dict[str, Any]:
        """The standing as `assess --json` prints it."""
        shown = self.verdict.as_json()
        growth = self.growth
        return {
            **{name: shown[name] for name in ("construction", "parameters", "engine", "evidence", "verdict")},
            **{name: shown[name] for name in ("distinguish", "interval", "margin", "bits")},
            "margin_exponent": None if growth is None else growth.exponent,
            "margin_exponent_interval": None if growth is None else [growth.low, growth.high],
            "blind_from_n": self.blind_from,
        }


def standings(mechanism: Mechanism, progress: Callable[[str], None] | None = None) -> Iterator[Standing]:
    """The standing on every construction, by the strongest engine that applies."""
    for name, (kind, parameters) in POINTS.items():
        if progress is not None:
            progress(name)
        point = construction_named(kind).read(parameters)
        yield Standing(
            name,
            verdict_at(point, mechanism),
            growth_of_margin(point, mechanism),
            blind_from(point, mechanism),
        )


def verdict_at(point: Construction, mechanism: Mechanism) -> Verdict:
    """The verdict at one point."""
    return Verdict(point, mechanism, solve(point, mechanism, sampling=Sampling(draws=DRAWS)), DELTA)


def growth_of_margin(point: Construction, mechanism: Mechanism) -> Growth | None:
    """Fit an exponent to the margin; None where some margin is not positive."""
    lengths = [n for n in (FAR if _any_length(mechanism) else NEAR) if n % point.step == 0]
    margins = [margin_at(at_length(point, n), mechanism) for n in lengths]
    if len(lengths) < 3 or min(margins) <= 0:
        return None
    fit = linregress(np.log(lengths), np.log(margins))
    reach = float(t.ppf(0.975, len(lengths) - 2)) * float(fit.stderr)
    return Growth(float(fit.slope), float(fit.slope) - reach, float(fit.slope) + reach, tuple(lengths))


def margin_at(point: Construction, mechanism: Mechanism) -> float:
    """The margin alone: closed form, groups, or literal tokens."""
    if isinstance(mechanism, ScoreMechanism):
        try:
            exact_model(point)
            return solve(point, with_kernel(mechanism), "exact").margin
        except EngineRefusal:
            pass
    if mechanism.takes_counts:
        return grouped.solve(point, mechanism, Sampling(draws=1)).margin
    v0, v1 = (dense.probe(point, mechanism, label, torch.float64) for label in (0, 1))
    return (v1 - v0) / point.unit


def blind_from(point: Construction, mechanism: Mechanism) -> int | None:
    """From which of the lengths on the verdict is `blind`."""
    lengths = [n for n in (FAR if _any_length(mechanism) else NEAR) if n % point.step == 0]
    found = None
    for n in reversed(lengths):
        if verdict_at(at_length(point, n), mechanism).word != "blind":
            break
        found = n
    return found


def at_length(point: Construction, n: int) -> Construction:
    """The same point with another n."""
    kept = {name: value for name, value in point.parameters.values().items() if value is not None}
    return type(point).read({**kept, "n": n})


def _any_length(mechanism: Mechanism) -> bool:
    return isinstance(mechanism, ScoreMechanism) or mechanism.takes_counts
