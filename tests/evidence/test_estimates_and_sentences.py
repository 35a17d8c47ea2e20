"""Intervals over seeds, and the sentence that follows from five numbers."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from separatrix.evidence.estimates import Difference, Mean, Share
from separatrix.evidence.found import Pilot, differences, window
from separatrix.evidence.sentences import Scores, Word, judged
from separatrix.tasks import ProvedCeiling

PROVED = ProvedCeiling(0.62, "one linear layer", "by hand")


def test_the_interval_of_a_mean_is_students() -> None:
    scores = [0.91, 0.95, 0.89, 0.99, 0.93, 0.94]
    known = stats.t.interval(0.95, 5, np.mean(scores), stats.sem(scores))
    assert Mean.of(scores).interval == pytest.approx(known)
    assert Mean.of([0.5]).interval is None


def test_six_of_six_and_none_of_six_are_told_apart() -> None:
    assert Share(6, 6).interval == pytest.approx((0.5407, 1), abs=1e-4)
    assert Share(0, 6).interval == pytest.approx((0, 0.4593), abs=1e-4)


def test_the_interval_of_a_mean_covers_as_often_as_it_says() -> None:
    chance = np.random.default_rng(1)
    hits = 0
    for _ in range(2000):
        low, high = Mean.of(chance.normal(3, 2, 6).tolist()).interval or (0, 0)
        hits += low <= 3 <= high
    assert abs(hits / 2000 - 0.95) < 0.02


def test_differences_are_paired_by_seed_and_say_where_seeds_do_not_separate() -> None:
    same, up = {1: 0.5, 2: 0.9, 3: 0.1}, {1: 0.6, 2: 1.0, 3: 0.2}
    (found,) = differences({"a": up, "b": same})
    assert found.found.mean == pytest.approx(0.1)
    assert found.separated
    (unclear,) = differences({"a": {1: 0.5, 2: 0.9, 3: 0.1}, "b": {3: 0.2, 2: 0.7, 1: 0.6}})
    assert not unclear.separated
    assert not Difference("a", "b", Mean.of([1.0])).separated


def test_the_window_is_what_comes_close_to_the_best() -> None:
    pilots = [Pilot(Fraction(rate), score) for rate, score in ((1, 0.5), (2, 0.985), (3, 0.99))]
    assert window(pilots, 1, 0.01) == pilots[1:]
    assert window(pilots, -1, 0.01) == pilots[:1]
    assert window([Pilot(Fraction(1), None)], 1, 0.01) == [Pilot(Fraction(1), None)]


def scores(
    *,
    proved: ProvedCeiling | None = None,
    witness: float | None = None,
    trained: float = 0.5,
    solved: int = 0,
) -> Scores:
    return Scores(1, 0.01, 0.98, proved, witness, trained, Share(solved, 6))


@pytest.mark.parametrize(
    ("found", "word", "says"),
    [
        (scores(solved=6), Word.LEARNS, "6 of 6 seeds"),
        (scores(solved=2), Word.LEARNS, "on some seeds: 2 of 6"),
        (scores(witness=0.979), Word.NOT_LEARNED, "0.9790 are written down, training reached 0.5000"),
        (scores(witness=0.7), Word.UNKNOWN, "the best weights known reach 0.7000; that proves nothing"),
        (scores(), Word.UNKNOWN, "no weights are written down for this setting; that proves nothing"),
        (scores(proved=PROVED, trained=0.61), Word.CANNOT, "what it can it learned: 0.6100"),
        (
            scores(proved=PROVED, witness=0.62),
            Word.CANNOT,
            "it did not learn that here: training reached 0.5000",
        ),
        (scores(proved=PROVED), Word.CANNOT, "whether it can do better is unknown"),
        (scores(proved=ProvedCeiling(0.98, "all", ""), solved=6), Word.LEARNS, "6 of 6"),
    ],
)
def test_the_sentence_follows_from_the_numbers(found: Scores, word: Word, says: str) -> None:
    judged_word, sentence = judged(found)
    assert judged_word is word
    assert says in sentence


@pytest.mark.parametrize(
    ("sign", "trained", "floor", "says"),
    [
        (1, 0.95, 0.93, "no ceiling is known; training reached 0.9500, where a shortcut has 0.9300"),
        (1, 0.93, 0.93, "no better than a shortcut, which has 0.9300: that says nothing about the mechanism"),
        (1, 0.5, 0.93, "training reached 0.5000, no better than a shortcut"),
        (-1, 2.5, 3.1, "no ceiling is known; training reached 2.5000, where a shortcut has 3.1000"),
        (-1, 3.7, 3.1, "training reached 3.7000, no better than a shortcut"),
        (1, None, 0.9, "every run failed"),
    ],
)
def test_real_data_are_judged_beside_the_floor(
    sign: int, trained: float | None, floor: float, says: str
) -> None:
    ceiling = 1.0 if sign > 0 else 0.0
    word, sentence = judged(Scores(sign, 0.01, ceiling, None, None, trained, Share(0, 6), floor))
    assert word is Word.UNKNOWN
    assert says in sentence


def test_lower_is_better_where_scores_are_errors() -> None:
    found = Scores(-1, 0.01, 0.0, ProvedCeiling(0.23, "one layer", ""), 0.231, 0.42, Share(0, 6))
    word, sentence = judged(found)
    assert word is Word.CANNOT
    assert "at best 0.2300" in sentence
    assert "did not learn that here: training reached 0.4200" in sentence
