"""Scores exactly at a floor or at a tolerance, and results that repeat a question."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from inspect import signature
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from separatrix.analysis.evidence.conclusions import BesideFloor, compare_with_floor
from separatrix.analysis.evidence.estimates import SeedSummary, seeds_to_resolve, sign_flip_p
from separatrix.analysis.evidence.predictions import PredictedScore, Prediction
from separatrix.analysis.evidence.protocol import (
    Experiment,
    learn,
    measure_late_improvement,
    rates_near_best,
    read_experiment,
)
from separatrix.analysis.evidence.training_result import TrainingResult
from separatrix.core.errors import UsageError
from separatrix.mechanisms import mechanism_named
from separatrix.training.tasks import Metric, task_named


@pytest.mark.parametrize("sign", [1, -1])
def test_a_rate_at_the_tolerance_is_as_good_as_the_best(sign: int) -> None:
    pilots = {Fraction(1): sign * 0.5, Fraction(2): sign * 0.75, Fraction(3): sign * 0.4375}
    assert rates_near_best(pilots, sign, 0.25) == [1, 2]
    assert rates_near_best(pilots, sign, 0.3125) == [1, 2, 3]
    assert rates_near_best(pilots, sign, 0.0) == [2]
    assert rates_near_best({Fraction(1): -sign * math.inf}, sign, 0.1) == []


@pytest.mark.parametrize("sign", [1, -1])
def test_scores_that_touch_the_floor_are_at_it(sign: int) -> None:
    def compare(*scores: float) -> BesideFloor:
        return compare_with_floor(SeedSummary([sign * score for score in scores]), sign * 0.5, sign)

    assert compare(*[0.5] * 6) is BesideFloor.BELOW
    assert compare(*[0.25] * 5, 0.5) is BesideFloor.BELOW
    assert compare(0.5, *[0.75] * 5) is BesideFloor.AT
    assert compare(0.5 + 2**-20, *[0.75] * 5) is BesideFloor.ABOVE
    assert compare(*[0.25] * 5, 0.75) is BesideFloor.AT
    assert compare(0.5, 0.25) is BesideFloor.BELOW
    assert compare_with_floor(None, 0.5, sign) is BesideFloor.FAILED


def result_of(*evidence: Any, metric: Metric = Metric.ACCURACY, floor: float = 0.5) -> TrainingResult:
    """A result with these mechanisms; only what is read here."""
    result = object.__new__(TrainingResult)
    values = {"task": SimpleNamespace(metric=metric), "mechanisms": evidence, "floor": floor}
    for name, value in values.items():
        object.__setattr__(result, name, value)
    return result


def evidence_of(name: str, *scores: float, proved: float | None = None, failed: int = 0, state_bytes: int = 0) -> Any:
    return SimpleNamespace(
        mechanism=name,
        proved=None if proved is None else SimpleNamespace(score=proved),
        runs=[SimpleNamespace(score=score) for score in scores],
        failed=["it failed"] * failed,
        state_bytes=state_bytes,
    )


def test_only_a_proof_strictly_below_the_floor_is_inability() -> None:
    found = result_of(
        evidence_of("at", *[0.75] * 6, proved=0.5),
        evidence_of("below", *[0.75] * 6, proved=0.5 - 2**-20),
        evidence_of("above", *[0.75] * 6, proved=0.75),
    ).beside_floor
    assert found == {"at": BesideFloor.ABOVE, "below": BesideFloor.UNABLE, "above": BesideFloor.ABOVE}


@pytest.mark.parametrize(("metric", "sign"), [(Metric.ACCURACY, 1), (Metric.RELATIVE_ERROR, -1)])
def test_a_failed_run_is_worse_than_any_score(metric: Metric, sign: int) -> None:
    good = [0.5 + sign * 0.25] * 6
    found = result_of(
        evidence_of("sound", *good),
        evidence_of("failing", *good, failed=1),
        evidence_of("none", failed=6),
        metric=metric,
    ).beside_floor
    assert found["sound"] is BesideFloor.ABOVE
    assert found["failing"] is BesideFloor.AT
    assert found["none"] is BesideFloor.FAILED


@pytest.mark.parametrize(
    ("sizes", "differ"), [((100, 200), True), ((100, 199), False), ((100,), False), ((100, 0), False), ((), False)]
)
def test_states_differ_if_one_is_twice_as_large(sizes: tuple[int, ...], differ: bool) -> None:
    assert result_of(*(evidence_of(str(size), state_bytes=size) for size in sizes)).states_differ is differ


def test_improvement_is_that_of_the_last_quarter_over_the_third() -> None:
    curve = tuple((step, step / 100) for step in range(0, 101, 5))
    third, fourth = sum(range(55, 80, 5)) / 500, sum(range(80, 105, 5)) / 500
    assert measure_late_improvement(curve, 1) == pytest.approx(fourth - third)
    assert measure_late_improvement(curve, -1) == pytest.approx(third - fourth)
    assert measure_late_improvement((), 1) == -math.inf
    assert measure_late_improvement(((100, 0.5),), 1) == -math.inf


def test_p_values_of_all_sign_flips() -> None:
    for gaps in ([1, 2, 4], [1, 2, -4], [0.1, -0.1, 0.3, 0.3], [1, 1, -1, 1, -1]):
        sums = [
            abs(sum(sign * gap for sign, gap in zip(signs, gaps, strict=True)))
            for signs in product((1, -1), repeat=len(gaps))
        ]
        assert sign_flip_p(gaps) == sum(value >= abs(sum(gaps)) - 1e-9 for value in sums) / len(sums)
    assert seeds_to_resolve(1) == 6


@pytest.mark.parametrize(("seeds", "is_possible"), [(1, False), (2, True), (1000, True), (1001, False)])
def test_an_experiment_has_2_to_1000_seeds(seeds: int, is_possible: bool) -> None:
    if is_possible:
        assert len(read_experiment("needle", "softmax", {}, seeds).seeds) == seeds
        return
    with pytest.raises(UsageError, match=f"seeds={seeds} must be from 2 to 1000"):
        read_experiment("needle", "softmax", {}, seeds)


def test_a_rank_correlation_takes_four_pairs() -> None:
    pairs = tuple(PredictedScore("task", str(place), place, -place) for place in range(4))
    assert Prediction("", "", pairs, ()).correlation == pytest.approx(-1)
    assert Prediction("", "", pairs[:3], ()).correlation is None
    assert Prediction("", "", tuple(replace(pair, trained=1.0) for pair in pairs), ()).correlation is None


def test_experiments_have_the_same_numbers_of_runs_wherever_they_are_asked_for() -> None:
    task = task_named("needle").read({"n": 16})
    asked = Experiment(task, (mechanism_named("softmax"),), task.default_setting(), seeds=range(1, 3), pilots=2)
    assert [run.seed for run in asked.pilot_runs(asked.mechanisms[0], Fraction(1))] == [10_000, 10_001]
    plain = Experiment(task, asked.mechanisms, asked.setting)
    assert (list(plain.seeds), plain.pilots, plain.tuned) == ([1, 2, 3, 4, 5, 6], 1, 2)
    parameters = signature(learn).parameters
    assert [parameters[name].default for name in ("seeds", "pilots", "tuned")] == [6, 1, 2]
