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
from itertools import combinations
from statistics import fmean, median

import numpy as np
from scipy.special import ndtri

from separatrix.core.documents import Document, Hidden, shown, shown_as
from separatrix.exact.engines.tally import binomial_interval

CONFIDENCE = 0.95
SIGNIFICANCE = 1 - CONFIDENCE
MAX_ENUMERATED_SEEDS = 20
"""Up to this many seeds the sign-flip test enumerates every flip; above, it draws flips."""
DRAWN_FLIPS = 100_000


@dataclass(frozen=True)
class SeedSummary(Document):
    """The scores of all seeds, with their mean, their median and its interval; null if every run failed."""

    scores: Hidden[Sequence[float]]

    @shown_as("seeds")
    def seed_scores(self) -> Sequence[float]:
        """The score of each seed."""
        return self.scores

    @shown
    def mean(self) -> float:
        """The mean score."""
        return fmean(self.scores) if self.scores else math.nan

    @shown
    def median(self) -> float:
        """The median score."""
        return float(median(self.scores)) if self.scores else math.nan

    @shown
    def interval(self) -> tuple[float, float] | None:
        """The interval between two order statistics that covers the median with 95 % or more.

        It assumes only that seeds are independent. From the lowest to the highest of k seeds, the coverage is
        1 - 2^(1-k): 96.9 % for six seeds. None for fewer than six, whose whole range covers less than 95 %.

        >>> SeedSummary([0.9, 0.2, 1.0, 0.95, 0.97, 0.99]).interval
        (0.2, 1.0)
        >>> SeedSummary([0.9, 0.95, 1.0]).interval is None  # three seeds: 75 % at most
        True
        """
        rank = median_rank(len(self.scores))
        if not rank:
            return None
        ascending_scores = sorted(self.scores)
        return ascending_scores[rank - 1], ascending_scores[-rank]


def median_rank(count: int) -> int:
    """Return the rank, from either end, of scores that enclose the median with 95 % confidence; 0 if none.

    >>> [median_rank(count) for count in (2, 5, 6, 8, 9, 20)]
    [0, 0, 1, 1, 2, 6]
    """
    # Of the 2^count equally likely patterns of scores below and above the median, `below` have fewer than `rank`
    # scores below it; in as many, fewer than `rank` are above it. In these, the ranks do not enclose the median.
    rank, below = 0, 0
    while 2 * (below + math.comb(count, rank)) <= SIGNIFICANCE * 2**count:
        below += math.comb(count, rank)
        rank += 1
    return rank


def accuracy_half_width(share: float, answers: int) -> float:
    """Return half the width of the 95 % interval of an accuracy: a share of independent answers that are correct.

    >>> round(accuracy_half_width(0.5, 100), 3), accuracy_half_width(1.0, 100)
    (0.098, 0.0)
    """
    share = min(max(share, 0.0), 1.0)
    return float(ndtri((1 + CONFIDENCE) / 2)) * math.sqrt(share * (1 - share) / answers)


@dataclass(frozen=True)
class SeedShare(Document):
    """A number of seeds out of all, with the exact interval of Clopper and Pearson."""

    count: int
    of: int

    @shown
    def interval(self) -> tuple[float, float]:
        """The interval of the probability for a single seed.

        >>> SeedShare(6, 6).interval[0] > 0.54 > 0.46 > SeedShare(0, 6).interval[1]
        True
        """
        return binomial_interval(self.count, self.of, CONFIDENCE)


@dataclass(frozen=True)
class PairedDifference(Document):
    """The score of mechanism a minus that of mechanism b, seed by seed: both saw the same samples."""

    a: str
    b: str
    gaps: Hidden[SeedSummary]
    """The difference for each seed that both have."""
    p_adjusted: float
    """The p-value of the sign-flip test after Holm's correction for all pairs of the experiment."""

    @shown
    def difference(self) -> float:
        """The mean difference."""
        return self.gaps.mean

    @shown
    def interval(self) -> tuple[float, float] | None:
        """The interval of the median difference; None for fewer than six seeds."""
        return self.gaps.interval

    @shown
    def p_value(self) -> float:
        """The p-value of the exact sign-flip test, without a correction."""
        return sign_flip_p(self.gaps.scores)

    @shown_as("separated")
    def is_significant(self) -> bool:
        """Whether the corrected p-value is at most 0.05."""
        return self.p_adjusted <= SIGNIFICANCE


def compare_pairs(scores: Mapping[str, Mapping[int, float]]) -> tuple[PairedDifference, ...]:
    """Compare every mechanism with every later one, over the seeds that both have.

    `scores` has the score of each seed by mechanism. P-values are adjusted for the number of pairs.
    """
    gaps = {
        (a, b): SeedSummary([scores[a][seed] - scores[b][seed] for seed in seeds])
        for a, b in combinations(scores, 2)
        if (seeds := sorted(scores[a].keys() & scores[b].keys()))
    }
    p_values = holm([sign_flip_p(summary.scores) for summary in gaps.values()])
    return tuple(PairedDifference(*pair, gaps[pair], p) for pair, p in zip(gaps, p_values, strict=True))


def sign_flip_p(gaps: Sequence[float]) -> float:
    """Return the two-sided p-value of the hypothesis that a seed's gap is as likely as its negative.

    The statistic is the absolute sum. All 2^k flips of the signs are enumerated for k up to 20 seeds; for
    more, flips are drawn, and the drawn p-value is still valid. The smallest possible value is 2/2^k by
    enumeration, and 1/100,001 by drawing.

    >>> sign_flip_p([0.1, 0.2, 0.1, 0.3, 0.2, 0.1]), sign_flip_p([0.0, 0.0])
    (0.03125, 1.0)
    """
    values = np.asarray(gaps, dtype=np.float64)
    # The slack counts sums that differ from the observed one by rounding errors only.
    observed_sum = abs(values.sum()) - 1e-12 * np.abs(values).sum()
    if len(values) <= MAX_ENUMERATED_SEEDS:
        sums = values[:1]  # the sign of the first may stay: the statistic is symmetric
        for value in values[1:]:
            sums = np.concatenate([sums + value, sums - value])
        return float(np.mean(np.abs(sums) >= observed_sum))
    generator = np.random.default_rng(0)
    extreme = 1  # the observed signs count as one of the draws
    # In parts, so that the matrix of signs stays small.
    for _ in range(100):
        signs = generator.integers(2, size=(DRAWN_FLIPS // 100, len(values))) * 2 - 1
        extreme += int(np.sum(np.abs(signs @ values) >= observed_sum))
    return extreme / (DRAWN_FLIPS + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for their number by the method of Holm.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted_values, highest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        # A larger p-value must not become smaller than the one before it.
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted_values[index] = highest
    return adjusted_values


def seeds_to_resolve(pairs: int) -> int:
    """Return the number of seeds from which on the sign-flip test can show a difference among so many pairs.

    >>> [seeds_to_resolve(pairs) for pairs in (1, 3, 10)]
    [6, 7, 9]
    """
    return math.ceil(math.log2(2 * pairs / SIGNIFICANCE))


def describe_resolution(differences: Sequence[PairedDifference]) -> str | None:
    """Return a sentence if these seeds cannot show any difference; None if they can.

    >>> describe_resolution(compare_pairs({"a": {1: 1.0, 2: 1.0}, "b": {1: 0.5, 2: 0.5}}))
    '2 seeds cannot show a difference: the smallest possible p-value is 0.5; 6 seeds can'
    """
    if not differences:
        return None
    seeds, pairs = max(len(pair.gaps.scores) for pair in differences), len(differences)
    if seeds >= seeds_to_resolve(pairs):
        return None
    smallest = min(1.0, 2 * pairs / 2**seeds)
    family, p_value = ("", "p-value") if pairs == 1 else (f" among {pairs} pairs", "adjusted p-value")
    return (
        f"{seeds} seeds cannot show a difference{family}: the smallest possible {p_value} is "
        f"{smallest:.2g}; {seeds_to_resolve(pairs)} seeds can"
    )
