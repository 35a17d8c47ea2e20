"""The Python API: what is a parameter and what an option is never in doubt."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import separatrix as sx
from cases import BASE
from separatrix.cli.boundary import boundary as boundary_command
from separatrix.cli.scaling import scaling as scaling_command

FUNCTIONS = [each for each in (getattr(sx, name) for name in sx.__all__) if inspect.isfunction(each)]
OPEN = [
    each
    for each in FUNCTIONS
    if any(p.kind is p.VAR_KEYWORD for p in inspect.signature(each).parameters.values())
]
"""Those that take parameters by name, beside options of their own."""


def _options(function: Callable[..., Any]) -> set[str]:
    known = inspect.signature(function).parameters.values()
    return {each.name for each in known if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)}


def test_the_functions_that_take_parameters_are_found() -> None:
    assert {each.__name__ for each in OPEN} == {
        *("boundary", "learn", "map", "readers", "results", "scaling", "verdict")
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
    crossings = [
        sx.boundary("level", "softmax", **asked, at=at, probability="0.9", scan=15).crossings for at in (1, 3)
    ]
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
        (
            lambda: sx.verdict("spike", "softmax", **BASE, noise="0.5"),
            "noise is an option; write noise_sd=0.5",
        ),
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
