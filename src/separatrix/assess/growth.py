"""How the margin grows with the number of tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import linregress, t

from separatrix.assess.lengths import on_ladder
from separatrix.constructions import Construction
from separatrix.engines import EngineRefusal, Sampling, dense, solve
from separatrix.mechanisms import Mechanism
from separatrix.verdicts import Verdict

FAR = tuple(10**k for k in range(3, 13))
NEAR = (200, 400, 800, 1600)
"""Lengths at which margins are taken: with token groups, and with literal tokens."""
WIDEST = 1.0
"""An exponent known less well than this is none."""


@dataclass(frozen=True)
class Growth:
    """margin ~ n^exponent, fitted on log axes, with a 95% interval from the scatter."""

    exponent: float
    low: float
    high: float
    lengths: tuple[int, ...]

    @property
    def is_power(self) -> bool:
        """Whether the fit says anything: a margin that decays exponentially has no exponent."""
        return self.high - self.low <= WIDEST


def growth_of_margin(verdict: Verdict) -> Growth | None:
    """Fit an exponent to the margin; None where some margin is not positive or there are too few."""
    literal = verdict.outcome.engine == "dense"
    ladder = on_ladder(verdict.construction, NEAR if literal else FAR, literal)
    margins = [margin_at(point, verdict.mechanism) for point in ladder]
    if len(ladder) < 3 or min(margins) <= 0:
        return None
    lengths = [point.n for point in ladder]
    if len(set(margins)) == 1:
        return Growth(0.0, 0.0, 0.0, tuple(lengths))
    fit = linregress(np.log(lengths), np.log(margins))
    reach = float(t.ppf(0.975, len(lengths) - 2)) * float(fit.stderr)
    return Growth(float(fit.slope), float(fit.slope) - reach, float(fit.slope) + reach, tuple(lengths))


def margin_at(point: Construction, mechanism: Mechanism) -> float:
    """The margin alone: closed form, groups, or literal tokens."""
    for engine in ("exact", "grouped"):
        try:
            return solve(point, mechanism, engine, Sampling(draws=1) if engine == "grouped" else None).margin
        except EngineRefusal:
            continue
    v0, v1 = (dense.probe(point, mechanism, label, torch.float64) for label in (0, 1))
    return (v1 - v0) / point.unit
