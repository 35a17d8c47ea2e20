"""Edges of verdicts: P equal to a level, intervals that end at one, and claims that need every condition."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from cases import spike
from separatrix.checker import check
from separatrix.exact.engines.outcome import (
    MAX_EXACT_BITS,
    Neuron,
    Outcome,
    combine_neurons,
    fires_on_both,
    side_between,
    side_of_fractions,
)
from separatrix.exact.verdicts import certify
from separatrix.exact.verdicts.best_threshold import _distinguish
from separatrix.exact.verdicts.theorem import TheoremCoverage
from separatrix.exact.verdicts.words import separates, word_for
from separatrix.mechanisms import mechanism_named

DELTA, TINY = Fraction(1, 100), Fraction(1, 2**90)
HALF = Fraction(1, 2)


def decided(p0: Fraction, p1: Fraction, only: Fraction, m: int = 1) -> Outcome:
    neuron = Neuron(p0, p1, only)
    return combine_neurons(m, neuron, neuron, undecided_count=0, v0=0.0, v1=1.0, margin=1.0)


@pytest.mark.parametrize(
    ("probability", "word"),
    [
        (1 - DELTA, "distinguishes"),
        (1 - DELTA + TINY, "distinguishes"),
        (1 - DELTA - TINY, "partial"),
        (DELTA + TINY, "partial"),
        (DELTA, "blind"),
        (DELTA - TINY, "blind"),
    ],
)
def test_levels_belong_to_the_stronger_word(probability: Fraction, word: str) -> None:
    """P = delta fails and P = 1 - delta distinguishes, decided for fractions as close as 2^-90."""
    assert word_for(decided(Fraction(0), probability, probability), 1, DELTA) == word


def test_a_saturated_reader_with_p_equal_to_delta() -> None:
    outcome = decided(1 - DELTA, Fraction(1), DELTA)
    assert side_of_fractions(1 - DELTA, DELTA, 1, DELTA) == 0
    assert word_for(outcome, 1, DELTA) == "saturated"


@pytest.mark.parametrize(("shift", "side"), [(-TINY, -1), (Fraction(0), 0), (TINY, 1)])
def test_the_side_of_a_level_for_several_sign_vectors(shift: Fraction, side: int) -> None:
    """For m = 3, P = (3/4)^3 - (1/4)^3 = 13/32."""
    assert side_of_fractions(Fraction(1, 4), HALF, 3, Fraction(13, 32) - shift) == side


def test_powers_too_long_for_fractions_are_compared_as_balls() -> None:
    """An exact tie is then left open, and everything else is decided."""
    m = MAX_EXACT_BITS + 1
    assert side_of_fractions(Fraction(0), Fraction(1), m, Fraction(1)) is None
    only = Fraction(1, m)
    assert side_of_fractions(Fraction(0), only, m, Fraction(63, 100)) == 1
    assert side_of_fractions(Fraction(0), only, m, Fraction(64, 100)) == -1
    assert side_of_fractions(HALF, Fraction(1, 4), m, Fraction(0)) == 1


@pytest.mark.parametrize(
    ("low", "high", "side"),
    [(0.5, 0.5, 1), (0.5, 0.7, 1), (0.4, 0.5, None), (0.3, 0.4, -1), (0.4, 0.6, None), (float("nan"), 0.4, -1)],
)
def test_intervals_that_end_at_the_level(low: float, high: float, side: int | None) -> None:
    """An interval that only touches the level from below leaves open whether P reaches it."""
    assert side_between(low, high, HALF) == side
    assert side_between(float("nan"), float("nan"), HALF) is None


def test_bounds_of_undecided_neurons() -> None:
    """The least P takes the largest p0 and the least `only`, the largest P the other two."""
    low, high = Neuron(Fraction(1, 4), HALF, Fraction(1, 4)), Neuron(HALF, Fraction(3, 4), HALF)
    outcome = combine_neurons(2, low, high, undecided_count=3, v0=0.0, v1=1.0, margin=1.0)
    assert outcome.interval == (3 / 16, 1 / 2)
    assert outcome.distinguish == 11 / 32
    assert "3 comparisons undecided" in outcome.evidence
    assert isinstance(outcome.p0, float)
    assert word_for(outcome, 2, DELTA) == "partial"


@pytest.mark.parametrize(
    ("interval", "error", "word"),
    [
        ((0.0, 0.005), 0.0, "blind"),
        ((0.0, 0.02), 0.0, "undecided"),
        ((0.005, 0.5), 0.0, "undecided"),
        ((0.5, 0.995), 0.0, "undecided"),
        ((0.02, 0.98), 0.0, "partial"),
        ((0.02, 0.98), 0.011, "undecided"),
        ((0.992, 1.0), 0.001, "distinguishes"),
        ((0.992, 1.0), 0.003, "undecided"),
        ((0.0, 0.008), 0.003, "undecided"),
    ],
)
def test_words_of_intervals(interval: tuple[float, float], error: float, word: str) -> None:
    """`partial` needs both of its bounds, and rounding of the ends counts against every word."""
    sampled = replace(decided(Fraction(0), HALF, HALF), p0=0.0, p1=0.01, only=0.01, fire_d1=0.01, distinguish=0.0)
    assert word_for(replace(sampled, interval=interval, error=error), 1, DELTA) == word


@pytest.mark.parametrize(("fire_d1", "is_saturated"), [(0.5, True), (0.5 - 2**-53, False), (0.75, True)])
def test_firing_on_both_in_floats(fire_d1: float, is_saturated: bool) -> None:
    floats = replace(decided(HALF, HALF, Fraction(0)), p0=0.5, p1=0.5, only=0.0, fire_d1=fire_d1)
    assert fires_on_both(floats, 1) is is_saturated
    assert word_for(replace(floats, distinguish=0.0, interval=(0.0, 0.0)), 1, DELTA) == (
        "saturated" if is_saturated else "blind"
    )


def test_one_mechanism_separates_from_another_only_if_both_words_say_so() -> None:
    words = ("distinguishes", "blind", "saturated", "partial", "undecided")
    pairs = {(winner, loser) for winner in words for loser in words if separates(winner, loser)}
    assert pairs == {("distinguishes", "blind"), ("distinguishes", "saturated")}


@pytest.mark.parametrize(
    ("n", "proved_from", "applies"), [(99, 100, False), (100, 100, True), (101, 100, True), (100, None, False)]
)
def test_the_theorem_applies_from_its_n_on(n: int, proved_from: int | None, applies: bool) -> None:
    assert TheoremCoverage((), "P >= 0.98", n, proved_from).applies is applies


def test_certificates_have_the_version_and_the_enclosures_that_the_checker_takes() -> None:
    document = certify(spike(n=1000), mechanism_named("softmax"), DELTA)[1]
    assert document["version"] == 1
    assert check(document).holds
    for weight in document["spike_weights"]:
        low, high = map(Fraction, weight["enclosure"])
        assert 0 < high - low <= Fraction(2, 10**30)


@pytest.mark.parametrize(
    ("fires", "rises", "total", "m", "chance"),
    [
        (0, 0, 8, 3, 0.0),
        (8, 1, 8, 3, 0.0),
        (0, 8, 8, 3, 1.0),
        (2, 6, 8, 1, 0.75),
        (4, 4, 8, 2, 0.25),
        (3, 1, 8, 2, (25 - 16) / 64),
        (1, 1, 2**80, 2**80, math.exp(-1) - math.exp(-2)),
        (0, 1, 2**80, 1, 2.0**-80),
        (2**80 - 2**20, 2**20, 2**80, 1, 2.0**-60),
    ],
)
def test_chances_from_counts_lose_no_digits(fires: int, rises: int, total: int, m: int, chance: float) -> None:
    """(1-p0)^m - (1-p0-only)^m for p0 = fires/total and only = rises/total."""
    assert _distinguish(fires, rises, total, m) == pytest.approx(chance, rel=1e-12)
