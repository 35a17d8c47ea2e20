"""Questions: which parameters belong to the mechanism, and the point and step that they lead to."""

from __future__ import annotations

from fractions import Fraction

import pytest

from separatrix.constructions.spike import Spike
from separatrix.core.parameters import UsageError
from separatrix.exact.verdicts.question import question
from separatrix.mechanisms import Power, Softmax

FIXED = {"n": 1050, "d": 12, "m": 4, "a0": "0.01", "a1": "1.2", "b": "0.2"}


def test_parameters_belong_to_the_construction_or_to_the_mechanism() -> None:
    asked = question("spike", "power:beta=2", FIXED, ())
    assert [asked.is_own(name) for name in ("n", "a1", "tau", "beta", "temperature")] == [False] * 3 + [True, False]
    assert asked.schema_of("beta") is Power.schema
    assert asked.schema_of("a1") is Spike.schema
    assert question("spike", Softmax(), FIXED, ()).is_own("temperature")
    assert (asked.label, question("spike", Softmax(), FIXED, ()).label) == ("power:beta=2", "softmax")


def test_chosen_values_go_where_they_belong() -> None:
    asked = question("spike", "power", FIXED, ("beta", "a1"))
    chosen = {"beta": Fraction(5, 2), "a1": Fraction(1, 2)}
    assert asked.mechanism(chosen).spelled == "power:beta=2.5"
    point = asked.point(chosen)
    assert (point.n, point.parameters.a1) == (1050, Fraction(1, 2))
    assert asked.point({"d": 102}).n == 1100
    assert (asked.step({}), asked.step({"d": 102}), asked.step({"beta": Fraction(3)})) == (10, 100, 10)
    assert asked.with_parameter("beta", Fraction(2)).source == "power:beta=2"
    assert asked.with_parameter("a1", Fraction(2)).fixed["a1"] == 2
    two = question("spike", "softmax:temperature=2", FIXED, ())
    assert two.with_parameter("temperature", 3).source == "softmax:temperature=2,temperature=3"
    numbers = asked.numbers(chosen)
    assert (numbers["beta"], numbers["a1"], numbers["n"], numbers["tau"]) == pytest.approx((2.5, 0.5, 1050, 0.2))
    assert "form" not in numbers


def test_missing_parameters_come_from_the_reference_point_unless_they_vary() -> None:
    asked = question("spike", "softmax", {"n": 1000}, ("a1", "c"))
    assert asked.taken.keys() == {"d", "m", "a0", "b"}
    assert asked.fixed == {"n": 1000, **asked.taken}
    assert "d=102" in asked.reference_remark
    assert question("spike", "softmax", FIXED | {"c": "0.1"}, ()).reference_remark == ""
    assert asked.parameters["n"] == "1000"
    with pytest.raises(UsageError, match="has no parameter a11"):
        question("spike", "softmax", {"a11": 1}, ())
