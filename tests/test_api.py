"""The Python API: what is a parameter and what an option is never in doubt."""

from __future__ import annotations

import builtins
import inspect
import json
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import separatrix as sx
from cases import BASE
from separatrix.cli.boundary import boundary as boundary_command
from separatrix.cli.scaling import scaling as scaling_command

NAMES = [name for name in dir(sx) if not name.startswith("_")]
FUNCTIONS = [each for each in (getattr(sx, name) for name in NAMES) if inspect.isfunction(each)]
OPEN = [each for each in FUNCTIONS if any(p.kind is p.VAR_KEYWORD for p in inspect.signature(each).parameters.values())]
"""Those that take parameters by name, beside options of their own."""


def _options(function: Callable[..., Any]) -> set[str]:
    known = inspect.signature(function).parameters.values()
    return {each.name for each in known if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)}


def test_the_functions_that_take_parameters_are_found() -> None:
    assert {each.__name__ for each in OPEN} == {
        *("boundary", "learn", "map", "prove", "readers", "results", "scaling", "verdict", "weights")
    }


@pytest.mark.parametrize("function", OPEN, ids=lambda each: each.__name__)
@pytest.mark.parametrize("kind", [*sx.CONSTRUCTIONS.values(), *sx.MECHANISMS.values()], ids=lambda k: k.name)
def test_no_option_is_called_as_a_parameter_is(function: Callable[..., Any], kind: Any) -> None:
    """A new construction or mechanism gives its parameters other names, or the option gets another."""
    assert not _options(function) & kind.schema.model_fields.keys()


def test_noise_is_the_parameter_of_the_construction() -> None:
    found = sx.verdict("majority", "linear", n=31, m=7, noise="5")
    assert found.construction.parameters.noise == 5
    assert found.noise is None
    assert found.outcome.distinguish == pytest.approx(0.0346, abs=1e-4)
    both = sx.readers("majority", "linear", n=31, m=7, noise="5", noise_sd="0.1")
    assert both.construction.parameters.noise == 5
    assert both.fixed.noise == Fraction(1, 10)
    assert both.fixed.outcome.p1 == found.outcome.p1


def test_parameters_of_rough_are_its_own() -> None:
    sampling = sx.Sampling(draws=4)
    found = sx.verdict("rough", "linear", **{**BASE, "n": 103}, noise="0.1", seed=3, sampling=sampling)
    assert (found.construction.parameters.noise, found.construction.parameters.seed) == (Fraction(1, 10), 3)


def test_the_level_is_the_parameter_of_the_construction() -> None:
    asked = {"n": 100, "m": 12, "levels": 5, "gap": "0.5:3"}
    crossings = [sx.boundary("level", "softmax", **asked, at=at, probability="0.9", scan=15).crossings for at in (1, 3)]
    assert crossings[0] != crossings[1]


def test_a_mapping_gives_parameters_only() -> None:
    assert sx.verdict("spike", "linear", BASE).as_json() == sx.verdict("spike", "linear", **BASE).as_json()
    for name in ("engine", "delta", "sampling", "parameters", "named", "mechanism"):
        with pytest.raises(sx.UsageError, match=f"spike has no parameter {name}"):
            sx.verdict("spike", "linear", {**BASE, name: "auto"})
    with pytest.raises(sx.UsageError, match="n is given twice, in the mapping and by name"):
        sx.boundary("spike", "linear", {**BASE, "a1": "0.5:1.5"}, n=1000)


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        (lambda: sx.verdict("spike", "softmax", **BASE, noise="0.5"), "noise is an option; write noise_sd=0.5"),
        (lambda: sx.readers("spike", "softmax", **BASE, noise=2), "noise is an option; write noise_sd=2"),
        (
            lambda: sx.boundary("spike", "softmax", **{**BASE, "a1": "0.5:1.5"}, at="0.9"),
            "at is an option; write probability=0.9",
        ),
        (lambda: sx.verdict(3, "softmax", n=3), "3 is not the name of a construction"),  # type: ignore[arg-type]
    ],
)
def test_an_option_of_old_is_told_by_its_new_name(asked: Callable[[], object], complaint: str) -> None:
    with pytest.raises(sx.UsageError, match=complaint):
        asked()


def test_commands_give_a_name_to_the_construction_that_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    boundary_command("level", "softmax", ["n=100", "m=12", "gap=0.5:3", "at=3"], scan=15, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    assert (shown["at"], shown["parameters"]["at"]) == ("0.5", "3")
    with pytest.raises(sx.UsageError, match="at is an option; write `at` 9/10"):
        boundary_command("plain", "softmax", ["n=100", "m=12", "peak=1:3", "at=9/10"])
    with pytest.raises(sx.UsageError, match="seed is an option; write `seed` 3"):
        scaling_command("plain", "softmax", ["n=10:1000:3", "m=12", "seed=3"])


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_every_argument_of_a_public_function_is_explained(function: Callable[..., Any]) -> None:
    _, _, explained = (inspect.getdoc(function) or "").partition("**Arguments:**")
    listed = re.findall(r"^- (`\w+`(?:, `\w+`)*): ", explained, re.MULTILINE)
    assert sorted(re.findall(r"\w+", " ".join(listed))) == sorted(inspect.signature(function).parameters)


def test_public_names_are_listed() -> None:
    assert {*sx.__all__, "map"} == set(NAMES)
    assert {"atlas", "bench", "boundary", "map", "readers", "scaling", "verdict"} <= {
        each.__name__ for each in FUNCTIONS
    }
    assert not {*sx.__all__} & {*dir(builtins)}
    here: dict[str, Any] = {}
    exec("from separatrix import *", here)
    assert here["verdict"] is sx.verdict
    assert "map" not in here


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_every_public_function_shows_how_it_is_called(function: Callable[..., Any]) -> None:
    assert re.search(rf"(>>> |sx\.|`).*\b{function.__name__}\(", inspect.getdoc(function) or "")


AROUND = {name: value for name, value in BASE.items() if name not in ("n", "a1")}


@pytest.mark.parametrize(
    ("a1", "n"),
    [
        (np.linspace(0.5, 1.5, 5), [1000, 1e6, 10**18]),
        ([Fraction(1, 2), "0.75", 1, np.float32(1.25), 1.5], (1000, np.int64(10**6), 10**18)),
        ("0.5:1.5:5", "1e3,1e6,1e18"),
    ],
)
def test_lists_and_arrays_are_axes(a1: object, n: object) -> None:
    found = sx.map("spike", "softmax", AROUND, a1=a1, n=n)
    assert found.x.values == (Fraction(1, 2), Fraction(3, 4), 1, Fraction(5, 4), Fraction(3, 2))
    assert (found.y.values, found.y.log) == ((1000, 10**6, 10**18), True)
    for row, column in ((0, 1), (2, 4)):
        chosen = found.grid.at((row, column))
        one = sx.verdict("spike", "softmax", {**AROUND, **chosen}, engine="closed")
        assert found.layers[0].values[row, column] == one.outcome.distinguish


def test_an_array_of_lengths_is_whole_numbers() -> None:
    found = sx.scaling("spike", "linear", {**AROUND, "a1": "1.2"}, n=np.logspace(3, 9, 8))
    assert [int(value.x) == value.x for value in found.values] == [True] * 8
    assert found.law.exponent == pytest.approx(-1, abs=1e-6)


def test_an_array_that_is_evenly_spaced_is_the_range_it_was_rounded_from() -> None:
    around, n = {**AROUND, "n": "1e3:1e18:3:log"}, 80
    array, typed = (sx.map("spike", "softmax", around, a1=a1) for a1 in (np.linspace(0.5, 1.5, n), f"0.5:1.5:{n}"))
    assert array.as_json() == typed.as_json()
    assert np.isfinite(array.layers[0].values).all()
    uneven = np.linspace(0.5, 1.5, n)
    uneven[7] += 1e-12
    assert sx.map("spike", "softmax", around, a1=uneven).y.values[7] == Fraction(repr(float(uneven[7])))


def test_a_pair_is_a_range_to_search() -> None:
    pair, typed = (sx.boundary("spike", "softmax", AROUND, n=1000, a1=a1) for a1 in ((0.5, 1.5), "0.5:1.5"))
    assert pair == typed


@pytest.mark.parametrize(
    ("a1", "complaint"),
    [
        ([], "a1 has no values; an axis needs at least 2"),
        ([1], "a1=1, has one point"),
        ([2, 1], "a1=2,1 runs backwards; write its values in growing order"),
        ([1, 3, 2, 4], "a1=1,3,2,4 has 2 after 3; write the values of an axis in growing order"),
        (np.zeros((2, 2)), "a1 has 2 dimensions"),
        ([1, float("nan")], "a1=nan is not a finite number"),
        ([1, "two"], "a1=two is not a number"),
        ("1,,two", "a1=two is not a number"),
        (range(2_000_000), "a1 has 2,000,000 points"),
    ],
)
def test_an_axis_that_is_none_is_refused(a1: object, complaint: str) -> None:
    with pytest.raises(sx.UsageError, match=complaint):
        sx.map("spike", "softmax", AROUND, a1=a1, n="1e3:1e6:3:log")


def test_several_mechanisms_are_written_as_on_the_command_line() -> None:
    axes = {"a1": [0.5, 1, 1.5], "n": [1000, 10**6]}
    typed, listed = (
        sx.map("spike", each, AROUND, **axes)
        for each in ("softmax,power:beta=4", ("softmax", sx.MECHANISMS["power"](beta=4)))
    )
    assert [layer.mechanism for layer in typed.layers] == ["softmax", "power:beta=4"]
    assert typed.as_json() == listed.as_json()
    timed = sx.bench("softmax,linear", lengths=[16]).costs
    assert [each.mechanism for each in timed] == ["softmax", "linear"]
    found = sx.atlas("softmax,linear", ["averaging", "spikes"])
    assert [row.mechanism.spelled for row in found.mechanisms] == ["softmax", "linear"]
    assert found.constructions == ("averaging", "spikes")
    with pytest.raises(sx.UsageError, match="name a mechanism"):
        sx.bench("")


@pytest.mark.parametrize("several", ["softmax,power:beta=4", ["softmax", sx.MECHANISMS["power"](beta=4)]])
def test_verdicts_on_several_mechanisms_are_those_on_each(several: Any) -> None:
    found: Any = sx.verdict("spike", several, n=10**6)
    assert isinstance(found, sx.Verdicts)
    assert found.as_json() == [sx.verdict("spike", each, n=10**6).as_json() for each in ("softmax", "power:beta=4")]
    assert [each.word for each in found] == ["distinguishes", "blind"]
    assert (len(found), found["power:beta=4"], found[0].mechanism.spelled) == (2, found[1], "softmax")
    assert isinstance(sx.verdict("spike", ["softmax"]), sx.Verdicts)
    assert isinstance(sx.verdict("spike", "softmax"), sx.Verdict)
    with pytest.raises(sx.UsageError, match="name a mechanism"):
        sx.verdict("spike", [])


def test_a_mechanism_without_an_answer_leaves_the_others_theirs() -> None:
    found = sx.verdict("spike", ["gla", "linear"], engine="closed")
    assert [type(each).__name__ for each in found] == ["RefusedVerdict", "Verdict"]
    assert found.as_json()[0]["verdict"] == "none"
    assert found.to_frame()["verdict"].to_list() == [None, "blind"]
    assert found.plot().texts[0].get_text() == "not computed"
    with pytest.raises(sx.SeparatrixError, match="gla"):
        sx.verdict("spike", ["gla", "delta"], engine="closed")


@pytest.mark.parametrize("several", ["softmax,linear", ("softmax", "linear")])
def test_growth_of_several_mechanisms_is_that_of_each(several: Any) -> None:
    n = [10**3, 10**4, 10**5, 10**6]
    found: Any = sx.scaling("spike", several, n=n)
    assert isinstance(found, sx.Scalings)
    for each in ("softmax", "linear"):
        one = sx.scaling("spike", each, n=n)
        assert found[each].scaling.as_json() == one.as_json()
        assert found.to_frame().filter(mechanism=each)["margin"].to_list() == [v.y for v in one.values]
    assert found.as_json()["parameters"] == {"n": "1000,10000,100000,1000000"}
    assert (found.parameter, len(found), found[1].mechanism) == ("n", 2, "linear")
    assert len(found.plot().lines) == 2
