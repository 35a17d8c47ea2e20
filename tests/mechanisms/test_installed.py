"""Mechanisms that other packages register: by name, with parameters, listed, and no name twice."""

from __future__ import annotations

import inspect
import json
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from separatrix.cli import main
from separatrix.core.parameters import UsageError
from separatrix.mechanisms import Mechanism, load, mechanism_from

TOY = """
import torch
from separatrix.mechanisms import Mechanism
from separatrix.core.parameters import Parameters

class Size(Parameters):
    owner = "toy"
    size: int = 2

class Toy(Mechanism):
    name, formula, source, family = "toy", "v", "toys", "toys"
    schema = Size
    takes_counts = False

    def definition(self, q, k, v, counts=None, causal=False):
        return self.parameters.size * v

def shifted(q, k, v, shift=1.0, mode="up"):
    return v + shift if mode == "up" else v - shift

class Made:
    def __init__(self, times=1, odd=False):
        self.times, self.odd = times, odd

    def __call__(self, q, k, v):
        return (self.times + self.odd) * v

class Renamed(Toy):
    name = "other"

instance = Made(3)
"""

Register = Callable[..., None]


@pytest.fixture
def register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Register]:
    """Install packages that register these names; they are what is found until the test ends."""
    (tmp_path / "toys_of_a_package.py").write_text(TOY)
    monkeypatch.syspath_prepend(tmp_path)

    def install(package: str, **names: str) -> None:
        folder = tmp_path / f"{package}-1.5.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.5\n")
        lines = (f"{name} = toys_of_a_package:{attribute}" for name, attribute in names.items())
        (folder / "entry_points.txt").write_text("\n".join(["[separatrix.mechanisms]", *lines]))
        forget()

    yield install
    sys.modules.pop("toys_of_a_package", None)
    forget()


def forget() -> None:
    """Look for packages anew; collecting doctests makes a second module of a name, with its own memory."""
    for module in (vars(load), inspect.unwrap(mechanism_from).__globals__):
        module["_plugins"].cache_clear()


def test_the_older_package_that_finds_packages_may_be_loaded(register: Register) -> None:
    """Dask imports it where Python is old; from then on all that is found is of its classes."""
    pytest.importorskip("importlib_metadata")
    register("toys", toy="Toy")
    assert factor(mechanism_from("toy:size=3")) == 3.0


def factor(mechanism: Mechanism) -> float:
    one = torch.ones(1, 1, 2, 3, dtype=torch.float64)
    causal = mechanism.causality.name == "ALWAYS"
    return mechanism(one, one, one, causal=causal).flatten()[0].item()


def test_they_take_parameters(register: Register) -> None:
    register("toys", toy="Toy", shifted="shifted", made="Made", fixed="instance")
    expected = {
        "toy": 2.0,
        "toy:size=3": 3.0,
        "shifted": 2.0,
        "shifted:shift=0.25": 1.25,
        "shifted:shift=0.25,mode=down": 0.75,
        "made:times=5": 5.0,
        "made:times=5,odd=yes": 6.0,
        "fixed": 3.0,
    }
    found = {text: mechanism_from(text) for text in expected}
    assert {text: factor(each) for text, each in found.items()} == expected
    assert all(each.spelled == text for text, each in found.items())
    assert factor(pickle.loads(pickle.dumps(found["shifted:shift=0.25"]))) == 1.25
    assert found["shifted:shift=0.25"].source == "toys_of_a_package"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("toi", r"there is no mechanism toi \(did you mean toy\?\); separatrix list mechanisms has all \d+"),
        ("toy:sise=3", "sise"),
        ("toy:size=x", "size"),
        ("shifted:shft=1", r"no parameter of shifted called shft \(did you mean shift\?\)"),
        ("fixed:times=4", "no parameter of fixed called times|fixed takes no parameters"),
        ("renamed", "renamed: toys 1.5, toys_of_a_package:Renamed calls itself other"),
        ("gone", "toys_of_a_package has no Gone"),
        ("toi:attend", r"there is no module toi here and no mechanism of that name \(did you mean toy\?\)"),
    ],
)
def test_what_is_wrong_is_one_line(register: Register, text: str, complaint: str) -> None:
    names = {"toy": "Toy", "shifted": "shifted", "made": "Made", "fixed": "instance"}
    register("toys", **names, renamed="Renamed", gone="Gone")
    with pytest.raises(UsageError, match=complaint) as refused:
        mechanism_from(text)
    assert "\n" not in str(refused.value)


def test_a_clash_of_names_is_refused(register: Register) -> None:
    register("toys", toy="Toy", softmax="shifted")
    register("more-toys", toy="Made")
    clash = r"toy is the name of several mechanisms, of (more-)?toys 1.5, .* and of (more-)?toys 1.5, .*"
    with pytest.raises(UsageError, match=clash):
        mechanism_from("toy:size=3")
    with pytest.raises(UsageError, match=r"softmax is .* of separatrix itself and of toys 1\.5, toys_of_a_"):
        mechanism_from("softmax")
    assert mechanism_from("linear").spelled == "linear"


def test_they_are_listed_without_being_loaded(
    register: Register, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    register("toys", toy="Toy")
    monkeypatch.setattr(sys, "argv", ["separatrix", "list", "mechanisms", "--json"])
    with pytest.raises(SystemExit):
        main()
    last = json.loads(capsys.readouterr().out)[-1]
    assert (last["name"], last["source"]) == ("toy", "toys 1.5, toys_of_a_package:Toy")
    assert "toys_of_a_package" not in sys.modules


def test_the_same_package_seen_twice_is_no_clash(register: Register, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a package is both installed and on the path."""
    register("toys", toy="Toy")
    register("toys-again", toy="Toy")
    assert mechanism_from("toy").spelled == "toy"
