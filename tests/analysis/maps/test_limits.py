"""Limits of what is asked of maps and boundaries, what is certified, and how long literal cells will take."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from itertools import pairwise, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import separatrix as sx
from separatrix.analysis.maps.boundary import search_span
from separatrix.analysis.maps.boundary_result import Crossing, LevelReading, Plateau
from separatrix.analysis.maps.boundary_search import (
    BoundarySettings,
    LevelReader,
    _prove_completeness,
    _splitter,
    _usual_effort,
    sections,
    whole_sections,
)
from separatrix.analysis.maps.formulas import CROSS, DEGREE, IDENTITY, ONES, ONES_D0, BoundaryFormula
from separatrix.analysis.maps.plane import Step
from separatrix.core.parameters import UsageError
from separatrix.core.parameters.ranges import Span
from separatrix.exact.engines import EngineRefusal, Sampling
from separatrix.exact.verdicts.question import question

boundary_module = import_module("separatrix.analysis.maps.boundary")
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


def test_limits_of_settings_are_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    for tolerance in ("1e-60", "0.999"):
        settings = boundary_module._read_settings("0.5", "auto", 100_000, tolerance, None)
        assert (settings.scan, settings.tolerance, settings.level) == (100_000, Fraction(tolerance), Fraction(1, 2))
    monkeypatch.setattr(boundary_module, "MAX_CURVE_VALUES", 3)
    asked = {**FIXED, "a1": "0.5:1.5"}
    assert len(sx.boundary("spike", "softmax", asked, over="n=1e3:1e6:3:log", scan=5).curve) == 3
    with pytest.raises(UsageError, match="has 4 values, more than 3; 50 draw a curve"):
        sx.boundary("spike", "softmax", asked, over="n=1e3:1e6:4:log", scan=5)


def test_whole_sections_are_multiples_strictly_between() -> None:
    for low, high, step, count in product(range(12), range(12), (1, 2, 3), (1, 2, 3, 15)):
        inside = [value for value in range(low + 1, high) if value % step == 0]
        found = whole_sections(low, high, step, count)
        assert set(found) <= set(inside)
        assert len(found) == len(set(found)) == min(count, len(inside))
        assert found == sorted(found)
        if found and len(inside) > count:  # about evenly spaced
            gaps = [b - a for a, b in pairwise([inside[0] - step, *found, inside[-1] + step])]
            assert max(gaps) - min(gaps) <= 2 * step


def test_sections_are_about_evenly_spaced() -> None:
    for low, high, count in product((Fraction(0), Fraction(1, 3)), (Fraction(7, 10), Fraction(50)), (1, 4, 15)):
        width = (high - low) / (count + 1)
        found = sections(low, high, count)
        assert len(found) == count
        assert all(abs(value - low - width * i) <= width / 8 for i, value in enumerate(found, 1))


def test_a_search_ends_where_the_ends_are_within_the_tolerance() -> None:
    asked, tolerance = question("spike", "softmax", {**FIXED, "n": 1000}, ["a1"]), Fraction(1, 100)
    split = _splitter(asked, search_span(asked, "a1", "0.5:1.5"), tolerance, 1)
    one = Fraction(1)
    assert split(1 - tolerance, one) == []
    assert len(split(1 - tolerance - Fraction(1, 10**9), one)) == 1
    assert split(-one, tolerance - 1) == []
    in_n = question("spike", "softmax", FIXED, ["n"])
    assert _splitter(in_n, search_span(in_n, "n", "1000:2000"), tolerance, 1)(1000, 1020) == [1010]
    in_m = question("spike", "softmax", {**FIXED, "n": 1000, "m": 4}, ["d"])
    assert _splitter(in_m, search_span(in_m, "d", "4:40"), tolerance, 3)(4, 7) == [5, 6]


def reading(value: int | Fraction, side: int | None = 1, n: int | None = None, p: float = 0.5) -> LevelReading:
    return LevelReading(value, p, side, True, n)


def test_a_crossing_is_wide_beyond_a_two_hundredth_of_its_size() -> None:
    def crossing(low: Fraction | int, high: Fraction | int) -> Crossing:
        return Crossing(reading(low, -1), reading(high))

    assert not crossing(199, 200).is_wide
    assert crossing(199 - Fraction(1, 10**6), 200).is_wide
    assert not crossing(-200, -199).is_wide
    assert crossing(199, 200).middle == 199.5
    plateau = Plateau(reading(199, 0), reading(200, 0), None, None)
    assert replace(crossing(199, 200), plateau=plateau).is_wide


@pytest.mark.parametrize(
    ("before", "after", "passes", "words"),
    [
        (-1, 1, True, ", below it before and above it after"),
        (1, -1, True, ", above it before and below it after"),
        (1, 1, False, ", and is above it on both sides"),
        (None, 1, False, ", and is above it after"),
        (-1, None, False, ", and is below it before"),
        (None, None, False, ", on the whole range"),
    ],
)
def test_plateaus_in_words(before: int | None, after: int | None, passes: bool, words: str) -> None:
    sides = [None if side is None else reading(9, side) for side in (before, after)]
    plateau = Plateau(reading(3, 0), reading(5, 0), *sides)
    assert plateau.describe("m", "0.5") == f"P equals 0.5 exactly from m = 3 to m = 5{words}"
    assert (
        Plateau(reading(3, 0), reading(3, 0), *sides).describe("m", "0.5").startswith("P equals 0.5 exactly at m = 3")
    )
    assert plateau.passes is passes
    assert not replace(plateau, last=replace(plateau.last, is_certified=False)).is_certified


def test_rounded_lengths_are_listed_up_to_six() -> None:
    curve = sx.boundary("spike", "softmax", {**FIXED, "a1": "0.5:1.5"}, over="n=1000:2000:2", scan=5)
    assert curve.length_remark == ""
    for count, ending in ((6, "."), (7, " and 1 more.")):
        points = tuple(replace(curve.curve[0], asked=1001 + i, value=1000) for i in range(count))
        remark = replace(curve, curve=points).length_remark
        assert remark.count(" to 1000") == 6
        assert remark.endswith(f"1006 to 1000{ending}")


@pytest.mark.parametrize(("formula", "values", "name", "text"), [
    (ONES, {"b": 0.2, "c": 0.1}, "a1", "0.5:1.5"),
    (ONES_D0, {"b": 0.2, "c": 0.1}, "a0", "0.1:3"),
    (IDENTITY, {"b": 0.6}, "a1", "0.01:1.5"),
    (CROSS, {"r_Q": 1.6}, "a1", "0.5:1.5"),
    (DEGREE, {"a1": 1.2, "b": 0.2, "c": 0.1, "n": 1e6}, "beta", "1:30"),
])  # fmt: skip
def test_formulas_are_solved_where_they_hold(
    formula: BoundaryFormula, values: dict[str, float], name: str, text: str
) -> None:
    roots = {
        "a1(a1+b+c) = 1": (-0.3 + math.sqrt(0.09 + 4)) / 2,
        "a0(a0+b+c) = 1": (-0.3 + math.sqrt(0.09 + 4)) / 2,
        "a1² + b² = 1": 0.8,
        "a1·r_Q = 1": 0.625,
        "beta = log n / log((a1+b+c)/(b+c))": 6 * math.log(10) / math.log(5),
    }
    low, high = map(Fraction, text.split(":"))
    for log in (False, True):
        span = Span(name, low, high, whole=False, log=log, text=text)
        assert formula.solve(values, span).values == pytest.approx([roots[formula.formula]], rel=1e-14)
        assert formula.solve(values, replace(span, stop=low + (high - low) / 100)).values == ()


def test_every_root_of_a_formula_is_found_in_both_directions() -> None:
    waves = BoundaryFormula("sin", "", lambda p: np.sin(p["a1"]), {"a1"})
    span = Span("a1", Fraction(1), Fraction(11), whole=False, log=False, text="1:11")
    assert waves.solve({}, span).values == pytest.approx([math.pi, 2 * math.pi, 3 * math.pi], rel=1e-15)


@pytest.mark.parametrize(
    ("sides", "crossings", "is_complete"),
    [
        ((-1, -1), 2, True),  # up and down again: both were found
        ((-1, -1), 0, False),  # up and down between two values is possible
        ((-1, 1), 1, True),
        ((1, -1), 1, True),
        ((1, 1), 0, True),
        ((0, 1), 1, False),
        ((None, 1), 1, False),
    ],
)
def test_a_search_in_m_is_complete_if_descartes_rule_says_so(
    sides: tuple[int | None, int | None], crossings: int, is_complete: bool
) -> None:
    asked = question(
        "spike", "softmax", {**{k: v for k, v in FIXED.items() if k != "m"}, "n": 1000, "a1": "0.7"}, ["m"]
    )
    reader = LevelReader(asked, "m", BoundarySettings())
    found = [Crossing(reading(1, -1), reading(2))] * crossings
    readings = [reading(1, sides[0]), reading(30, sides[1])]
    assert bool(_prove_completeness(reader, readings, found)) is is_complete
    other = LevelReader(asked, "a1", BoundarySettings())
    assert _prove_completeness(other, readings, found) == ""


def test_completeness_needs_one_neuron_for_every_m(monkeypatch: pytest.MonkeyPatch) -> None:
    reader: Any = SimpleNamespace(name="m", evaluate_closed=lambda points: grids, points=lambda values: values)
    readings, constant, changing = [reading(1, 1), reading(30, 1)], np.full(3, 0.5), np.array([0.25, 0.5, 0.25])
    for p0, only, is_complete in ((constant, constant, True), (changing, constant, False), (constant, changing, False)):
        grids = [SimpleNamespace(p0=p0, only=only)]
        assert bool(_prove_completeness(reader, readings, [])) is is_complete
    grids = None  # type: ignore[assignment]
    assert _prove_completeness(reader, readings, []) == ""


@pytest.mark.parametrize(
    ("construction", "parameter", "has_closed_form", "is_exact", "effort"),
    [
        ("spike", "a1", True, True, (401, Fraction(1, 10**12), 15)),
        ("spike", "a1", False, True, (101, Fraction(1, 10**12), 1)),
        ("spike", "a1", False, False, (25, Fraction(1, 1000), 1)),
        ("spike", "beta", True, True, (101, Fraction(1, 10**12), 1)),
        ("dispersion", "n", True, True, (101, Fraction(1, 10**12), 1)),
    ],
)
def test_the_effort_follows_from_how_p_is_known(
    construction: str, parameter: str, has_closed_form: bool, is_exact: bool, effort: tuple[object, ...]
) -> None:
    reader = LevelReader(question(construction, "power:beta=2", {}, [parameter]), parameter, BoundarySettings())
    outcome: Any = SimpleNamespace(interval=(0.5, 0.5 if is_exact else 0.75))
    assert _usual_effort(reader, has_closed_form, outcome) == effort


def test_maps_of_cells_say_that_nothing_was_drawn() -> None:
    asked = {"n": "8:12:2", "gap": "1:2:2", "m": 2}
    layer = sx.map("dispersion", "softmax", **asked, sampling=Sampling(seed=3)).layers[0]
    assert layer.evidence.endswith("; nothing was drawn: seed=3 made no difference")
    assert "nothing" not in sx.map("dispersion", "softmax", **asked).layers[0].evidence
