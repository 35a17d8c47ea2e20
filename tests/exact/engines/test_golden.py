"""The reference values: fractions equal for certified, 1e-9 for exact, inside the interval when sampled."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from cases import GOLDEN, golden_id, golden_mechanism, golden_point
from separatrix.exact.engines import Sampling, solve

MOST_DENSE = 10_000


@pytest.fixture(params=GOLDEN, ids=golden_id)
def case(request: pytest.FixtureRequest) -> dict[str, Any]:
    return dict(request.param)


def test_certified_gives_the_fractions(case: dict[str, Any]) -> None:
    found = solve(golden_point(case), golden_mechanism(case), "certified")
    assert (str(found.p0), str(found.p1)) == (case["p0"], case["p1"])
    assert (found.fire_d0, found.fire_d1) == (case["fire_d0"], case["fire_d1"])
    assert found.distinguish == case["distinguish"]
    assert found.interval == (case["distinguish"], case["distinguish"])


def test_exact_agrees(case: dict[str, Any]) -> None:
    found = solve(golden_point(case), golden_mechanism(case), "closed")
    assert found.p0 == pytest.approx(float(Fraction(case["p0"])), abs=1e-9, rel=1e-9)
    assert found.p1 == pytest.approx(float(Fraction(case["p1"])), abs=1e-9, rel=1e-9)
    for name in ("fire_d0", "fire_d1", "distinguish"):
        assert getattr(found, name) == pytest.approx(case[name], abs=1e-9)


@pytest.mark.parametrize("engine", ["grouped", "dense"])
def test_sampling_covers(case: dict[str, Any], engine: str) -> None:
    if engine == "dense" and case["n"] > MOST_DENSE:
        pytest.skip(f"n={case['n']} tokens do not fit in memory; the grouped engine covers this case")
    found = solve(golden_point(case), golden_mechanism(case), engine, Sampling(confidence=0.999))
    low, high = found.interval
    assert low <= case["distinguish"] <= high
    exact = solve(golden_point(case), golden_mechanism(case), "certified")
    assert found.margin == pytest.approx(exact.margin, rel=1e-9, abs=1e-14)
