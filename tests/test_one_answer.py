"""Command, Python, map, card, atlas, sweep and report answer with the same words and digits."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import separatrix as sx
from cases import BASE
from separatrix.analysis import maps
from separatrix.analysis.cards.atlas import Atlas, AtlasRow
from separatrix.analysis.cards.construction_result import (
    GROUPED_LENGTHS,
    LITERAL_LENGTHS,
    ConstructionResult,
    compute_result,
    reference_points,
)
from separatrix.analysis.cards.outcomes import at_length
from separatrix.analysis.laws import Law
from separatrix.analysis.maps import boundary
from separatrix.analysis.search.points import PointQuestion
from separatrix.cli.application import app
from separatrix.constructions import CONSTRUCTIONS
from separatrix.mechanisms import Mechanism, mechanism_named
from separatrix.pages import reproduction_page
from separatrix.pages.standings import describe_growth
from separatrix.sweeps.plan import read_plan
from separatrix.sweeps.run import run
from separatrix.sweeps.store import frame, open_store
from sweep_tools import Inline

NUMBERS = ("distinguish", "margin", "bits")
CASES = (
    ("spike, ones", "softmax"),
    ("spike, ones", "linear"),
    ("spike, identity", "relu"),
    ("parity", "power:beta=4"),
    ("injectivity", "linear"),
    ("critical", "softmax"),
    ("averaging", "sigmoid"),
)
"""A margin that stays, one that falls, one below 0 by rounding, one of 0, and kernels of three kinds."""


def command(*words: str) -> Any:
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def asked(name: str) -> tuple[str, dict[str, object]]:
    point = reference_points()[name]
    return point.name, {key: value for key, value in point.parameters.as_json().items() if value is not None}


def words(parameters: dict[str, object]) -> list[str]:
    return [f"{name}={value}" for name, value in parameters.items()]


def stood(name: str, mechanism: Mechanism) -> ConstructionResult:
    found = compute_result(name, reference_points()[name], mechanism)
    assert isinstance(found, ConstructionResult)
    return found


def stored(construction: str, mechanism: str, parameters: dict[str, object], folder: Path) -> dict[str, Any]:
    """The cell that a sweep of this one point leaves in a store."""
    given = "\n".join(f"{name} = {json.dumps(value)}" for name, value in parameters.items())
    head = f'construction = "{construction}"\nmechanisms = ["{mechanism}"]\n'
    store = open_store(f"sqlite:///{folder / 'one.db'}", create=True)
    run(read_plan(f"{head}[[sweep]]\n[sweep.parameters]\n{given}\n"), store, Inline())
    (row,) = frame(store).to_dicts()
    return row


@pytest.mark.parametrize(("name", "mechanism"), CASES)
def test_one_verdict(name: str, mechanism: str, tmp_path: Path) -> None:
    construction, parameters = asked(name)
    told = command("verdict", construction, mechanism, *words(parameters))
    attends = mechanism_named(mechanism)
    card = stood(name, attends)
    (row,) = Atlas((AtlasRow(attends, (card,)),)).as_json()
    cell = stored(construction, mechanism, parameters, tmp_path)
    python = sx.verdict(construction, mechanism, **parameters)
    assert python.as_json() == told
    assert [each["verdict"] for each in (card.as_json(), row, cell)] == [told["verdict"]] * 3
    assert [each["engine"] for each in (card.as_json(), row, cell)] == [told["engine"]] * 3
    for number in NUMBERS:
        assert card.as_json()[number] == cell[number] == told[number], number
    assert (row["distinguish"], row["margin"]) == (told["distinguish"], told["margin"])


CLOSED = [(*case, "certified") for case in CASES if case[1] not in ("relu", "sigmoid")]
CLOSED += [(*case, "closed") for case in CASES if case[1] != "relu"]


@pytest.mark.parametrize(("name", "mechanism", "engine"), CLOSED)
def test_one_number_in_a_cell_of_a_map_by_each_engine(name: str, mechanism: str, engine: str) -> None:
    construction, parameters = asked(name)
    told = command("verdict", construction, mechanism, *words(parameters), "--engine", engine)
    m = int(str(parameters["m"]))
    tau = next(key for key in ("a1", "a", "gap", "b", "gamma", "spread") if key in parameters)
    value = Fraction(str(parameters[tau]))
    axes = {"m": f"{m}:{m + 2}:3", tau: f"{value}:{value + Fraction(1, 100)}:2"}
    for number in NUMBERS:
        found = maps.map(construction, [mechanism], {**parameters, **axes}, of=number, engine=engine)
        (row,) = [i for i, each in enumerate(found.y.values) if each in (m, value)]
        (column,) = [i for i, each in enumerate(found.x.values) if each in (m, value)]
        here = found.as_json()["layers"][0]["values"][row][column]
        if engine == "certified":
            assert here == told[number], number
        else:
            assert here == (told[number] if told[number] is None else pytest.approx(told[number], rel=1e-14))


def digits(law: Law) -> tuple[object, ...]:
    return law.exponent, list(law.interval), law.power_law


GROWING = (
    *CASES,
    ("spike, ones", "relu"),
    ("spike, ones", "sigmoid"),
    ("rough", "linear"),
    ("plain", "window:size=64"),
)


@pytest.mark.parametrize(("name", "mechanism"), GROWING)
def test_one_law_of_growth(name: str, mechanism: str) -> None:
    construction, parameters = asked(name)
    attends = mechanism_named(mechanism)
    card = stood(name, attends)
    shown, law = card.as_json(), card.growth.law
    (row,) = Atlas((AtlasRow(attends, (card,)),)).as_json()
    assert row["margin_exponent"] == shown["margin_exponent"]
    lengths = GROUPED_LENGTHS if attends.takes_counts and reference_points()[name].has_groups else LITERAL_LENGTHS
    grown = words({**parameters, "n": lengths})
    if law is None:
        done = CliRunner().invoke(app, ["scaling", construction, mechanism, *grown])
        assert str(done.exception) == shown["margin_law"]
        assert describe_growth(card) == "–"
        return
    told = command("scaling", construction, mechanism, *grown)
    assert digits(law) == (told["exponent"], told["interval"], told["power_law"])
    assert [shown[f"margin_{each}"] for each in ("exponent", "exponent_interval", "is_power")] == [*digits(law)]
    unnamed = {False: "not a power law", None: "cannot tell"}
    assert shown["margin_law"] == (told["form"] or unnamed[told["power_law"]])
    assert shown["margin_lengths"] == [value["n_used"] for value in told["values"]]
    python = sx.scaling(construction, mechanism, **{**parameters, "n": lengths})
    assert digits(python.law) == digits(law)
    (line,) = sx.scaling(construction, [mechanism], {**parameters, "n": lengths})
    assert line.scaling is not None
    assert digits(line.scaling.law) == digits(law)
    assert law.name in reproduction_page.growth_section([line]).body


def test_the_law_of_the_issue_is_a_logarithm_everywhere() -> None:
    law = stood("spike, ones", mechanism_named("relu")).growth.law
    assert law is not None
    assert (law.name, law.power_law) == ("logarithm", False)
    still = stood("critical", mechanism_named("softmax")).growth.law
    assert still is not None
    assert still.name == "constant"


def test_one_nearest_admissible_n() -> None:
    fixed = {name: value for name, value in BASE.items() if name not in ("n", "a1")}
    point = {**fixed, "a1": "1.2"}
    kind = CONSTRUCTIONS["spike"]
    card = at_length(kind.read(BASE), 1060)
    searched = {**fixed, "a1": "0.5:1.5"}
    curve = boundary("spike", "softmax", searched, over="n=1060:2060:2", scan=3, tolerance="0.1")
    plane = maps.map("spike", ["softmax"], {**fixed, "n": "1060:2060:2", "a1": "0.5:1.5:2"})
    scaled = sx.scaling("spike", "linear", **point, n="1060:3060:3")
    (cells,) = read_plan(
        'construction = "spike"\nmechanisms = ["softmax"]\n[[sweep]]\n[sweep.parameters]\nn = "1060:2060:2"\n'
        + "\n".join(f"{name} = {json.dumps(value)}" for name, value in point.items())
    ).parts
    search = PointQuestion(mechanism_named("softmax"), mechanism_named("linear"), kind, {"n": 1060})
    found = {
        "card": None if card is None else card.n,
        "curve": curve.over.values[0],
        "map": None if plane.grid.n is None else plane.grid.n.ravel()[0],
        "scaling": scaled.values[0].n,
        "sweep": int(next(iter(cells.parameters[0]))["n"]),
        "search": search.draw(lambda *_: 0)["n"],
    }
    assert found == dict.fromkeys(found, 1100)


@pytest.mark.parametrize("engine", ["certified", "closed"])
def test_one_side_of_a_level(engine: str) -> None:
    fixed = {name: value for name, value in BASE.items() if name != "a1"}
    (crossing,) = sx.boundary("spike", "softmax", **fixed, a1="0.5:1.5", probability="0.99", engine=engine).crossings
    ends = (crossing.lo.value, crossing.hi.value)
    said = [sx.verdict("spike", "softmax", **fixed, a1=end, engine=engine).word for end in ends]
    assert said == ["partial", "distinguishes"]
