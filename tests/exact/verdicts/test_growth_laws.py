"""Bounds for every larger n: attained where the theory says so, and rounded outwards."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import ctx

from cases import BASE
from separatrix.constructions import construction_named
from separatrix.exact.outputs.growth_laws import (
    GrowthLaw,
    Shares,
    _decimal,
    _exponent,
    _whole,
    distance_laws,
    margin_law,
)
from separatrix.mechanisms import mechanism_named

FAR = 10**60


@pytest.mark.parametrize("mechanism", ["linear", "power:beta=3", "power:beta=1/2", "softmax"])
@pytest.mark.parametrize("kind", ["spike", "cross"])
def test_monotone_bounds_are_attained_at_the_first_n_and_in_the_limit(kind: str, mechanism: str) -> None:
    """The lower bound is the value at `start`, the upper one the limit: neither may be loose."""
    point = construction_named(kind).read({**BASE, "n": 1000, "d": 12, **({"r_Q": "1.1"} if kind == "cross" else {})})
    unit = mechanism_named(mechanism)
    margin, (distance, _) = margin_law(point, unit), distance_laws(point, unit)
    assert margin is not None
    assert distance is not None
    shares = Shares(point, unit, 0)  # type: ignore[arg-type]
    with ctx.workprec(800):
        for law, value in ((margin, shares.margin), (distance, shares.distance)):
            scaled = [float(value(n) * n ** int(-law.exponent)) for n in (law.start, FAR)]
            if law is distance and mechanism == "softmax":  # of f1 - f0 and n/(n-1) one grows and the other falls
                gain = float(shares.weight(1, 1000) - shares.weight(0, 1000))
                scaled = [math.hypot(v, math.sqrt(0.9) * 0.2 * g) for v, g in ((margin.low, gain), (1.2, 1000 / 999))]
            assert [law.low, law.high] == pytest.approx(scaled, rel=1e-12), law
    assert margin.start == distance.start == 1000
    assert margin.exponent == (0 if mechanism == "softmax" else -1)
    reason = "the spike's weight increases to 1 in D1 and decreases to 0 in D0"
    assert margin.reason == (reason if mechanism == "softmax" else "n margin increases with n to its limit")


def test_the_first_n_of_a_law_is_that_from_which_the_weight_increases() -> None:
    """(n-1) n^-s decreases from n = s/(s-1) on: for s = 1.01 from 101 on."""
    point = construction_named("cross").read({**BASE, "n": 10, "d": 12, "a1": "1.01", "r_Q": 1, "a0": 0})
    margin, (distance, _) = (
        margin_law(point, mechanism_named("softmax")),
        distance_laws(point, mechanism_named("softmax")),
    )
    assert margin is not None
    assert distance is not None
    assert (margin.start, distance.start) == (101, 101)
    at_one = construction_named("cross").read({**BASE, "n": 10, "d": 12, "a1": "1", "r_Q": 1, "a0": 0})
    law = margin_law(at_one, mechanism_named("softmax"))
    assert law is not None
    assert (law.start, law.bounds[0]) == (10, Fraction(1, 2))
    assert law.bounds[1] == Fraction(10, 19)
    assert "limit 0.5 in D1 and 0 in D0" in law.reason


@pytest.mark.parametrize("a1", ["0.3", "0.6", "0.9", "0.99"])
def test_bounds_below_the_threshold_are_close(a1: str) -> None:
    """s1 < 1 and a0 = 0: n^(1-s) f lies between its least value, at the peak of (n^s - 1)/n, and 1."""
    point = construction_named("cross").read({**BASE, "n": 10, "d": 12, "a1": a1, "r_Q": 1, "a0": 0})
    law, s = margin_law(point, mechanism_named("softmax")), float(a1)
    assert law is not None
    least = min(n / (n - 1 + n**s) for n in (10 * 1.01**i for i in range(4000)))
    assert law.bounds[1] == Fraction(a1)
    assert least * s * (1 - 1e-4) <= law.low <= least * s * (1 + 1e-12)
    assert law.exponent == Fraction(a1) - 1


def law(exponent: Fraction, low: Fraction = Fraction(1), high: Fraction = Fraction(2), start: int = 10) -> GrowthLaw:
    return GrowthLaw("margin", exponent, start, (low, high), "")


def test_floats_and_decimals_are_rounded_outwards() -> None:
    half, third = Fraction(1, 2), Fraction(1, 3)
    assert (law(half, half, half).low, law(half, half, half).high) == (0.5, 0.5)
    for value in (third, 2 * third, -third, 1 + Fraction(1, 10**30), 1 - Fraction(1, 10**30)):
        rounded = law(half, value, value)
        assert Fraction(rounded.low) < value < Fraction(rounded.high)
        assert rounded.high == math.nextafter(rounded.low, math.inf)
    for value in (third, -third, Fraction(2, 3) * 10**9, Fraction(1, 7 * 10**12), Fraction(10), Fraction(-1, 8)):
        down, up = (Fraction(_decimal(value, up)) for up in (False, True))
        assert down <= value <= up
        assert up - down <= abs(value) / 10**6
        assert (up == down) == (value in (10, Fraction(-1, 8)))


@pytest.mark.parametrize(
    ("power", "subject"),
    [
        (0, "margin"),
        (-1, "n margin"),
        (1, "n^-1 margin"),
        (Fraction(-1, 2), "sqrt(n) margin"),
        (Fraction(1, 2), "margin/sqrt(n)"),
        (Fraction(-1, 4), "n^0.25 margin"),
        (Fraction(-1, 3), "n^(1/3) margin"),
        (-2, "n^2 margin"),
    ],
)
def test_statements_name_the_power_of_n(power: Fraction | int, subject: str) -> None:
    assert law(Fraction(power)).subject == subject
    assert law(Fraction(power)).statement == f"for every n >= 10: 1 <= {subject} <= 2"


def test_numbers_in_statements() -> None:
    short = {7: "7", 999_999: "999999", 10**6: "10⁶", 1_234_567: "1234567", 10**22: "10²²", 10**30: str(10**30)}
    assert {n: _whole(n) for n in short} == short
    exponents = {"0.5": "0.5", "1/3": "(1/3)", "-1": "-1", "0.12345": "0.12345", "0.123456": "(0.123456)"}
    assert {text: _exponent(Fraction(text)) for text in exponents} == exponents
    tiny = Fraction(1, 10**301)
    ends = [_decimal(x, up) for x in (tiny, -tiny, Fraction(0)) for up in (False, True)]
    assert ends == ["0", "1e-300", "-1e-300", "0", "0", "0"]
