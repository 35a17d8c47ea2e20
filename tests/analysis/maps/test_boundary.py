"""Boundaries: every crossing, ends that are proved, certificates that can fail, curves."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import separatrix as sx
from cases import BASE
from expectations import assert_refused, run
from separatrix.analysis.maps import Boundary, boundary
from separatrix.analysis.maps.boundary import certify_boundary
from separatrix.analysis.maps.boundary_search import LevelReading, SideChange, find_changes, whole_sections
from separatrix.analysis.maps.range_partition import sections
from separatrix.checker import check_boundary, check_file
from separatrix.constructions.spike import Spike
from separatrix.core.parameters import Grid, UsageError
from separatrix.core.parameters.ranges import Number
from separatrix.exact.engines import EngineRefusal, Sampling, certified, closed
from separatrix.exact.engines.outcome import side_of_fractions
from separatrix.exact.verdicts.certificate import digest
from separatrix.mechanisms import Softmax
from separatrix.pages.maps.curve import as_csv, made_by
from separatrix.pages.plots import suffixes

FIXED = {name: value for name, value in BASE.items() if name not in ("a1", "n")}
WORDS = [f"{name}={value}" for name, value in FIXED.items()]


def in_a1(**more: Any) -> Boundary:
    return sx.boundary("spike", "softmax", **{**FIXED, "n": 10**6, "a1": "0.5:1.5", **more})


def side_at(found: Boundary, value: Number) -> int:
    """The sign of P - at, by exact fractions, computed here again."""
    chosen = {found.span.name: value}
    point = found.question.point(chosen)
    count = certified.count(point, found.question.mechanism(chosen))
    assert count.is_decided
    sign = side_of_fractions(count.low.p0, count.low.only, point.m, found.at)
    assert sign is not None
    return sign


def test_the_ends_are_close_and_on_different_sides() -> None:
    found = in_a1()
    (crossing,) = found.crossings
    assert crossing.is_certified
    assert crossing.rises
    assert side_at(found, crossing.lo.value) < 0 <= side_at(found, crossing.hi.value)
    assert 0 < crossing.hi.value - crossing.lo.value <= Fraction(1, 10**12)
    assert found.engine == "certified"
    assert (found.ends[0].p, found.ends[1].p) == pytest.approx((1.43485e-07, 0.999755), rel=1e-5)


def test_the_limit_is_that_of_the_claim() -> None:
    found = in_a1()
    assert found.analytic is not None
    assert found.analytic.formula.formula == "a1(a1+b+c) = 1"
    assert found.analytic_values == pytest.approx(((math.sqrt(0.3**2 + 4) - 0.3) / 2,), rel=1e-12)
    assert found.crossings[0].middle < found.analytic_values[0]


@pytest.mark.parametrize(
    ("construction", "mechanism", "open_", "expected"),
    [
        ("spike", "softmax", {"form": "identity", "a1": "0.5:1.5", "n": 10**6}, math.sqrt(0.96)),
        ("cross", "softmax", {"r_Q": "0.8", "a1": "0.5:2", "n": 10**6}, 1.25),
        ("spike", "power", {"a1": "1.2", "beta": "1:30", "n": 10**6}, math.log(10**6) / math.log(5)),
        ("spike", "power:beta=8", {"a1": "1.2", "n": "1e3:1e9"}, 5**8),
    ],
)
def test_known_formulas(construction: str, mechanism: str, open_: dict[str, Any], expected: float) -> None:
    found = boundary(construction, mechanism, {**FIXED, **open_})
    assert found.analytic_values == pytest.approx((expected,), rel=1e-9)
    assert found.crossings


def test_a_formula_says_nothing_of_a_parameter_it_does_not_hold() -> None:
    found = sx.boundary("spike", "softmax", **FIXED, a1="0.8", n="1e3:1e12")
    assert found.analytic_values == ()
    assert sx.boundary("spike", "softmax:temperature=2", **FIXED, a1="0.5:3", n=10**6).analytic is None


def test_whole_ends_are_neighbours_among_the_admissible() -> None:
    found = sx.boundary("spike", "softmax", **FIXED, a1="0.8", n="1050:1e12")
    (crossing,) = found.crossings
    assert (crossing.lo.value, crossing.hi.value) == (125823100, 125823200)
    assert not crossing.rises
    assert side_at(found, 125823100) >= 0 > side_at(found, 125823200)
    assert found.span.log
    assert found.length_remark.startswith("n runs from 1100 to 1000000000000")


def test_n_is_moved_with_d_and_that_is_said() -> None:
    found = sx.boundary("spike", "softmax", n=1001, d="4:60", m=12, a0="0.01", a1="0.7", b="0.2", c="0.1")
    assert found.crossings
    assert found.length_remark.startswith("n=1001 is rounded to a multiple of d−2")
    for crossing in found.crossings:
        low, high = int(crossing.lo.value), int(crossing.hi.value)
        assert high == low + 1
        assert side_at(found, low) * side_at(found, high) < 0
    every = [side_at(found, d) >= 0 for d in range(4, 61)]
    changes = [d for d in range(4, 60) if every[d - 4] != every[d - 3]]
    assert [crossing.lo.value for crossing in found.crossings] == changes


def test_m_can_rise_and_fall_and_no_crossing_is_missed() -> None:
    fixed = {"n": 1000, "d": 102, "a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1", "tau": "0.15"}
    found = sx.boundary("spike", "softmax", m="1:1e4", **fixed)
    along = closed.evaluate(Spike, Softmax(), Grid(fixed, ({"m": list(range(1, 400))},)))
    every = (along.distinguish >= 0.5).tolist()
    changes = [m for m in range(1, 399) if every[m - 1] != every[m]]
    assert [crossing.lo.value for crossing in found.crossings if crossing.hi.value < 400] == changes
    assert [crossing.rises for crossing in found.crossings] == [True, False]
    assert found.guarantee.startswith("These are the only crossings in this range (proved): s^m - q^m")


def test_no_crossing_is_said_with_both_ends() -> None:
    found = sx.boundary("spike", "linear", **FIXED, a1="0.5:1.5", n=1000)
    assert found.crossings == ()
    assert found.ends[0].p < found.ends[1].p < 1e-5
    assert found.guarantee.startswith("No crossing in this range (proved)")
    searched = sx.boundary("spike", "linear", **FIXED, a1="0.5:1.5", n=1000, engine="closed")
    assert "two crossings between neighbouring values would be missed" in searched.guarantee


def test_a_peak_in_m_that_is_not_reached_leaves_the_question_open() -> None:
    found = sx.boundary("spike", "linear", a1="1.2", n=1000, **{**FIXED, "m": "1:1e4"})
    assert found.crossings == ()
    assert not found.completeness


def test_levels_move_the_crossing() -> None:
    places = [in_a1(probability=at).crossings[0].middle for at in ("0.1", "0.5", "0.9")]
    assert places == sorted(places)
    assert len(set(places)) == 3


def test_the_exact_engine_alone_proves_nothing() -> None:
    found = in_a1(engine="closed")
    assert not found.crossings[0].is_certified
    assert found.engine == "closed"
    assert found.crossings[0].middle == pytest.approx(in_a1().crossings[0].middle, rel=2e-12)


def test_sampled_ends_lie_around_the_certified_crossing() -> None:
    sampling = Sampling(draws=400, confidence=0.9999)
    found = in_a1(n=1000, engine="grouped", sampling=sampling, scan=9, a1="0.6:0.8")
    truth = in_a1(n=1000).crossings[0].middle
    (crossing,) = found.crossings
    assert crossing.lo.value < truth < crossing.hi.value
    assert not crossing.is_certified
    assert found.evidence.endswith("at each value by itself")


def test_constructions_without_a_closed_form_are_searched_too() -> None:
    found = sx.boundary("dispersion", "softmax", n="3:1e6", m=12)
    (crossing,) = found.crossings
    assert crossing.is_certified
    assert crossing.hi.value == int(crossing.lo.value) + 1
    for end, wanted in ((crossing.lo, True), (crossing.hi, False)):
        p = sx.verdict("dispersion", "softmax", n=end.value, m=12).outcome.distinguish
        assert (p >= 0.5) is wanted


def changes_of(side: Callable[[int], int | None], places: Sequence[int]) -> list[SideChange]:
    """The changes of side that a search finds which starts from these places."""

    def read(values: Sequence[Number]) -> list[LevelReading]:
        return [LevelReading(value, 0.0, side(int(value))) for value in values]

    return list(find_changes(read(places), read, lambda low, high: whole_sections(int(low), int(high), 1, 3)))


@given(st.sets(st.integers(1, 199), max_size=12), st.integers(2, 201))
def test_search_finds_what_the_scan_shows(jumps: set[int], scanned: int) -> None:
    """A step function that changes side at every jump, scanned at some of 0..200."""

    def above(value: int) -> bool:
        return sum(jump <= value for jump in jumps) % 2 == 1

    places = sorted({round(200 * i / (scanned - 1)) for i in range(scanned)})
    found = changes_of(lambda value: 1 if above(value) else -1, places)
    for lo, hi in found:
        assert hi.value - lo.value == 1
        assert hi.value in jumps
    seen = sum(above(a) != above(b) for a, b in pairwise(places))
    assert len(found) >= seen
    assert len(found) % 2 == seen % 2
    if len(places) == 201:
        assert [int(hi.value) for _, hi in found] == sorted(jumps)


@given(st.integers(1, 150), st.integers(0, 40))
def test_search_closes_in_on_what_cannot_be_decided(start: int, width: int) -> None:
    def side(value: int) -> int | None:
        return None if start <= value < start + width else 1 if value >= start else -1

    ((lo, hi),) = changes_of(side, [0, 200])
    assert (lo.value, hi.value) == (start - 1, start + width)


@given(st.fractions(0, 1, max_denominator=10**9), st.fractions(0, 1, max_denominator=10**9))
def test_sections_are_inside_and_short(one: Fraction, other: Fraction) -> None:
    low, high = sorted((one, other))
    if low < high:
        places = sections(low, high, 5)
        assert places
        assert all(low < place < high for place in places)
        assert all(10**30 % Fraction(place).denominator == 0 for place in places)


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return certify_boundary(in_a1(n=1000))


def test_a_certificate_of_a_boundary_holds(document: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "boundary.json"
    path.write_text(json.dumps(document))
    report = check_file(path)
    assert report.holds
    assert report.verified > 80


def signed(document: dict[str, Any]) -> dict[str, Any]:
    """With the hash made right again."""
    body = {name: value for name, value in document.items() if name != "sha256"}
    return {**body, "sha256": digest(body)}


def _swap(forged: dict[str, Any]) -> None:
    crossing = forged["crossings"][0]
    crossing["lo"], crossing["hi"] = crossing["hi"], crossing["lo"]


def _level(forged: dict[str, Any]) -> None:
    forged["at"] = "0.6"


def _turn(forged: dict[str, Any]) -> None:
    forged["crossings"][0]["direction"] = "down"


def _other(forged: dict[str, Any]) -> None:
    far = in_a1(n=1100, probability="0.7")
    forged["crossings"][0]["hi"] = certify_boundary(far)["crossings"][0]["hi"]


def _name(forged: dict[str, Any]) -> None:
    forged["parameter"] = "b"


def _inner(forged: dict[str, Any]) -> None:
    end = forged["crossings"][0]["lo"]
    end["thresholds"][0]["least"] += 1
    forged["crossings"][0]["lo"] = signed(end)


def _nothing(forged: dict[str, Any]) -> None:
    forged["crossings"][0]["lo"] = 5


def _empty(forged: dict[str, Any]) -> None:
    forged["crossings"] = []


@pytest.mark.parametrize("forge", [_swap, _level, _turn, _other, _name, _inner, _nothing, _empty])
def test_a_forged_certificate_fails(document: dict[str, Any], forge: Callable[[dict[str, Any]], None]) -> None:
    forged = copy.deepcopy(document)
    forge(forged)
    assert not check_boundary(signed(forged)).holds


def test_a_certificate_without_its_hash_fails(document: dict[str, Any]) -> None:
    assert check_boundary({**document, "at": "0.50"}).failed
    assert check_boundary({**document, "sha256": "0"}).failed == ["sha256 is wrong"]
    assert not check_boundary({**document, "more": 1}).holds


def test_there_is_nothing_to_certify_without_a_crossing() -> None:
    with pytest.raises(EngineRefusal, match="nothing to certify"):
        certify_boundary(sx.boundary("spike", "linear", **FIXED, a1="0.5:1.5", n=1000))


@pytest.mark.parametrize("open_", [{"c": "0.01:0.5", "a1": "0.7"}, {"d": "4:60", "a1": "0.7"}])
def test_what_follows_from_the_parameter_may_differ(open_: dict[str, str]) -> None:
    found = boundary("spike", "softmax", {**FIXED, "n": 1000, **open_})
    assert found.crossings
    assert check_boundary(certify_boundary(found)).holds


def test_a_parameter_of_the_mechanism_can_be_certified() -> None:
    found = sx.boundary("spike", "power", beta="1:12", a1="1.2", n=1000, **FIXED)
    assert check_boundary(certify_boundary(found)).holds


def test_a_curve_has_a_boundary_for_every_value(tmp_path: Path) -> None:
    curve = boundary("spike", "softmax", {**FIXED, "a1": "0.5:1.5"}, over="n=1e3:1e9:3:log")
    places = [found.crossings[0].middle for found in curve.curve]
    assert places == sorted(places)
    assert places[1] == pytest.approx(in_a1().crossings[0].middle, rel=1e-12)
    rows = as_csv(curve).decode().splitlines()
    assert rows[0] == "n,lo,hi,direction,certified,a1(a1+b+c) = 1"
    assert len(rows) == 4
    assert made_by(curve).endswith("--over n=1e3:1e9:3:log")
    for ending in suffixes("boundary_curve"):
        curve.save(tmp_path / f"curve{ending}")
        assert (tmp_path / f"curve{ending}").stat().st_size > 100


def test_the_critical_degree_over_n_stays_below_its_formula() -> None:
    curve = boundary("spike", "power", {**FIXED, "a1": "1.2", "beta": "1:30"}, over="n=1e3:1e12:3:log")
    for found in curve.curve:
        assert found.analytic_values[0] - 2 < found.crossings[0].middle < found.analytic_values[0]


def test_a_curve_over_the_mechanism() -> None:
    curve = boundary("spike", "power", {**FIXED, "a1": "1.2", "n": "1e3:1e12"}, over="beta=5:9:3")
    places = [found.crossings[0].middle for found in curve.curve]
    assert places == sorted(places)
    assert curve.as_json()["curve"][0]["value"] == "5"


def test_json_has_the_shape_that_is_promised(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "boundary", "spike", "softmax", "a1=0.5:1.5", "n=1e6", *WORDS, "--json")
    shown = json.loads(out)
    assert (code, err) == (0, "")
    (crossing,) = shown["crossings"]
    assert (crossing["lo"], crossing["hi"]) == ("0.7785735959259", "0.7785735959265")
    assert crossing["certified"] is True
    assert (shown["parameter"], shown["at"], shown["engine"]) == ("a1", "0.5", "certified")
    code, out, _ = run(capsys, "boundary", "spike", "softmax", "a1=0.8", "n=1e3:1e9", *WORDS, "--json")
    assert json.loads(out)["crossings"][0]["lo"] == 125823100


def test_the_command_line_writes_a_certificate_that_holds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = str(tmp_path / "b.json")
    words = ["boundary", "spike", "softmax", "a1=0.5:1.5", "n=1050", *WORDS, "--certificate", path]
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert "n=1050 is rounded to a multiple of d−2: n=1100." in out
    code, out, _ = run(capsys, "check", path)
    assert code == 0
    assert "holds" in out


def test_a_curve_as_text(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = ["a1=0.5:1.5", *WORDS, "--over", "n=1e3:1e6:2:log"]
    code, out, _ = run(capsys, "boundary", "spike", "softmax", *words)
    assert code == 0
    assert "0.6963845752829" in out
    assert max(map(len, out.splitlines())) <= 80


BAD: list[tuple[list[str], str]] = [
    (["a1=0.5:1.5", "n=1e3:1e6"], "searched in one range, but 2 were given (a1, n); give one of them as --over"),
    (["a1=1", "n=1000"], "searched in one range, but none was given"),
    (["a1=1.5:0.5", "n=1000"], "runs backwards"),
    (["a1=1:1", "n=1000"], "has no length"),
    (["a1=0.5:1.5:9", "n=1000"], "is not a search range"),
    (["a1=0:1.5:log", "n=1000"], "starts at 0"),
    (["a1=0.5:1.5", "n=1000", "--at", "1"], "a level of P lies between 0 and 1"),
    (["a1=0.5:1.5", "n=1000", "--at", "half"], "at=half is not a number"),
    (["a1=0.5:1.5", "n=1000", "--scan", "1"], "scan=1 is out of range"),
    (["a1=0.5:1.5", "n=1000", "--tolerance", "0"], "tolerance=0 is out of range"),
    (["a1=0.5:1.5", "n=1000", "--engine", "fast"], "there is no engine fast"),
    (["a1=0.5:1.5", "n=1000", "--out", "x.html"], "add --over"),
    (["a1=0.5:1.5", "n=1000", "--certificate", "no/x.json"], "there is no folder no"),
    (["a1=0.5:1.5", "n=1000", "--certificate", "x.json", "--engine", "dense"], "proves nothing"),
    (["a1=0.5:1.5", "--certificate", "x.json", "--over", "n=1e3:1e6:4:log"], "a curve has none"),
    (["a1=0.5:1.5", "n=1000", "--over", "n=1e3:1e6:4:log"], "n is given twice"),
    (["a1=0.5:1.5", "--over", "n=1e3:1e6:1:log"], "has one point"),
    (["a1=0.5:1.5", "--over", "n=1e3:1e6:4:log", "--out", "x.npz"], "does not say what to write"),
    (["a1=0.5:1.5", "--over", "n"], "'n' is not of the form name=value"),
]


@pytest.mark.parametrize(("words", "complaint"), BAD, ids=[complaint for _, complaint in BAD])
def test_bad_input_gets_one_line(
    words: list[str],
    complaint: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused(capsys, complaint, tmp_path, "boundary", "spike", "softmax", *words, *WORDS)


def test_what_the_certified_engine_cannot_do_is_refused() -> None:
    with pytest.raises(EngineRefusal, match="no scalar kernel"):
        sx.boundary("spike", "topk:k=4", **FIXED, a1="0.5:1.5", n=1000, engine="certified")
    with pytest.raises(UsageError, match="has no parameter a11"):
        sx.boundary("spike", "softmax", **FIXED, a11="0.5:1.5", a1=1, n=1000)
