"""Levels that P equals exactly: a crossing is strictly below on one side and strictly above on the other."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

import separatrix as sx
from expectations import run
from separatrix.analysis.maps import Boundary
from separatrix.analysis.maps.boundary import certify_boundary
from separatrix.analysis.maps.boundary_result import LevelReading
from separatrix.analysis.maps.boundary_search import _arrange
from separatrix.checker import check_boundary
from separatrix.core.parameters.ranges import Number
from separatrix.exact.engines import certified

ASKED: dict[str, Any] = {"n": 16, "d": 6, "m": 1, "a0": "0.05", "b": "0.2", "c": "0.1", "a1": "0.1:3"}
WORDS = [f"{name}={value}" for name, value in ASKED.items()]


def exact_p(found: Boundary, value: Number) -> Fraction:
    """P at one value by fractions, from p0 and the share that fires on D1 alone."""
    chosen = {found.span.name: value}
    point = found.question.point(chosen)
    count = certified.count(point, found.question.mechanism(chosen))
    assert count.is_decided
    silent = 1 - Fraction(count.low.p0)
    return silent**point.m - (silent - Fraction(count.low.only)) ** point.m


def sign(x: Fraction) -> int:
    return (x > 0) - (x < 0)


def anchors(found: Boundary) -> list[LevelReading]:
    """Every reading that the answer shows, in order."""
    shown = [
        *found.ends,
        *(end for crossing in found.crossings for end in (crossing.lo, crossing.hi)),
        *(
            end
            for plateau in found.plateaus
            for end in (plateau.previous, plateau.first, plateau.last, plateau.next)
            if end is not None
        ),
    ]
    return sorted(shown, key=lambda each: each.value)


def random_boundary(draw: random.Random) -> Boundary:
    """A search at a level that P takes somewhere, more often than not."""
    d = draw.choice([4, 5, 6])
    fixed: dict[str, Any] = {
        "n": (d - 2) * draw.randint(2, 12),
        "d": d,
        "a0": Fraction(draw.randint(0, 40), 100),
        "b": Fraction(draw.randint(5, 60), 100),
        "c": Fraction(draw.randint(5, 60), 100),
        "form": draw.choice(["ones", "identity"]),
    }
    moving = draw.choice(["a1", "tau", "m"])
    spans = {"a1": "0.5:3", "tau": "0.05:1.5", "m": "1:30"}
    others = {"a1": "1.2", "m": draw.choice([1, 2, 3])}
    asked = {**others, **{name: str(value) for name, value in fixed.items()}, moving: spans[moving]}
    mechanism = draw.choice(["softmax", "linear", "power:beta=2"])
    scan = {"scan": 21, "tolerance": "1e-4"}
    look = sx.boundary("spike", mechanism, asked, probability="1/3", **scan)
    start, stop = (Fraction(end.value) for end in look.ends)
    place = start + (stop - start) * Fraction(draw.randint(0, 20), 20)
    p = exact_p(look, round(place) if moving == "m" else place)
    level = p if 0 < p < 1 and draw.random() < 0.8 else Fraction(draw.randint(1, 15), 16)
    return sx.boundary("spike", mechanism, asked, probability=level, **scan)


def require_true_sides(found: Boundary) -> None:
    """Compare every side that the answer states with P by fractions, at its ends and in between."""
    for crossing in found.crossings:
        assert crossing.is_certified
        below, above = (crossing.lo, crossing.hi) if crossing.rises else (crossing.hi, crossing.lo)
        assert exact_p(found, below.value) < found.at < exact_p(found, above.value)
    for plateau in found.plateaus:
        assert plateau.is_certified
        assert exact_p(found, plateau.first.value) == found.at == exact_p(found, plateau.last.value)
    shown = anchors(found)
    for value in found.span.points(21):
        left = [each for each in shown if each.value <= value][-1]
        right = next(each for each in shown if each.value >= value)
        if left.side == right.side:
            assert sign(exact_p(found, value) - found.at) == left.side


@pytest.mark.parametrize("seed", range(8))
def test_sides_are_those_of_brute_force(seed: int) -> None:
    require_true_sides(random_boundary(random.Random(seed)))


@pytest.mark.exhaustive
def test_sides_are_those_of_brute_force_at_levels_that_are_often_taken_exactly() -> None:
    found = [random_boundary(random.Random(seed)) for seed in range(60)]
    for each in found:
        require_true_sides(each)
    assert sum(bool(each.plateaus) for each in found) >= 20
    assert sum(any(not plateau.passes for plateau in each.plateaus) for each in found) >= 10
    assert sum(any(crossing.plateau for crossing in each.crossings) for each in found) >= 3
    assert sum(any(crossing.plateau is None for crossing in each.crossings) for each in found) >= 5


def test_a_plateau_up_to_the_end_is_no_crossing(capsys: pytest.CaptureFixture[str]) -> None:
    found = sx.boundary("spike", "softmax", **ASKED, probability="0.421875")
    assert found.crossings == ()
    (plateau,) = found.plateaus
    assert (plateau.last.value, plateau.after, plateau.passes) == (3, None, False)
    start = f"{float(plateau.first.value):.10g}"
    said = f"P equals 0.421875 exactly from a1 = {start} to a1 = 3, and is below it before"
    assert found.summary == f"softmax on spike: {said}"
    code, out, _ = run(capsys, "boundary", "spike", "softmax", *WORDS, "--at", "0.421875")
    assert code == 0
    assert f"{said} (certified)" in " ".join(out.split())
    assert "rises" not in out
    assert found.engine == "certified"


def test_a_crossing_over_a_plateau_has_strict_ends_and_a_certificate() -> None:
    found = sx.boundary("spike", "softmax", **ASKED, probability="0.21875")
    (crossing,) = found.crossings
    assert crossing.plateau is not None
    assert exact_p(found, crossing.lo.value) < found.at < exact_p(found, crossing.hi.value)
    shown = found.as_json()
    assert shown["crossings"][0]["plateau"] == [shown["plateaus"][0]["from"], shown["plateaus"][0]["to"]]
    assert shown["plateaus"][0]["before"] == "below"
    assert shown["plateaus"][0]["after"] == "above"
    report = check_boundary(certify_boundary(found))
    assert report.holds, report.failed


def test_floats_alone_leave_equality_open() -> None:
    found = sx.boundary("spike", "softmax", **ASKED, probability="0.21875", engine="closed")
    assert found.plateaus == ()
    assert found.undecided > 0
    (crossing,) = found.crossings
    assert not crossing.is_certified
    assert "between 0.7055728798 and 0.7183541266" in found.summary


def reading(value: int, side: int | None) -> LevelReading:
    return LevelReading(value, 0.0, side, True)


@pytest.mark.parametrize(
    ("sides", "crossings", "plateaus"),
    [
        ([-1, 1], [(0, 1)], []),
        ([-1, 0, 1], [(0, 2)], [(1, 1, True)]),
        ([-1, 0, 0, -1], [], [(1, 2, False)]),
        ([1, 0, 1, -1], [(2, 3)], [(1, 1, False)]),
        ([0, 0, 1], [], [(0, 1, False)]),
        ([1, 0, 0], [], [(1, 2, False)]),
        ([0, 0], [], [(0, 1, False)]),
        ([0, -1, 0, 1, 0], [(1, 3)], [(0, 0, False), (2, 2, True), (4, 4, False)]),
        ([None, 0, None, 1], [], [(1, 1, False)]),
    ],
)
def test_sides_are_arranged(
    sides: list[int | None], crossings: list[tuple[int, int]], plateaus: list[tuple[int, int, bool]]
) -> None:
    readings = [reading(i, side) for i, side in enumerate(sides)]
    decided = [each for each in readings if each.side is not None]
    changes = [(a, b) for a, b in pairwise(decided) if a.side != b.side]
    found, flat = _arrange(changes, readings)
    assert [(each.lo.value, each.hi.value) for each in found] == crossings
    assert [(each.first.value, each.last.value, each.passes) for each in flat] == plateaus
