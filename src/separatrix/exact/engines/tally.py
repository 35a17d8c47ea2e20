"""Counting what fires, and the interval of P(tells apart) after so many draws."""

from __future__ import annotations

from dataclasses import dataclass

import scipy

from separatrix.core.tensors import Tensor
from separatrix.exact.engines.outcome import EngineRefusal


@dataclass
class Tally:
    """Counts of what fired; what is too close to the threshold to call is taken not to.

    An exact tie does not fire, and nearly all that is so close is one. The interval does not rely on
    it: it reaches from `sure` to `maybe`.
    """

    draws: int = 0
    neurons: tuple[int, int] = (0, 0)
    fired: tuple[int, int] = (0, 0)
    only: int = 0
    hits: int = 0
    sure: int = 0
    maybe: int = 0
    close: int = 0

    def add(self, peaks: list[Tensor], m: int, threshold: float, slack: float) -> None:
        """Count a batch: the peaks of D0 and D1 for the same sign vectors; within `slack` they may be off."""
        if not all(peak.isfinite().all() for peak in peaks):
            raise EngineRefusal("what it returns is NaN or too large for the number format: nothing to read")
        over = [(peak.double() - threshold).reshape(-1, m) for peak in peaks]
        surely = [(each > slack).any(-1) for each in over]
        possibly = [(each > -slack).any(-1) for each in over]
        self.draws += len(over[0])
        self.neurons = _plus(self.neurons, [int((each > slack).sum()) for each in over])
        self.only += int(((over[1] > slack) & ~(over[0] > slack)).sum())
        self.fired = _plus(self.fired, [int(each.sum()) for each in surely])
        self.hits += int((~surely[0] & surely[1]).sum())
        self.sure += int((~possibly[0] & surely[1]).sum())
        self.maybe += int((~surely[0] & possibly[1]).sum())
        self.close += int(((surely[0] != possibly[0]) | (surely[1] != possibly[1])).sum())

    def interval(self, confidence: float) -> tuple[float, float]:
        """The interval of P(tells apart) after the draws so far."""
        low, _ = binomial_interval(self.sure, self.draws, confidence)
        _, high = binomial_interval(self.maybe, self.draws, confidence)
        return low, high


def binomial_interval(hits: int, draws: int, confidence: float) -> tuple[float, float]:
    """The exact binomial interval of Clopper and Pearson, from the quantiles of beta distributions."""
    doubt = (1 - confidence) / 2
    low = float(scipy.special.betaincinv(hits, draws - hits + 1, doubt)) if hits else 0.0
    high = float(scipy.special.betaincinv(hits + 1, draws - hits, 1 - doubt)) if hits < draws else 1.0
    return low, high


def _plus(one: tuple[int, int], other: list[int]) -> tuple[int, int]:
    return one[0] + other[0], one[1] + other[1]
