"""Statistics over training seeds that hold when some seeds fail.

Scores over seeds are often bimodal: most seeds solve a task and a few do not. Student's interval for the mean
assumes normal scores; with one failing seed in ten and six seeds it covers the mean in 47 % of cases, because
six equal scores have no spread. The statistics here assume no shape: an interval for the median from order
statistics, an exact interval for the share of seeds that solve a task, and an exact sign-flip test for pairs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

import numpy as np
from scipy.special import ndtri

from separatrix.exact.engines.tally import binomial_interval

CONFIDENCE = 0.95
SIGNIFICANCE = 1 - CONFIDENCE
MAX_ENUMERATED_SEEDS = 20
"""Up to this many seeds the sign-flip test enumerates every flip; above, it draws flips."""
DRAWN_FLIPS = 100_000


@dataclass(frozen=True)
class SeedSummary:
    """The scores of all seeds, with their median and its interval."""

    scores: tuple[float, ...]

    @classmethod
    def of(cls, scores: Sequence[float]) -> SeedSummary:
        """Summarise at least one score.

        >>> SeedSummary.of([0.9, 0.2, 1.0, 0.95, 0.97, 0.99]).interval
        (0.2, 1.0)
        >>> SeedSummary.of([0.9, 0.95, 1.0]).interval is None  # three seeds: 75 % at most
        True
        """
        if not scores:
            raise ValueError("a summary needs at least one score")
        return cls(tuple(scores))

    @property
    def mean(self) -> float:
        return fmean(self.scores)

    @property
    def median(self) -> float:
        return float(median(self.scores))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval between two order statistics that covers the median with 95 % or more.

        It assumes only that seeds are independent. From the lowest to the highest of k seeds, the coverage is
        1 - 2^(1-k): 96.9 % for six seeds. None for fewer than six, whose whole range covers less than 95 %.
        """
        rank = median_rank(len(self.scores))
        if not rank:
            return None
        ordered = sorted(self.scores)
        return ordered[rank - 1], ordered[-rank]


def median_rank(count: int) -> int:
    """The rank, from either end, of the scores between which the median lies with 95 % confidence; 0 if none.

    >>> [median_rank(count) for count in (2, 5, 6, 8, 9, 20)]
    [0, 0, 1, 1, 2, 6]
    """
    rank, below = 0, 0
    while 2 * (below + math.comb(count, rank)) <= SIGNIFICANCE * 2**count:
        below += math.comb(count, rank)
        rank += 1
    return rank


def sampling_half(share: float, answers: int) -> float:
    """Half of the 95 % interval of a share of independent answers that are correct.

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
    """How much more mechanism a scores than mechanism b, seed by seed: both saw the same samples."""

    a: str
    b: str
    gaps: SeedSummary
    """Score of a minus score of b, for each seed that both have."""
    p_adjusted: float
    """The p-value of the sign-flip test after Holm's correction for all pairs of the experiment."""

    @property
    def p_value(self) -> float:
        """Of the sign-flip test, without a correction."""
        return sign_flip_p(self.gaps.scores)

    @property
    def is_significant(self) -> bool:
        """Whether the seeds show a difference, after the correction."""
        return self.p_adjusted <= SIGNIFICANCE

    def as_json(self) -> dict[str, Any]:
        return {
            "a": self.a,
            "b": self.b,
            "difference": self.gaps.mean,
            "interval": self.gaps.interval,
            "p_value": self.p_value,
            "p_adjusted": self.p_adjusted,
            "separated": self.is_significant,
        }


def differences(scores: Mapping[str, Mapping[int, float]]) -> tuple[Difference, ...]:
    """Every mechanism against every later one, over the seeds that both have.

    `scores` has the score of each seed by mechanism. P-values are adjusted for the number of pairs.
    """
    names = list(scores)
    gaps = dict[tuple[str, str], SeedSummary]()
    for place, a in enumerate(names):
        for b in names[place + 1 :]:
            both = sorted(scores[a].keys() & scores[b].keys())
            if both:
                gaps[a, b] = SeedSummary.of([scores[a][seed] - scores[b][seed] for seed in both])
    adjusted = holm([sign_flip_p(summary.scores) for summary in gaps.values()])
    return tuple(Difference(*pair, gaps[pair], p) for pair, p in zip(gaps, adjusted, strict=True))


def sign_flip_p(gaps: Sequence[float]) -> float:
    """The two-sided p-value of the hypothesis that a seed's gap is as likely as its negative.

    The statistic is the absolute sum. All 2^k flips of the signs are enumerated for k up to 20 seeds; for
    more, flips are drawn, and the drawn p-value is still valid. The smallest possible value is 2/2^k.

    >>> sign_flip_p([0.1, 0.2, 0.1, 0.3, 0.2, 0.1]), sign_flip_p([0.0, 0.0])
    (0.03125, 1.0)
    """
    values = np.asarray(gaps, dtype=np.float64)
    observed = abs(values.sum()) - 1e-12 * np.abs(values).sum()
    if len(values) <= MAX_ENUMERATED_SEEDS:
        sums = values[:1]  # the sign of the first may stay: the statistic is symmetric
        for value in values[1:]:
            sums = np.concatenate([sums + value, sums - value])
        return float(np.mean(np.abs(sums) >= observed))
    generator = np.random.default_rng(0)
    extreme = 1  # the observed signs count as one of the draws
    for _ in range(100):
        signs = generator.integers(2, size=(DRAWN_FLIPS // 100, len(values))) * 2 - 1
        extreme += int(np.sum(np.abs(signs @ values) >= observed))
    return extreme / (DRAWN_FLIPS + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for their number by the method of Holm.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = highest
    return adjusted


def seeds_to_resolve(pairs: int) -> int:
    """How many seeds it takes before the sign-flip test can show a difference among so many pairs.

    >>> [seeds_to_resolve(pairs) for pairs in (1, 3, 10)]
    [6, 7, 9]
    """
    return math.ceil(math.log2(2 * pairs / SIGNIFICANCE))


def describe_resolution(paired: Sequence[Difference]) -> str | None:
    """A sentence that says that these seeds cannot show any difference; None where they can.

    >>> describe_resolution(differences({"a": {1: 1.0, 2: 1.0}, "b": {1: 0.5, 2: 0.5}}))
    '2 seeds cannot show a difference: the smallest possible p-value is 0.5; 6 seeds can'
    """
    if not paired:
        return None
    seeds, pairs = max(len(pair.gaps.scores) for pair in paired), len(paired)
    if seeds >= seeds_to_resolve(pairs):
        return None
    smallest = min(1.0, 2 * pairs / 2**seeds)
    family = "" if pairs == 1 else f" among {pairs} pairs"
    adjusted = "p-value" if pairs == 1 else "adjusted p-value"
    return (
        f"{seeds} seeds cannot show a difference{family}: the smallest possible {adjusted} is "
        f"{smallest:.2g}; {seeds_to_resolve(pairs)} seeds can"
    )
