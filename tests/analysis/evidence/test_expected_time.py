"""The expected time of training, before it is started."""

from __future__ import annotations

import time

import pytest

from separatrix.analysis.evidence.expected_time import expect_time
from separatrix.analysis.evidence.protocol import read_experiment
from separatrix.training.learning import RunConfig, train

SIZES = {"n": 64, "steps": 60, "every": 30, "validation": 64, "tests": 200, "rates": "0.003,0.01"}


def test_every_run_is_counted_and_timed() -> None:
    asked = read_experiment("spike", "softmax,elu", SIZES, seeds=4)
    found = expect_time(asked)
    assert found.runs == 2 + 4 + 2
    assert list(found.seconds) == ["softmax", "elu"]
    assert found.with_processes(1) == 8 * sum(found.seconds.values())
    assert found.with_processes(4) == found.with_processes(1) / 4
    one_rate = read_experiment("spike", "softmax", {**SIZES, "rates": "0.01"}, seeds=4)
    assert expect_time(one_rate).runs == 4 + 2
    no_witness = read_experiment("parity", "softmax", {"trained": 12, "tested": 20, "rates": "0.01"}, seeds=4)
    assert expect_time(no_witness).runs == 4


def test_the_expected_time_is_about_what_a_run_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "perf_counter", time.process_time)  # other processes may run meanwhile
    asked = read_experiment("spike", "elu", SIZES)
    expected = expect_time(asked).seconds["elu"]
    start = time.perf_counter()
    train(RunConfig(asked.task, "elu", asked.setting, rate=1e-6, seed=0, test=True))
    took = time.perf_counter() - start
    assert took / 8 < expected < 8 * took


def test_longer_inputs_and_more_steps_are_expected_to_take_longer() -> None:
    short, long = (
        expect_time(read_experiment("spike", "elu", {**SIZES, "n": n, "steps": steps})).seconds["elu"]
        for n, steps in ((16, 60), (1024, 600))
    )
    assert long > 20 * short


def test_a_mechanism_that_cannot_run_is_left_out() -> None:
    asked = read_experiment("spike", "training_plan:broken,elu", SIZES)
    assert list(expect_time(asked).seconds) == ["elu"]
