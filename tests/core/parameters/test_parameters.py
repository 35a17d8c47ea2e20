"""Parameters: exact numbers, and one clear line for everything that is wrong."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import BASE
from separatrix.constructions import construction_named
from separatrix.core.numbers import format_exact, parse_exact, parse_integer
from separatrix.core.parameters import Grid, UsageError, read_words
from separatrix.mechanisms import mechanism_named


@given(st.fractions())
def test_every_rational_survives_being_printed(value: Fraction) -> None:
    assert parse_exact(format_exact(value)) == value


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6))
def test_decimals_are_exact(value: object) -> None:
    assert parse_exact(str(value)) == Fraction(str(value))


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e6, max_value=1e6))
def test_a_float_is_the_decimal_it_prints_as(value: float) -> None:
    assert parse_exact(value) == Fraction(repr(value))


def test_large_integers() -> None:
    assert parse_integer("1e18") == 10**18
    assert parse_integer("1e30") == 10**30
    assert parse_integer("12e2") == 1200
    assert parse_integer(10**400) == 10**400


@pytest.mark.parametrize("text", ["10^18", "10**18", "10¹⁸", "1e18"])
def test_powers_are_whole_numbers(text: str) -> None:
    assert parse_integer(text) == 10**18


def test_powers_are_exact_and_measured_before_they_are_made() -> None:
    assert [parse_exact(x) for x in ("2^20", "10^-3", "10⁻³", "0^0", "1^999999")] == [
        *(1 << 20, Fraction(1, 1000), Fraction(1, 1000), 1, 1)
    ]
    assert parse_exact("10^3999") == 10**3999
    for text in ("10^400000", "9^99999999999999", "10^4010", "3^13300", "2^-20000", "9" * 5000 + "^2"):
        with pytest.raises(UsageError, match="has more than 4000 digits"):
            parse_exact(text, "n")
    with pytest.raises(UsageError, match=r"n=0\^-1 divides by zero"):
        parse_exact("0^-1", "n")
    for text in ("-2^2", "2^", "^3", "2^^3", "2^3^4", "2.5^2", "10^1.5", "2**", "10⁻", "¹⁰"):
        with pytest.raises(UsageError, match="is not a number"):
            parse_exact(text, "n")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("abc", "a1=abc is not a number"),
        ("", "a1= is not a number"),
        ("1/0", "a1=1/0 divides by zero"),
        ("nan", "a1=nan is not a finite number"),
        ("-inf", "a1=-inf is not a finite number"),
        ("1e99999999", "a1=1e99999999 has more than 4000 digits"),
        ("1e-5000", "a1=1e-5000 has more than 4000 digits"),
        ("0x10", "a1=0x10 is not a number"),
        ("1 2", "a1=1 2 is not a number"),
        ("__import__('os')", "a1=__import__('os') is not a number"),
    ],
)
def test_malformed_numbers(text: str, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_exact(text, "a1")
    assert str(caught.value) == complaint


@pytest.mark.parametrize("value", [True, None, [1], object()])
def test_what_is_no_number_at_all(value: object) -> None:
    with pytest.raises(UsageError, match="is not a number"):
        parse_exact(value, "a1")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["n"], "'n' is not of the form name=value"),
        (["=3"], "'=3' is not of the form name=value"),
        (["n="], "'n=' has no value"),
        (["n=1", "n=2"], "n is given twice: n=1 and n=2; keep one"),
    ],
)
def test_malformed_words(words: list[str], complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_words(words)
    assert str(caught.value).startswith(complaint)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"a2": 1}, "spike has no parameter a2 (did you mean a1?); it has: n, d, m, a0, a1, b, c, tau, form"),
        ({"fomr": "ones"}, "spike has no parameter fomr (did you mean form?)"),
        ({"n": 1001}, "n=1001 is not a multiple of d-2=100; try n=1000 or n=1100"),
        ({"n": 50}, "n=50 is not a multiple of d-2=100; try n=100"),
        ({"d": 3}, "d=3 is out of range; d must be 4 or more"),
        ({"d": 2}, "d=2 is out of range; d must be 4 or more"),
        ({"n": 2, "d": 4}, "n=2 is out of range; n must be 3 or more"),
        ({"n": "1.5"}, "n=1.5 is not a whole number"),
        ({"m": 0}, "m=0 is out of range; m must be 1 to 1e30"),
        ({"a0": "-0.1"}, "a0=-0.1 is out of range; a0 must be 0 or more"),
        ({"a0": "1.2"}, "a0=1.2 must be smaller than a1=1.2"),
        ({"b": 0}, "b=0 is out of range; b must be 1e-6 to 1e6"),
        ({"c": "-1"}, "c=-1 is out of range; c must be 1e-6 to 1e6"),
        ({"tau": 0}, "tau=0 is out of range; tau must be 1e-100 to 1e6"),
        ({"a1": "1e100"}, f"a1=1{'0' * 100} is out of range; a1 must be 1e-6 to 1e6"),
        ({"form": "one"}, "form=one is not one of ones or identity"),
        ({"a1": "abc"}, "a1=abc is not a number"),
        ({"a1": float("inf")}, "a1=inf is not a finite number"),
    ],
)
def test_wrong_points(changes: dict[str, object], complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        construction_named("spike").read({**BASE, **changes})
    assert str(caught.value).startswith(complaint)
    assert "\n" not in str(caught.value)


def test_missing_names_are_listed() -> None:
    with pytest.raises(UsageError, match=r"spike needs d, m, a0, a1, b, c as well"):
        construction_named("spike").read({"n": 1000})


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"base": 1}, "base=1 less spread=0 must stay above 1"),
        ({"spread": "0.5"}, "base=1.5 less spread=0.5 must stay above 1"),
        ({"peak": 0}, "peak=0 is out of range; peak must be 1e-6 to 1e6"),
        ({"n": 2}, "n=2 is out of range; n must be 3 to 1e300"),
    ],
)
def test_wrong_plain_points(changes: dict[str, object], complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        construction_named("plain").read({"n": 100, "m": 5, **changes})
    assert str(caught.value).startswith(complaint)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("sofmax", "there is no mechanism sofmax (did you mean softmax?)"),
        ("power", "power needs beta as well"),
        ("power:beta=0", "beta=0 is out of range; beta must be above 0, up to 1e6"),
        ("power:beta=x", "beta=x is not a number"),
        ("power:4", "'4' is not of the form name=value"),
        ("softmax:beta=4", "softmax has no parameter beta"),
        ("linear:beta=4", "linear takes no parameters, so not beta"),
        ("taylor:order=1.5", "order=1.5 is not a whole number"),
        ("taylor:order=0", "order=0 is out of range"),
        ("taylor:ordr=2", "taylor has no parameter ordr (did you mean order?)"),
    ],
)
def test_wrong_mechanisms(text: str, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        mechanism_named(text)
    assert str(caught.value).startswith(complaint)


def test_parameters_are_frozen_and_exact() -> None:
    point = construction_named("spike").read({**BASE, "a0": 0.1, "b": "1/3"}).parameters
    assert point.a0 == Fraction(1, 10)
    assert point.as_json()["b"] == "1/3"
    with pytest.raises(ValueError, match="frozen"):
        point.n = 5


def test_a_grid_checks_every_point() -> None:
    schema = construction_named("spike").schema
    fixed = {name: value for name, value in BASE.items() if name not in ("n", "a1")}
    with pytest.raises(UsageError, match=r"n=1050 is not a multiple of d-2=100"):
        Grid(fixed, ({"a1": ["0.5", "1"]}, {"n": [1000, 1050]})).columns(schema)
    with pytest.raises(UsageError, match=r"a0=0.01 must be smaller than a1=0.005"):
        Grid(fixed, ({"a1": ["0.5", "0.005"]}, {"n": [1000, 1100]})).columns(schema)
    with pytest.raises(UsageError, match=r"no parameter q"):
        Grid({**BASE}, ({"q": [1]},)).columns(schema)
    with pytest.raises(UsageError, match=r"n is given twice"):
        Grid({**BASE}, ({"n": [1000]},)).columns(schema)
    with pytest.raises(UsageError, match=r"form is not a number, so it cannot be an axis"):
        Grid(BASE, ({"form": ["ones"]},)).columns(schema)


@pytest.mark.parametrize("axis", [{}, {"n": []}, {"n": 5}, {"n": "12"}, {"n": [1, 2], "d": [3]}, "n", [1]])
def test_what_is_no_axis(axis: object) -> None:
    with pytest.raises(UsageError, match=r"is not an axis"):
        Grid(BASE, (axis,))  # type: ignore[arg-type]


def test_numbers_of_numpy_are_numbers() -> None:
    assert parse_exact(np.int64(1000)) == 1000
    assert parse_exact(np.float32(0.1)) == Fraction(1, 10)
    fixed = {name: value for name, value in BASE.items() if name != "m"}
    columns = Grid(fixed, ({"m": np.arange(1, 4)},)).columns(construction_named("spike").schema)
    assert columns["m"].tolist() == [1, 2, 3]


def test_a_grid_derives_tau_at_every_point() -> None:
    schema = construction_named("spike").schema
    fixed = {name: value for name, value in BASE.items() if name != "c"}
    columns = Grid(fixed, ({"c": ["0.1", "0.5"]},)).columns(schema)
    assert columns["tau"].tolist() == [Fraction(1, 5), Fraction(3, 5)]


def test_a_parameter_that_is_not_given_reads_as_the_derived_value() -> None:
    spike, level = (construction_named(name) for name in ("spike", "level"))
    assert spike.read({**BASE, "n": 1000}).tau == Fraction(1, 5)
    assert spike.read({**BASE, "n": 1000, "tau": "0.3"}).tau == Fraction(3, 10)
    assert level.read({**level.example, "levels": 3, "at": 1}).tau == Fraction(3, 4)


@pytest.mark.parametrize("name", ["spike", "recall"])
def test_parameters_can_be_sent_to_another_process(name: str) -> None:
    kind = construction_named(name)
    point = kind.read(kind.example)
    copy = pickle.loads(pickle.dumps(point))
    assert (type(copy), copy.parameters) == (kind, point.parameters)
