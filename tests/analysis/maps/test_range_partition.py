"""All crossings in a1: the proof that none is missing, against dense grids of exact fractions."""

from __future__ import annotations

import copy
import json
import math
import random
from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest

import separatrix as sx
from separatrix.analysis.maps import Boundary, range_partition
from separatrix.analysis.maps.boundary import boundary, certify_boundary
from separatrix.analysis.maps.range_partition import partition_range
from separatrix.checker import check_boundary
from separatrix.checker.boundary import _counts, _growth
from separatrix.checker.certificate import read
from separatrix.constructions import construction_named
from separatrix.exact.engines import certified
from separatrix.exact.engines.outcome import side_of_fractions
from separatrix.exact.verdicts import certify
from separatrix.exact.verdicts.certificate import digest
from separatrix.mechanisms.load import mechanism_from

NOT_MONOTONE = {"n": 1000, "d": 12, "m": 1, "a0": 0, "b": "0.5", "c": 1}
MECHANISMS = ("softmax", "softmax:temperature=1/2", "softmax:temperature=2", "linear", "power:beta=6", "power:beta=5/2")
RANGE: dict[str, Any] = {"a1": "0.06:2"}
LEVELS = (Fraction(1, 2), Fraction(1, 8))


def sides_on_grid(found: Boundary, values: list[Fraction]) -> list[int]:
    """The sign of P - level at every value, by exact fractions."""
    sides = []
    for value in values:
        point, mechanism = found.question.point({"a1": value}), found.question.mechanism({"a1": value})
        count = certified.count(point, mechanism)
        side = side_of_fractions(count.low.p0, count.low.only, point.m, found.at)
        assert count.is_decided
        assert side is not None
        sides.append(side)
    return sides


def random_question(seed: int) -> tuple[str, str, dict[str, Any], Fraction]:
    """A small question; decimals with few digits and powers of two as n make ties likely."""
    rng = random.Random(seed)
    d = rng.choice((4, 5, 6, 7, 8, 12, 18))
    size = rng.choice((1, 2, 4, 16, 50)) if d > 4 else rng.choice((2, 8, 32, 512))
    values: dict[str, Any] = {"n": (d - 2) * size, "d": d, "m": rng.choice((1, 1, 2, 5))}
    values |= {name: Fraction(rng.randint(1, 12), rng.choice((4, 10))) for name in ("b", "c")}
    values["a0"] = rng.choice(("0", "0.01", "0.05"))
    values["tau"] = values["c"] + Fraction(rng.choice((0, 1, 2, 5)), 10)
    construction = rng.choice(("spike", "spike", "cross"))
    if construction == "cross":
        values["r_Q"] = Fraction(rng.randint(2, 20), 10)
    mechanism = rng.choice(MECHANISMS)
    point = construction_named(construction).read({**values, "a1": Fraction(rng.randint(40, 200), 100)})
    neuron = certified.count(point, mechanism_from(mechanism)).low
    reached = (1 - neuron.p0) ** values["m"] - (1 - neuron.p0 - neuron.only) ** values["m"]
    # P takes the first level on an interval; the other two lie on both sides of it.
    levels = [reached * factor for factor in (Fraction(1), Fraction(9, 10), Fraction(11, 10))]
    return construction, mechanism, values, rng.choice([level for level in levels if 0 < level < 1] or LEVELS)


def check_against_grid(seed: int, count: int) -> int:
    """Compare the crossings of a random question with a grid; return their number, or 0 if they are not proved."""
    construction, mechanism, values, level = random_question(seed)
    found = boundary(construction, mechanism, values, **RANGE, probability=level)
    if not found.is_complete:
        assert "would be missed" in found.guarantee or "except perhaps" in found.guarantee
        return 0
    grid = [Fraction(6, 100) + Fraction(194 * i, 100 * count) for i in range(count + 1)]
    ends = [Fraction(end.value) for crossing in found.crossings for end in (crossing.lo, crossing.hi)]
    # Outside the crossings, P is never strictly on the wrong side; within them, it turns in the stated direction.
    rises = [crossing.rises for crossing in found.crossings]
    for value, side in zip(grid, sides_on_grid(found, grid), strict=True):
        place = bisect_left(ends, value)
        if place % 2 == 0 and rises:
            assert side in (0, -1 if (rises[place // 2] if place < len(ends) else not rises[-1]) else 1)
        elif not rises:
            assert side in (0, found.ends[0].side or found.ends[1].side or side)
    if not rises:
        assert not {1, -1} <= {*sides_on_grid(found, grid)}
    return len(rises)


@pytest.mark.parametrize("seeds", [range(5), range(8, 13)], ids=["first", "second"])
def test_no_crossing_is_missing_on_a_dense_grid(seeds: range) -> None:
    assert sum(check_against_grid(seed, 40) for seed in seeds) >= 2


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(4))
def test_no_crossing_is_missing_on_dense_grids(part: int) -> None:
    assert sum(check_against_grid(seed, 150) for seed in range(100 + 12 * part, 112 + 12 * part)) >= 4


@pytest.mark.parametrize("seed", range(200, 212))
def test_p_passes_at_most_once_between_values(seed: int) -> None:
    """Sides on a grid between neighbouring values: constant, or changing in one direction."""
    construction, name, values, level = random_question(seed)
    point = construction_named(construction).read({**values, "a1": Fraction(6, 100)})
    result = partition_range(point, mechanism_from(name), Fraction(2), level)
    assert result is not None
    found = boundary(construction, name, values, **RANGE, probability=level, scan=2)
    for u, v in pairwise(result.values):
        if not any(low <= u and v <= high for low, high in result.undecided_intervals):
            sides = sides_on_grid(found, [u + (v - u) * Fraction(i, 12) for i in range(13)])
            assert sides in (sorted(sides), sorted(sides, reverse=True))


def test_the_crossing_at_the_reference_point_is_the_only_one() -> None:
    found = sx.boundary("spike", "softmax", a1="0.02:1.5")
    assert found.is_complete
    assert found.guarantee.startswith("The only crossing in this range (proved): ")
    assert found.as_json()["complete"] is True
    assert found.partition is not None
    assert len(found.partition.values) < 20


@pytest.mark.parametrize("scan", [2, 5, None])
def test_p_may_rise_and_fall_and_every_crossing_is_found(scan: int | None) -> None:
    """P falls from 189/2048 to 63/1024 between a1 = 0.3955 and 0.4004: the boundary is not unique in general."""
    found = sx.boundary("spike", "softmax", a1="0.3:1.5", probability="0.08", scan=scan, **NOT_MONOTONE)
    assert [crossing.rises for crossing in found.crossings] == [True, False, True]
    assert found.guarantee.startswith("These are the only crossings in this range (proved): ")
    fall = found.crossings[1]
    assert fall.distinguish == (189 / 2048, 63 / 1024)
    assert Fraction("0.3955") < fall.lo.value < fall.hi.value < Fraction("0.4004")


def test_linear_attention_has_no_crossing_here_and_that_is_proved() -> None:
    found = sx.boundary("spike", "linear", a1="0.02:1.5")
    assert found.crossings == ()
    assert found.engine == "certified"
    assert found.guarantee.startswith("No crossing in this range (proved): ")


def test_a_level_that_p_takes_is_a_plateau_of_the_only_crossing() -> None:
    found = sx.boundary("spike", "softmax", a1="0.3:1.5", probability="189/2048", **NOT_MONOTONE)
    assert found.is_complete
    assert found.plateaus
    assert check_boundary(certify_boundary(found)).holds


@pytest.mark.parametrize(
    ("mechanism", "parameters"),
    [("taylor:order=4", {}), ("softmax", {"form": "identity"}), ("softmax", {"engine": "closed"})],
)
def test_other_questions_are_searched_as_before(mechanism: str, parameters: dict[str, Any]) -> None:
    found = boundary("spike", mechanism, a1="0.3:1.5", scan=9, **parameters)
    assert not found.is_complete
    assert found.partition is None
    assert "two crossings between neighbouring values would be missed" in found.guarantee


def test_what_is_left_open_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_partition, "MOST_INTERVALS", 4)
    found = sx.boundary("spike", "softmax", a1="0.3:1.5", probability="0.08", **NOT_MONOTONE)
    assert not found.is_complete
    assert found.guarantee.startswith("No other crossing in this range (proved), except perhaps a1 from 0.")
    assert certify_boundary(found)["cuts"] is None


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return certify_boundary(sx.boundary("spike", "softmax", a1="0.3:1.5", probability="0.08", **NOT_MONOTONE))


def signed(document: dict[str, Any]) -> dict[str, Any]:
    """With the hash made right again."""
    body = {name: value for name, value in document.items() if name != "sha256"}
    return {**body, "sha256": digest(body)}


def test_the_certificate_states_that_there_is_no_other_crossing(document: dict[str, Any]) -> None:
    report = check_boundary(document)
    assert report.holds
    assert "From a1=0.3 to a1=1.5, P(tells apart) does not pass 0.08 anywhere else." in report.statement
    assert any("exactly once" in sentence for sentence in report.statement)
    without = check_boundary(signed({**document, "cuts": None}))
    assert without.holds
    assert not any("anywhere else" in sentence or "exactly once" in sentence for sentence in without.statement)
    assert any("that it does so only once there" in sentence for sentence in without.statement)


def _drop_crossings(forged: dict[str, Any]) -> None:
    """One crossing of three, with the cuts as they were: the other two are concealed."""
    del forged["crossings"][1:]


def _drop_inner_cuts(forged: dict[str, Any]) -> None:
    ends = {crossing[end]["parameters"]["a1"] for crossing in forged["crossings"] for end in ("lo", "hi")}
    forged["cuts"] = [cut for cut in forged["cuts"] if cut in {"0.3", "1.5"} | ends]
    del forged["crossings"][1:]


def _widen(forged: dict[str, Any]) -> None:
    """One crossing from before the first to after the last: the sides of its ends are right, but P is not monotone."""
    forged["crossings"] = [{**forged["crossings"][0], "hi": forged["crossings"][2]["hi"]}]


def _widen_without_cuts(forged: dict[str, Any]) -> None:
    _widen(forged)
    (crossing,) = forged["crossings"]
    forged["cuts"] = ["0.3", crossing["lo"]["parameters"]["a1"], crossing["hi"]["parameters"]["a1"], "1.5"]


def _swap_cuts(forged: dict[str, Any]) -> None:
    forged["cuts"][1], forged["cuts"][2] = forged["cuts"][2], forged["cuts"][1]


def _below_a0(forged: dict[str, Any]) -> None:
    forged["cuts"][0] = "0"


def _remove_end(forged: dict[str, Any]) -> None:
    forged["cuts"].remove(forged["crossings"][1]["lo"]["parameters"]["a1"])


def _no_list(forged: dict[str, Any]) -> None:
    forged["cuts"] = {"0.3": "1.5"}


def _one_cut(forged: dict[str, Any]) -> None:
    forged["cuts"] = ["0.3"]


@pytest.mark.parametrize(
    "forge",
    [
        *(_drop_crossings, _drop_inner_cuts, _widen, _widen_without_cuts),
        *(_swap_cuts, _below_a0, _remove_end, _no_list, _one_cut),
    ],
)
def test_a_false_statement_of_completeness_is_rejected(
    document: dict[str, Any], forge: Callable[[dict[str, Any]], None]
) -> None:
    forged = copy.deepcopy(document)
    forge(forged)
    assert not check_boundary(signed(forged)).holds


@pytest.mark.parametrize("mechanism", ["softmax", "linear"])
def test_cuts_are_rejected_where_the_lemma_does_not_apply(mechanism: str) -> None:
    """In `location`, the logits do not depend on a1."""
    document = certify_boundary(sx.boundary("location", mechanism, a1="0.1:300", n=1000))
    assert check_boundary(document).holds
    (crossing,) = document["crossings"]
    cuts = ["0.1", crossing["lo"]["parameters"]["a1"], crossing["hi"]["parameters"]["a1"], "300"]
    report = check_boundary(signed({**document, "cuts": cuts}))
    assert not report.holds
    assert report.failed[0].startswith("cuts are not a list of values of a1")


def test_a_certificate_with_fewer_cuts_holds_only_if_it_is_true(document: dict[str, Any]) -> None:
    """Leaving out cuts, or adding some, changes the proof and not the statement: whatever holds must be true."""
    rng = random.Random(5)
    outcomes = set()
    for _ in range(12):
        cuts = [cut for cut in document["cuts"] if rng.random() < 0.8 or cut in ("0.3", "1.5")]
        cuts += [f"0.{rng.randint(31, 99)}1" for _ in range(rng.randint(0, 2))]
        forged = signed({**document, "cuts": sorted({*cuts}, key=Fraction)})
        report = check_boundary(forged)
        outcomes.add(report.holds)
        # All three crossings are listed, so that the statement is true; a proof with too few cuts is refused.
        assert report.holds or report.failed
    assert outcomes == {True, False}


@pytest.mark.parametrize("crossing", range(3))
def test_a_concealed_crossing_is_found_out_whatever_the_cuts(document: dict[str, Any], crossing: int) -> None:
    neighbour = crossing + 1 if crossing < 2 else crossing - 1
    forged = copy.deepcopy(document)
    forged["crossings"] = [c for i, c in enumerate(forged["crossings"]) if i not in (crossing, neighbour)]
    ends = [forged["crossings"][0][end]["parameters"]["a1"] for end in ("lo", "hi")]
    fine = [f"0.{i}1" for i in range(31, 99)]
    for values in (forged["cuts"], [*forged["cuts"], *fine], ["0.3", *ends, "1.5"], ["0.3", *ends, *fine, "1.5"]):
        cuts = sorted({*values}, key=Fraction)
        report = check_boundary(signed({**forged, "cuts": cuts}))
        assert not report.holds
        assert "that P passes the level as stated" in report.failed[0]


@pytest.mark.parametrize(
    ("construction", "mechanism", "parameters"),
    [
        ("spike", "softmax", {"a1": "0.02:1.5"}),
        ("spike", "softmax:temperature=2", {"a1": "0.02:3", "n": 10**18}),
        ("spike", "power:beta=8", {"a1": "0.02:3"}),
        ("spike", "power:beta=17/2", {"a1": "0.02:3"}),
        ("cross", "softmax", {"a1": "0.02:2"}),
    ],
)
def test_certificates_of_complete_boundaries_hold(
    construction: str, mechanism: str, parameters: dict[str, Any]
) -> None:
    found = boundary(construction, mechanism, **parameters)
    assert found.is_complete
    body = certify_boundary(found)
    assert body["cuts"]
    report = check_boundary(body)
    assert report.holds, report.failed


@pytest.mark.parametrize("seed", range(300, 325))
def test_certificates_of_random_boundaries_hold(seed: int) -> None:
    construction, mechanism, values, level = random_question(seed)
    found = boundary(construction, mechanism, values, **RANGE, probability=level, scan=9)
    if found.crossings:
        report = check_boundary(certify_boundary(found))
        assert report.holds, report.failed


@pytest.mark.parametrize("seed", range(400, 420))
def test_the_bounds_of_the_checker_hold_between_cuts(seed: int) -> None:
    """Least counts on a grid lie within the bounds; growth lies between the slopes; P is monotone where it must be."""
    construction, name, values, _ = random_question(seed)
    rng, mechanism = random.Random(seed), mechanism_from(name)
    low, step = Fraction(rng.randint(6, 150), 100), Fraction(rng.choice((5, 40, 120)), 1000)
    grid = [low + step * i for i in range(11)]
    points = [construction_named(construction).read({**values, "a1": a}) for a in grid]
    read_back = [read(certify(point, mechanism, Fraction(1, 100))[1]) for point in points]
    first, last = read_back[0], read_back[-1]
    least, most, directions = _counts(first, first.model, last.model)
    blocks = first.model.blocks
    for certificate in read_back:
        for key, count in certificate.thresholds.items():
            assert least[key] <= count <= min(most[key], blocks + 1) or least[key] > blocks
    chances = [certificate.neuron["only_d1"] for certificate in read_back]
    if directions in (set(), {1}, {-1}):
        assert chances == sorted(chances, reverse=directions == {-1})
    for row in first.model.rows[1]:
        (rho_u, slope_u), (rho_v, slope_v) = (_growth(c.kernel, c.model, row) for c in (first, last))
        mean = math.log(rho_v[0] / rho_u[0]) / float(grid[-1] - grid[0])
        assert float(min(*slope_u, *slope_v)) * (1 - 1e-9) <= mean <= float(max(*slope_u, *slope_v)) * (1 + 1e-9)


@pytest.mark.parametrize("change", [{}, {"a0": 0, "b": "0.7", "n": 20, "d": 12}])
def test_the_bounds_of_the_checker_hold_where_counts_turn(change: dict[str, Any]) -> None:
    grid = [Fraction(i, 25) for i in range(1, 26)]
    points = [construction_named("spike").read({**NOT_MONOTONE, **change, "a1": a}) for a in grid]
    read_back = [read(certify(point, mechanism_from("softmax"), Fraction(1, 100))[1]) for point in points]
    turns = 0
    for i, j in combinations(range(len(grid)), 2):
        least, most, _ = _counts(read_back[i], read_back[i].model, read_back[j].model)
        ends = [read_back[k].thresholds for k in (i, j)]
        for certificate in read_back[i + 1 : j]:
            for key, count in certificate.thresholds.items():
                assert least[key] <= count <= most[key] or least[key] > certificate.model.blocks
                turns += not min(end[key] for end in ends) <= count <= max(end[key] for end in ends)
    assert turns > 10


def test_the_command_line_states_and_certifies_completeness(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from expectations import run

    monkeypatch.setenv("COLUMNS", "200")
    path = str(tmp_path / "b.json")
    code, out, _ = run(capsys, "boundary", "spike", "softmax", "a1=0.02:1.5", "--certificate", path)
    assert code == 0
    assert "The only crossing in this range (proved): P is monotone or stays on one side of the level" in out
    assert json.loads(Path(path).read_text())["cuts"][0] == "0.02"
    code, out, _ = run(capsys, "check", path)
    assert code == 0
    assert "From a1=0.02 to a1=1.5, P(tells apart) does not pass 0.5 anywhere else." in out
