"""The reference point: what it gives where nothing was given, and what it leaves alone."""

from __future__ import annotations

import pytest

import separatrix as sx
from separatrix.analysis.cards.construction_result import reference_points
from separatrix.constructions import CONSTRUCTIONS
from separatrix.constructions.reference import read_with_defaults, reference_defaults
from separatrix.core.parameters import UsageError


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_every_construction_has_a_reference_point_and_it_is_that_of_tables(name: str) -> None:
    kind = CONSTRUCTIONS[name]
    construction, missing = read_with_defaults(kind, {})
    assert set(missing) == set(kind.example)
    assert construction.parameters in [point.parameters for point in reference_points().values() if point.name == name]


def test_defaults_stay_where_all_that_has_none_was_given() -> None:
    rough = CONSTRUCTIONS["rough"]
    required = {name: rough.example[name] for name in ("n", "d", "m", "a0", "a1", "b", "c")}
    construction, missing = read_with_defaults(rough, required)
    assert missing == {}
    assert construction.parameters.noise == 0
    assert read_with_defaults(rough, {})[1]["noise"] == "0.02"


def test_a_length_that_is_taken_fits_what_was_given() -> None:
    spike = CONSTRUCTIONS["spike"]
    assert reference_defaults(spike, {"d": 9})["n"] == 1001
    assert "n" not in reference_defaults(spike, {"d": 9}, axes=("n",))
    assert read_with_defaults(spike, {"d": 9})[0].n == 1001
    with pytest.raises(UsageError, match=r"n=1000 is not a multiple of d-2=7; try n=994 or n=1001$"):
        read_with_defaults(spike, {"d": 9, "n": 1000})


def test_what_was_not_given_is_blamed_only_where_it_is_to_blame() -> None:
    spike = CONSTRUCTIONS["spike"]
    with pytest.raises(UsageError, match=r"a1=0.005; not given, so taken from the reference point: a0=0.01$"):
        read_with_defaults(spike, {"a1": "0.005"})
    with pytest.raises(UsageError, match=r"spike has no parameter q; it has: [a-z01, ]+$"):
        read_with_defaults(spike, {"q": 1})


def test_every_question_says_what_it_took() -> None:
    defaults = {"d": "102", "m": "12", "a0": "0.01", "b": "0.2", "c": "0.1"}
    plane = sx.map("spike", "softmax", a1="0.6:0.8:3", n="1e3:1e6:2:log")
    assert plane.as_json()["taken"] == defaults
    explicit = sx.map("spike", "softmax", a1="0.6:0.8:3", n="1e3:1e6:2:log", **defaults)
    assert (plane.layers[0].values == explicit.layers[0].values).all()
    assert explicit.as_json()["taken"] == {}
    edge = sx.boundary("spike", "softmax", a1="0.5:1.5", scan=9)
    assert edge.as_json()["taken"] == {"n": "1000", **defaults}
    assert edge.crossings == sx.boundary("spike", "softmax", a1="0.5:1.5", scan=9, n=1000, **defaults).crossings
    law = sx.scaling("spike", "linear", n="1e3:1e9:4:log")
    assert law.as_json()["taken"] == {**defaults, "a1": "1.2"}
    assert sx.readers("spike", "linear", n=2000).as_json()["taken"]["a1"] == "1.2"


def test_what_is_searched_for_and_what_costs_take_no_length_or_width() -> None:
    critical = sx.scaling("spike", "linear", m="50000:80000:3", of="critical_n", a1=3, b="0.05")
    assert "n" not in critical.as_json()["taken"]
    cost = sx.scaling("spike", "softmax", n="64:256:3:log", of="flops")
    assert cost.as_json()["taken"] == {}
