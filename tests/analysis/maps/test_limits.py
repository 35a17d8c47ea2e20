"""Limits of what is asked of maps and boundaries, what is certified, and how long literal cells will take."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

import separatrix as sx
from separatrix.analysis.maps.boundary import search_span
from separatrix.analysis.maps.boundary_search import BoundarySettings
from separatrix.analysis.maps.plane import Step
from separatrix.core.parameters import UsageError
from separatrix.exact.engines import EngineRefusal, Sampling
from separatrix.exact.verdicts.question import question

FIXED = {"d": 12, "m": 4, "a0": "0.01", "b": "0.2", "c": "0.1"}


@pytest.mark.parametrize("at", ["0", "1", "-1", "2"])
def test_a_level_lies_strictly_between_0_and_1(at: str) -> None:
    with pytest.raises(UsageError, match=f"at={at} is out of range; a level of P lies between 0 and 1"):
        sx.boundary("spike", "softmax", **FIXED, a1="0.5:1.5", n=1000, probability=at)


@pytest.mark.parametrize("scan", [1, 100_001])
def test_a_scan_has_2_to_100_000_points(scan: int) -> None:
    with pytest.raises(UsageError, match=f"scan={scan} is out of range; it must be 2 to 100,000 points"):
        sx.boundary("spike", "softmax", **FIXED, a1="0.5:1.5", n=1000, scan=scan)
    assert sx.boundary("spike", "softmax", **FIXED, a1="0.5:1.5", n=1000, scan=2).crossings


@pytest.mark.parametrize("tolerance", ["1", "0", "9e-61"])
def test_a_tolerance_is_1e_60_or_more_and_below_1(tolerance: str) -> None:
    with pytest.raises(UsageError, match="is out of range; it must be 1e-60 or more, and below 1"):
        sx.boundary("spike", "softmax", **FIXED, a1="0.5:1.5", n=1000, tolerance=tolerance)


@pytest.mark.parametrize(
    ("text", "is_log"),
    [("0.5:1.5", False), ("0.5:1.5:log", True), ("0.1:9.9", False), ("0.001:99", True), ("0:99", False)],
)
def test_a_wide_range_is_searched_on_a_logarithmic_scale(text: str, is_log: bool) -> None:
    asked = question("spike", "softmax", {**FIXED, "n": 1000}, ["a1"])
    assert search_span(asked, "a1", text).log is is_log


@pytest.mark.parametrize(
    ("engine", "dtype", "can_prove"),
    [
        ("auto", "float64", True),
        ("certified", "float64", True),
        ("closed", "float64", False),
        ("auto", "bfloat16", False),
        ("dense", "bfloat16", False),
    ],
)
def test_only_fractions_prove_and_never_in_a_format(engine: str, dtype: str, can_prove: bool) -> None:
    assert BoundarySettings(Fraction(1, 2), engine, Sampling(dtype=dtype)).can_prove is can_prove


def test_the_closed_engine_alone_certifies_no_crossing() -> None:
    asked = {**FIXED, "a1": "0.5:1.5", "n": 1000}
    floats, proved = (sx.boundary("spike", "softmax", **asked, engine=engine) for engine in ("closed", "auto"))
    assert [crossing.is_certified for crossing in floats.crossings] == [False]
    assert [crossing.is_certified for crossing in proved.crossings] == [True]


def test_crossings_in_n_are_multiples_of_the_step() -> None:
    found = sx.boundary("spike", "linear", **FIXED, a1="1.2", n="10:100000")
    (crossing,) = found.crossings
    low, high = crossing.lo.value, crossing.hi.value
    assert high - low == 10
    assert low % 10 == 0


def test_the_first_refusal_of_all_cells_is_reported() -> None:
    """Too many tokens at either n, and more of them at the second; the free memory may change meanwhile."""
    with pytest.raises(EngineRefusal) as alone:
        sx.verdict("spike", "softmax", **FIXED, a1=1, n=10**13, engine="dense")
    with pytest.raises(EngineRefusal) as refused:
        sx.map("spike", "softmax", **FIXED, a1="1:1.5:2", n="1e13:1e14:2:log", engine="dense")
    assert str(refused.value).partition(", and ")[0] == str(alone.value).partition(", and ")[0]


def test_the_time_of_all_cells_follows_from_the_first_three(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the three takes two seconds of a clock that is read before and after them."""
    times = iter((100.0, 106.0))
    monkeypatch.setattr("separatrix.analysis.maps.plane.time.perf_counter", lambda: next(times))
    told: list[Step] = []
    sx.map(
        *("spike", "softmax"),
        **{**FIXED, "a1": "0.5:1.5:4", "n": "20:100:5", "engine": "grouped"},
        sampling=Sampling(draws=2),
        tell=told.append,
    )
    assert told
    assert {step.seconds for step in told} == {2.0 * 20}


def test_values_whose_side_is_unknown_are_counted_in_the_guarantee() -> None:
    found = sx.boundary("spike", "softmax", **FIXED, a1="0.5:1.5", n=1000, engine="closed")
    open_found = replace(found, completeness="", undecided=0)
    assert open_found.guarantee.endswith("(a finer scan looks closer).")
    assert replace(open_found, undecided=2).guarantee.endswith(" The side of 2 of them is not known.")
    assert replace(found, completeness="P rises").guarantee == "The only crossing in this range (proved): P rises."
