"""What a few seeds say: a mean, a share and a difference, each with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from scipy.special import ndtri, stdtrit

from separatrix.engines.tally import binomial_interval

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Mean:
    """The mean of scores over seeds, with Student's interval: exact if scores are normal."""

    mean: float
    interval: tuple[float, float] | None
    """None where one seed alone says nothing of the spread."""

    @classmethod
    def of(cls, scores: Sequence[float]) -> Mean:
        """The mean of at least one score.

        >>> low, high = Mean.of([1.0, 2.0, 3.0]).interval
        >>> round(low, 4), round(high, 4)
        (-0.4841, 4.4841)
        """
        mean, count = fmean(scores), len(scores)
        if count < 2:
            return cls(mean, None)
        half = float(stdtrit(count - 1, (1 + CONFIDENCE) / 2)) * stdev(scores) / count**0.5
        return cls(mean, (mean - half, mean + half))


def sampling_half(share: float, answers: int) -> float:
    """Half of the 95 % interval of a share that is right of so many answers, taken for independent.

    >>> round(sampling_half(0.5, 100), 3), sampling_half(1.0, 100)
    (0.098, 0.0)
    """
    share = min(max(share, 0.0), 1.0)
    return float(ndtri((1 + CONFIDENCE) / 2)) * math.sqrt(share * (1 - share) / answers)


@dataclass(frozen=True)
class Share:
    """How many of some seeds, with the exact interval of Clopper and Pearson."""

    count: int
    of: int

    @property
    def interval(self) -> tuple[float, float]:
        """Of the probability that a seed does.

        >>> Share(6, 6).interval[0] > 0.54 > 0.46 > Share(0, 6).interval[1]
        True
        """
        return binomial_interval(self.count, self.of, CONFIDENCE)

    def as_json(self) -> dict[str, Any]:
        return {"count": self.count, "of": self.of, "interval": self.interval}


@dataclass(frozen=True)
class Difference:
    """How much more one mechanism scores than another, seed by seed: both saw the same samples."""

    a: str
    b: str
    found: Mean

    @property
    def separated(self) -> bool:
        """Whether the seeds tell the two apart: the interval leaves out 0."""
        if self.found.interval is None:
            return False
        low, high = self.found.interval
        return low > 0 or high < 0

    def as_json(self) -> dict[str, Any]:
        found = {"a": self.a, "b": self.b, "difference": self.found.mean, "interval": self.found.interval}
        return {**found, "separated": self.separated}
