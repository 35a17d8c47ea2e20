"""Exact probabilities of one neuron over random signs, and of m neurons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from separatrix.checker.arithmetic import Interval, ends, intervals
from separatrix.checker.constructions import TRIPLES, Signs, SpikeModel, ThresholdKey

BITS = 512
TINY = Fraction(1, 1 << 128)
MOST_BITS = 100_000
"""Powers up to this many bits are computed exactly."""

CountRange = tuple[int, int]
"""A half-open range of counts."""

Enclosure = tuple[Fraction, Fraction]

Triple = tuple[Fraction, Fraction, Fraction]
"""P(fires on D0), P(fires on D1) and P(fires on D1 only) of one neuron."""


@dataclass(frozen=True)
class FiringProbabilities:
    """The exact probabilities of one neuron, and enclosures of those of m neurons."""

    p0: Fraction
    p1: Fraction
    only_d1: Fraction
    fire_d0: Enclosure
    fire_d1: Enclosure
    distinguish: Enclosure


def probabilities(triple: Triple, m: int) -> FiringProbabilities:
    """Return the probabilities of m neurons, each with these probabilities."""
    return FiringProbabilities(*triple, *network(*triple, m))


def neuron(model: SpikeModel, least: Mapping[ThresholdKey, int]) -> Triple:
    """Return the probabilities of one neuron from the least firing counts."""
    spans = {(label, signs): _count_ranges(model, least, label, signs) for label in (0, 1) for signs in TRIPLES}
    # Whether a row fires changes at these counts only, so binomial sums are needed at them alone.
    points = {end for label_ranges in spans.values() for span in label_ranges for end in span}
    below = binomial_sums(model.blocks, points)
    states_between = [(start, stop, below[stop] - below[start]) for start, stop in pairwise(sorted(points))]
    totals = [0, 0, 0]
    for signs in TRIPLES:
        d0, d1 = spans[0, signs], spans[1, signs]
        for i, (inside, outside) in enumerate(((d0, []), (d1, []), (d1, d0))):
            totals[i] += sum(
                count
                for start, stop, count in states_between
                if _covers(inside, start, stop) and not _covers(outside, start, stop)
            )
    states = 1 << (model.blocks + 3)  # the signs of the other blocks, and the triple
    return Fraction(totals[0], states), Fraction(totals[1], states), Fraction(totals[2], states)


def _count_ranges(model: SpikeModel, least: Mapping[ThresholdKey, int], label: int, signs: Signs) -> list[CountRange]:
    """Return the counts at which each row exists and fires.

    A row in a + block needs at least one + block; a row in a - block needs at least one - block.
    """
    spans = []
    for key, first in least.items():
        if key[:2] == (label, signs):
            own_sign = key[3]
            start, stop = max(first, int(own_sign > 0)), model.blocks + int(own_sign >= 0)
            if start < stop:
                spans.append((start, stop))
    return spans


def _covers(spans: list[CountRange], start: int, stop: int) -> bool:
    return any(first <= start and stop <= last for first, last in spans)


def binomial_sums(trials: int, points: Iterable[int]) -> dict[int, int]:
    """Return for each point k in 0..trials+1 the sum of C(trials, i) over i < k, in one pass.

    >>> binomial_sums(4, [0, 1, 3, 5])
    {0: 0, 1: 1, 3: 11, 5: 16}
    """
    sorted_points = sorted(set(points))
    # By symmetry the sums beyond the middle follow from those before it: half the work, and shorter numbers.
    near = {min(k, trials + 1 - k) for k in sorted_points}
    sums, term, total = {}, 1, 0
    for i in range(max(near, default=0) + 1):
        if i in near:
            sums[i] = total
        total, term = total + term, term * (trials - i) // (i + 1)
    all_states = 1 << trials
    return {k: sums[k] if k in sums else all_states - sums[trials + 1 - k] for k in sorted_points}


def network(p0: Fraction, p1: Fraction, only_d1: Fraction, m: int) -> tuple[Enclosure, Enclosure, Enclosure]:
    """Return P(fires on D0), P(fires on D1) and P(tells apart) for m neurons.

    The last is `(1-p0)^m - q^m = (1-p0)^m (1 - (1-s)^m)`, where `s = only_d1 / (1-p0)` is the
    chance that a neuron silent on D0 fires on D1: a product, so nothing cancels.
    """
    given_silence = only_d1 / (1 - p0) if p0 < 1 else Fraction(0)
    silent, fires_given_silence = _none_fires(p0, m), _any_fires(given_silence, m)
    return (
        _any_fires(p0, m),
        _any_fires(p1, m),
        (silent[0] * fires_given_silence[0], silent[1] * fires_given_silence[1]),
    )


def _none_fires(p: Fraction, m: int) -> Enclosure:
    """(1-p)^m."""
    if _is_short(p, m):
        exact: Fraction = (1 - p) ** m
        return exact, exact
    decay = _decay(p, m)
    # exp(-decay) < 2^-10000, far below every float; the exact value would only cost time.
    if decay > 10_000:
        return Fraction(0), Fraction(1, 1 << 10_000)
    return ends(intervals(BITS).exp(-decay))


def _any_fires(p: Fraction, m: int) -> Enclosure:
    """Return 1 - (1-p)^m with a small relative error even if it is tiny."""
    at = intervals(BITS)
    if not _is_short(p, m) and (decay := _decay(p, m)) < at.rational(TINY):
        # 1 - x <= (1 - exp(-x)) / x <= 1: subtracting from 1 would leave no digits of a tiny x.
        return ends(decay * (1 - at.enclosing(0, 1) * decay))
    least, most = _none_fires(p, m)
    return 1 - most, 1 - least


def _is_short(p: Fraction, m: int) -> bool:
    """Whether (1-p)^m is computed exactly."""
    return p in (0, 1) or p.denominator.bit_length() * m <= MOST_BITS


def _decay(p: Fraction, m: int) -> Interval:
    """Return -m log(1-p); for tiny p from `p <= -log(1-p) <= p + p^2`."""
    at = intervals(BITS)
    if p < TINY:
        return m * at.rational(p) * (1 + at.enclosing(0, 1) * at.rational(p))
    return -m * at.log(at.rational(1 - p))
