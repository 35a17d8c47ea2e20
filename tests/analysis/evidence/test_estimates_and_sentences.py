"""Intervals over seeds, and the sentence that follows from five numbers."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from separatrix.analysis.evidence.conclusions import (
    SAMPLING_SLACK,
    BesideFloor,
    Scores,
    TrainingWord,
    describe_comparisons,
    describe_scores,
)
from separatrix.analysis.evidence.estimates import (
    PairedDifference,
    SeedShare,
    SeedSummary,
    accuracy_half_width,
    compare_pairs,
    describe_resolution,
    holm,
    median_rank,
    seeds_to_resolve,
    sign_flip_p,
)
from separatrix.analysis.evidence.protocol import rates_near_best
from separatrix.training.tasks import ProvedCeiling

PROVED = ProvedCeiling(0.62, "one linear layer", "by hand")


def test_the_interval_of_the_median_is_between_order_statistics() -> None:
    six = [0.91, 0.95, 0.89, 0.99, 0.93, 0.94]
    assert SeedSummary(six).interval == (0.89, 0.99)
    assert SeedSummary(six).median == pytest.approx(0.935)
    assert SeedSummary([*six, 0.1, 1.0, 0.97]).interval == (0.89, 0.99)
    assert SeedSummary(six[:5]).interval is None
    for count in range(1, 200):
        rank = median_rank(count)
        assert 2 * stats.binom.cdf(rank - 1, count, 0.5) <= 0.05 < 2 * stats.binom.cdf(rank, count, 0.5)


def test_six_of_six_and_none_of_six_are_told_apart() -> None:
    assert SeedShare(6, 6).interval == pytest.approx((0.5407, 1), abs=1e-4)
    assert SeedShare(0, 6).interval == pytest.approx((0, 0.4593), abs=1e-4)


def normal(chance: np.random.Generator, count: int) -> np.ndarray:
    return chance.normal(3, 2, count)


def skewed(chance: np.random.Generator, count: int) -> np.ndarray:
    return chance.lognormal(0, 1.5, count)


def bimodal(chance: np.random.Generator, count: int) -> np.ndarray:
    """One seed in ten fails."""
    solved = chance.random(count) > 0.1
    return np.where(solved, chance.normal(0.98, 0.002, count), chance.normal(0.5, 0.01, count))


def even(chance: np.random.Generator, count: int) -> np.ndarray:
    """Half of the seeds fail, a little fewer: the median is at the lower end of the higher mode."""
    solved = chance.random(count) > 0.49
    return np.where(solved, chance.normal(0.98, 0.002, count), chance.normal(0.5, 0.01, count))


@pytest.mark.parametrize("seeds", [6, 7, 9, 12])
@pytest.mark.parametrize("draw", [normal, skewed, bimodal, even])
def test_the_interval_of_the_median_covers_as_often_as_it_says(
    draw: Callable[[np.random.Generator, int], np.ndarray], seeds: int
) -> None:
    chance = np.random.default_rng(1)
    truth = np.median(draw(chance, 1_000_001))
    intervals = [SeedSummary(draw(chance, seeds).tolist()).interval for _ in range(3000)]
    assert np.mean([ends is not None and ends[0] <= truth <= ends[1] for ends in intervals]) >= 0.93


def test_students_interval_would_not_cover_when_one_seed_in_ten_fails() -> None:
    """The reason why no interval of a mean is shown."""
    chance = np.random.default_rng(2)
    drawn = [bimodal(chance, 6) for _ in range(2000)]
    truth = 0.9 * 0.98 + 0.1 * 0.5
    ends = [stats.t.interval(0.95, 5, np.mean(each), stats.sem(each)) for each in drawn]
    assert np.mean([low <= truth <= high for low, high in ends]) < 0.6


def test_the_sign_flip_test_is_that_of_scipy() -> None:
    chance = np.random.default_rng(3)
    for count in range(2, 12):
        gaps = chance.normal(0.5, 1, count)
        known = stats.permutation_test(
            (gaps,), np.sum, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
        )
        assert sign_flip_p(gaps.tolist()) == pytest.approx(known.pvalue)
    assert sign_flip_p([0.1] * 25) < 1e-4
    assert sign_flip_p(([0.1, -0.1] * 13)[:25]) > 0.5
    assert sign_flip_p([0.0] * 25) == 1.0
    assert sign_flip_p([0.3]) == 1.0


@pytest.mark.parametrize("draw", [normal, skewed, bimodal])
def test_pairs_of_equal_mechanisms_are_rarely_told_apart(
    draw: Callable[[np.random.Generator, int], np.ndarray],
) -> None:
    """The share of experiments with any significant pair is at most 5 %, whatever the shape of scores."""
    chance, wrong, tried = np.random.default_rng(4), 0, 1000
    for _ in range(tried):
        scores = {name: dict(enumerate(draw(chance, 9).tolist())) for name in "abcd"}
        wrong += any(pair.is_significant for pair in compare_pairs(scores))
    assert wrong / tried < 0.05 + 3 * (0.05 * 0.95 / tried) ** 0.5


def test_p_values_are_adjusted_as_holm_does() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_differences_are_paired_by_seed_and_corrected_for_their_number() -> None:
    base = {seed: 0.1 * seed for seed in range(9)}
    up = {seed: score + 0.1 + 0.01 * seed for seed, score in base.items()}
    (found,) = compare_pairs({"a": up, "b": base})
    assert found.difference == pytest.approx(0.14)
    assert found.p_value == found.p_adjusted == 2 / 2**9
    assert found.is_significant
    three = compare_pairs({"a": up, "b": base, "c": {seed: 0.1 * (8 - seed) for seed in range(9)}})
    assert [pair.is_significant for pair in three] == [True, False, False]
    assert three[0].p_adjusted == pytest.approx(3 * 2 / 2**9)
    (unclear,) = compare_pairs({"a": {1: 0.5, 2: 0.9, 3: 0.1}, "b": {3: 0.2, 2: 0.7, 1: 0.6}})
    assert not unclear.is_significant
    assert found.as_json()["separated"] is True


def test_what_six_seeds_cannot_show_is_stated() -> None:
    def constant(*names: str) -> dict[str, dict[int, float]]:
        return {name: {seed: float(place + seed) for seed in range(6)} for place, name in enumerate(names)}

    assert describe_resolution(compare_pairs(constant("a", "b"))) is None
    told = describe_resolution(paired := compare_pairs(constant("a", "b", "c")))
    assert told == (
        "6 seeds cannot show a difference among 3 pairs: the smallest possible adjusted p-value is 0.094; 7 seeds can"
    )
    assert min(pair.p_adjusted for pair in paired) == pytest.approx(0.09375)
    for pairs in range(1, 50):
        seeds = seeds_to_resolve(pairs)
        assert 2 * pairs / 2**seeds <= 0.05 < 2 * pairs / 2 ** (seeds - 1)


def test_the_window_is_what_comes_close_to_the_best() -> None:
    pilots = {Fraction(rate): score for rate, score in ((1, 0.5), (2, 0.985), (3, 0.99))}
    assert rates_near_best(pilots, 1, 0.01) == [2, 3]
    assert rates_near_best(pilots, -1, 0.01) == [1]
    assert rates_near_best({Fraction(1): None}, 1, 0.01) == [1]


def scores(
    *, proved: ProvedCeiling | None = None, witness: float | None = None, trained: float = 0.5, solved: int = 0
) -> Scores:
    return Scores(1, 0.01, 0.98, proved, witness, trained, SeedShare(solved, 6))


@pytest.mark.parametrize(
    ("found", "word", "says"),
    [
        (scores(solved=6), TrainingWord.LEARNS, "6 of 6 seeds"),
        (scores(solved=2), TrainingWord.LEARNS, "on some seeds: 2 of 6"),
        (
            scores(witness=0.979),
            TrainingWord.NOT_LEARNED,
            "can (0.9790 by hand-written weights); training reached 0.5000",
        ),
        (scores(witness=0.7), TrainingWord.UNKNOWN, "the best known weights reach 0.7000; this proves nothing"),
        (scores(), TrainingWord.UNKNOWN, "no weights are known for this setting; this proves nothing"),
        (scores(proved=PROVED, trained=0.61), TrainingWord.CANNOT, "training reached this ceiling: 0.6100"),
        (
            scores(proved=PROVED, witness=0.62),
            TrainingWord.CANNOT,
            "hand-written weights reach 0.6200, but training reached 0.5000",
        ),
        (scores(proved=PROVED), TrainingWord.CANNOT, "whether it can do better is unknown"),
        (scores(proved=ProvedCeiling(0.98, "all", ""), solved=6), TrainingWord.LEARNS, "6 of 6"),
    ],
)
def test_the_sentence_follows_from_the_numbers(found: Scores, word: TrainingWord, says: str) -> None:
    judged_word, sentence = describe_scores(found)
    assert judged_word is word
    assert says in sentence


@pytest.mark.parametrize(
    ("sign", "trained", "floor", "says"),
    [
        (1, 0.95, 0.93, "no ceiling is known; training reached 0.9500, a shortcut 0.9300"),
        (1, 0.93, 0.93, "no better than a shortcut (0.9300): this says nothing about the mechanism"),
        (1, 0.5, 0.93, "training reached 0.5000, no better than a shortcut"),
        (-1, 2.5, 3.1, "no ceiling is known; training reached 2.5000, a shortcut 3.1000"),
        (-1, 3.7, 3.1, "training reached 3.7000, no better than a shortcut"),
        (1, None, 0.9, "every run failed"),
    ],
)
def test_real_data_are_judged_beside_the_floor(sign: int, trained: float | None, floor: float, says: str) -> None:
    ceiling = 1.0 if sign > 0 else 0.0
    word, sentence = describe_scores(Scores(sign, 0.01, ceiling, None, None, trained, SeedShare(0, 6), floor))
    assert word is TrainingWord.UNKNOWN
    assert says in sentence


def test_lower_is_better_where_scores_are_errors() -> None:
    found = Scores(-1, 0.01, 0.0, ProvedCeiling(0.23, "one layer", ""), 0.231, 0.42, SeedShare(0, 6))
    word, sentence = describe_scores(found)
    assert word is TrainingWord.CANNOT
    assert "at best 0.2300" in sentence
    assert "hand-written weights reach 0.2310, but training reached 0.4200" in sentence


def test_a_score_within_the_scatter_of_a_ceiling_has_reached_it() -> None:
    for sign in (1, -1):
        found = Scores(sign, 0.01, 1.0, None, None, None, SeedShare(0, 6))
        assert found.reaches(-sign * SAMPLING_SLACK, 0.0)
        assert found.reaches(sign * 0.5, 0.0)
        assert not found.reaches(-sign * math.nextafter(SAMPLING_SLACK, 1), 0.0)
        assert not found.reaches(None, 0.0)
    assert SAMPLING_SLACK == 0.015


@pytest.mark.parametrize(
    ("witness", "tuned", "sign", "expressible", "weights"),
    [
        (0.5, 0.7, 1, 0.7, "tuned hand-written weights"),
        (0.7, 0.5, 1, 0.7, "hand-written weights"),
        (0.7, 0.7, 1, 0.7, "hand-written weights"),
        (0.7, 0.5, -1, 0.5, "tuned hand-written weights"),
        (None, 0.5, 1, 0.5, "tuned hand-written weights"),
        (0.5, None, 1, 0.5, "hand-written weights"),
    ],
)
def test_the_best_known_weights(
    witness: float | None, tuned: float | None, sign: int, expressible: float, weights: str
) -> None:
    found = Scores(sign, 0.01, 1.0, None, witness, None, SeedShare(0, 6), tuned=tuned)
    assert (found.expressible, found.weights) == (expressible, weights)


def test_training_in_words() -> None:
    found = Scores(1, 0.01, 1.0, None, None, 0.5, SeedShare(0, 6))
    assert found.training == "training reached 0.5000"
    assert replace(found, steps=12_345).training == "12,345 steps of training reached 0.5000"
    assert replace(found, is_improving=True).training == "training reached 0.5000, still improving"
    assert replace(found, trained=None, steps=3).training == "every run failed"


def pair(a: str, b: str, difference: float, p: float) -> PairedDifference:
    return PairedDifference(a, b, SeedSummary([difference] * 6), p)


@pytest.mark.parametrize("sign", [1, -1])
def test_sentences_compare_only_what_is_better_than_the_floor(sign: int) -> None:
    above, at, unable = BesideFloor.ABOVE, BesideFloor.AT, BesideFloor.UNABLE
    pairs = [
        pair("a", "b", 0.25, 0.05),
        pair("a", "c", -0.125, 0.01),
        pair("b", "c", 0.5, 0.0501),
        pair("a", "d", 1, 0),
    ]
    positions = {"a": above, "b": above, "c": above, "d": at, "e": BesideFloor.FAILED, "f": unable}
    lines = describe_comparisons(positions, pairs, sign)
    assert lines[:4] == (
        "f: proved to be unable to reach the floor, which takes another class of models",
        "nothing can be concluded about d, e: not shown to be better than the floor",
        f"{'a is better than b' if sign > 0 else 'b is better than a'} by 0.2500 (adjusted p = 0.05)",
        f"{'c is better than a' if sign > 0 else 'a is better than c'} by 0.1250 (adjusted p = 0.01)",
    )
    assert lines[4] == "no significant difference between b and c"
    assert "6 seeds cannot show a difference among 4 pairs" in lines[5]
    assert len(lines) == 6
    assert describe_comparisons({"a": above, "b": above}, [pair("a", "b", 0.25, 0.01)], 1) == (
        "a is better than b by 0.2500 (adjusted p = 0.01)",
    )
    (only,) = describe_comparisons({"a": at, "b": at}, [pair("a", "b", 0.25, 0.01)], 1)
    assert only.startswith("no mechanism was shown to be better than the floor")


def test_sampling_errors_of_shares() -> None:
    assert accuracy_half_width(0.5, 100) == pytest.approx(1.959964 * 0.05, rel=1e-6)
    assert [accuracy_half_width(share, 100) for share in (0.0, 1.0, -0.5, 1.5)] == [0.0] * 4


def test_more_than_twenty_seeds_are_flipped_at_random_and_the_p_value_stays_valid() -> None:
    """The smallest p-value counts the observed signs; a two-sided p-value of few large gaps is known."""
    assert sign_flip_p([1.0] * 20) == 2 / 2**20
    assert sign_flip_p([1.0] * 40) == 1 / 100_001
    single = [1.0] + [0.0] * 30
    assert sign_flip_p(single) == 1.0
    two = [1.0, 1.0] + [0.0] * 30
    assert sign_flip_p(two) == pytest.approx(0.5, abs=0.005)
