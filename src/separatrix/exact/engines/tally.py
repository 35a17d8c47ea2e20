"""Counts of sampled firings, and the confidence interval of P(tells apart)."""

from __future__ import annotations

from dataclasses import dataclass

import scipy

from separatrix.core.tensors import Tensor
from separatrix.exact.engines.outcome import EngineRefusal


@dataclass
class Tally:
    """Counts over the draws. Pre-activations too close to the threshold to decide count as not firing.

    An exact tie does not fire, and nearly all pre-activations that close are ties. The interval does not
    rely on this: it extends from `sure` to `maybe`.
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
        """Count a batch of largest pre-activations of D0 and D1, which may be off by `slack`."""
        if not all(peak.isfinite().all() for peak in peaks):
            raise EngineRefusal("the attention output is NaN or overflows the number format")
        over = [(peak.double() - threshold).reshape(-1, m) for peak in peaks]
        surely = [(excess > slack).any(-1) for excess in over]
        possibly = [(excess > -slack).any(-1) for excess in over]
        self.draws += len(over[0])
        self.neurons = _plus(self.neurons, [int((excess > slack).sum()) for excess in over])
        self.only += int(((over[1] > slack) & ~(over[0] > slack)).sum())
        self.fired = _plus(self.fired, [int(excess.sum()) for excess in surely])
        self.hits += int((~surely[0] & surely[1]).sum())
        self.sure += int((~possibly[0] & surely[1]).sum())
        self.maybe += int((~surely[0] & possibly[1]).sum())
        self.close += int(((surely[0] != possibly[0]) | (surely[1] != possibly[1])).sum())

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the interval of P(tells apart) after the draws so far."""
        # Open draws count as misses below and as hits above: the interval holds however they fall.
        low, _ = binomial_interval(self.sure, self.draws, confidence)
        _, high = binomial_interval(self.maybe, self.draws, confidence)
        return low, high


def binomial_interval(hits: int, draws: int, confidence: float) -> tuple[float, float]:
    """Return the exact binomial interval of Clopper and Pearson."""
    doubt = (1 - confidence) / 2
    low = float(scipy.special.betaincinv(hits, draws - hits + 1, doubt)) if hits else 0.0
    high = float(scipy.special.betaincinv(hits + 1, draws - hits, 1 - doubt)) if hits < draws else 1.0
    return low, high


def _plus(first: tuple[int, int], second: list[int]) -> tuple[int, int]:
    return first[0] + second[0], first[1] + second[1]
