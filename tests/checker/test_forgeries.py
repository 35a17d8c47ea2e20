"""Certificates forged with care: hashes made right again, ends that are true by themselves."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import separatrix as sx
from altered_documents import changed, check_or_refuse, leaves, put, without
from cases import BASE
from expectations import run
from separatrix.analysis.maps.boundary import certify_boundary
from separatrix.checker import check, check_boundary
from separatrix.constructions import construction_named
from separatrix.core.numbers import parse_exact
from separatrix.core.parameters import UsageError
from separatrix.exact.engines import EngineRefusal, certified
from separatrix.exact.engines.outcome import side_of_fractions
from separatrix.exact.verdicts import certify, write_certificate
from separatrix.exact.verdicts.certificate import digest
from separatrix.exact.verdicts.question import question
from separatrix.mechanisms import mechanism_named

Json = Any
Forgery = Callable[[Json], None]

FIXED: dict[str, Any] = {"m": 12, "a0": "0.01", "b": "0.2"}
SMALL: dict[str, Any] = {"n": 1000, "d": 12, "c": "0.1"}
WHOLE = ("n", "d", "m", "order")
ASKED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a1": ("spike", "softmax", {**FIXED, "a1": "0.5:1.5", "n": 1003, "d": 12, "c": "0.1"}),
    "c": ("spike", "softmax", {**FIXED, "a1": "0.7", "n": 1000, "d": 12, "c": "0.01:0.5"}),
    "tau given": ("spike", "softmax", {**FIXED, "a1": "0.7", "n": 1000, "d": 12, "c": "0.01:0.5", "tau": "0.2"}),
    "d": ("spike", "softmax", {**FIXED, "a1": "0.7", "n": 1001, "d": "4:30", "c": "0.1"}),
    "n": ("spike", "softmax", {**FIXED, "a1": "0.8", "n": "1e3:1e12", "d": 12, "c": "0.1"}),
    "m": ("spike", "softmax", {**FIXED, "a1": "0.7", "n": 1000, "d": 12, "c": "0.1", "m": "1:100000"}),
    "tau": ("cross", "softmax", {**FIXED, "a1": "1.2", **SMALL, "r_Q": 1, "tau": "0.1:2"}),
    "beta": ("spike", "power", {**FIXED, "a1": "1.2", "n": 1000, "d": 12, "c": "0.1", "beta": "1:12"}),
    "order": ("spike", "taylor", {**FIXED, "a1": "1.2", "n": 1000, "d": 12, "c": "0.1", "order": "1:20"}),
    "plain": ("plain", "linear", {"n": "20:400", "m": 12}),
}


@cache
def _kept(case: str) -> Json:
    construction, mechanism, parameters = ASKED[case]
    return certify_boundary(sx.boundary(construction, mechanism, **parameters))


def boundary_of(case: str) -> Json:
    """A fresh copy of a true certificate."""
    return copy.deepcopy(_kept(case))


def signed(document: Json) -> Json:
    """With every hash made right again, those of the ends first."""
    if not isinstance(document, dict):
        return document
    body = {name: value for name, value in document.items() if name != "sha256"}
    if isinstance(body.get("crossings"), list):
        body["crossings"] = [
            {name: signed(value) for name, value in each.items()} if isinstance(each, dict) else each
            for each in body["crossings"]
        ]
    return {**body, "sha256": digest(body)}


def mechanism_word(stated: Json) -> str:
    settings = ",".join(f"{name}={value}" for name, value in stated.items() if name != "name")
    return f"{stated['name']}:{settings}" if settings else str(stated["name"])


def at_point(end: Json, **changes: Any) -> Json:
    """A true certificate of the point of an end with some parameters changed."""
    own = {name: changes.pop(name) for name in list(changes) if name in end["mechanism"]}
    construction = construction_named(changes.pop("construction", end["construction"]))
    values = {**end["parameters"], **changes}
    mechanism = mechanism_named(mechanism_word({**end["mechanism"], **own}))
    return certify(construction.read(values), mechanism, Fraction(end["delta"]))[1]


@pytest.mark.parametrize("case", ASKED)
def test_the_statement_says_what_moves_what_is_fixed_and_which_way(case: str) -> None:
    document = boundary_of(case)
    report = check_boundary(document)
    assert report.failed == []
    said, level, moving = " ".join(report.statement), document["at"], document["parameter"]
    assert f"{document['mechanism']['name']} " in said
    moves = {"c": "c moves, and tau with it", "d": "d moves, and n with it"}.get(case, f"{moving} alone moves")
    assert f"on {document['construction']}, where {moves}." in said
    for crossing in document["crossings"]:
        word = "rises" if crossing["direction"] == "up" else "falls"
        assert f"it {word} through {level} somewhere between the two" in said
        for end in (crossing["lo"], crossing["hi"]):
            values = {**end["mechanism"], **end["parameters"]}
            for name, value in values.items():
                assert name == "name" or f"{name}={value}" in said, name
    assert "Not claimed: " in said
    assert is_true(document)


def test_rules_are_stated_where_they_are_used() -> None:
    said = {case: " ".join(check_boundary(boundary_of(case)).statement) for case in ASKED}
    rule = "tau is c + 0.1."
    assert {case for case, text in said.items() if rule in text} == {"a1", "c", "d", "n", "m", "beta", "order"}
    moved = "n is the multiple of d-2 nearest to "
    assert {case for case, text in said.items() if moved in text} == {"a1", "d"}
    assert f"{moved}1003." in said["a1"]
    assert "n=1000" in said["a1"]


def is_true(document: Json) -> bool:
    """What an accepted certificate states, by the certified engine, from what is stated once for all ends."""
    moving, level = document["parameter"], parse_exact(document["at"])
    given = {name: value for name, value in document["parameters"].items() if value is not None}
    asked = question(document["construction"], mechanism_word(document["mechanism"]), given, (moving,))
    if asked.is_own(moving):
        asked = question(document["construction"], document["mechanism"]["name"], given, (moving,))
    last = None
    for crossing in document["crossings"]:
        sides = []
        for end in (crossing["lo"], crossing["hi"]):
            value = parse_exact({**end["mechanism"], **end["parameters"]}[moving])
            chosen = {moving: int(value) if moving in WHOLE else value}
            point, mechanism = asked.point(chosen), asked.mechanism(chosen)
            if certify(point, mechanism, Fraction(end["delta"]))[1]["parameters"] != end["parameters"]:
                return False
            count = certified.count(point, mechanism)
            sides.append((value, side_of_fractions(count.low.p0, count.low.only, point.m, level)))
        (lo, below), (hi, above) = sides
        rises = crossing["direction"] == "up"
        if not lo < hi or (below, above) != ((-1, 1) if rises else (1, -1)):
            return False
        if last is not None and (last[0] > lo or last[1] == rises):
            return False
        last = (hi, rises)
    return True


def _values(document: Json) -> list[Any]:
    """Of the moving parameter, at every end."""
    ends = [crossing[name] for crossing in document["crossings"] for name in ("lo", "hi")]
    return [{**end["mechanism"], **end["parameters"]}[document["parameter"]] for end in ends]


def _end(document: Json, crossing: int = 0, name: str = "hi") -> Json:
    return document["crossings"][crossing][name]


def _far_tau(document: Json) -> None:
    """tau moves with c, but not as c + 0.1."""
    document["crossings"][0]["hi"] = at_point(_end(document), tau="0.05")


def _fixed_tau_moves(document: Json) -> None:
    document["crossings"][0]["lo"] = at_point(_end(document, name="lo"), tau="0.9")


def _far_n(document: Json) -> None:
    end = _end(document)
    document["crossings"][0]["hi"] = at_point(end, n=1000 * end["parameters"]["n"])


def _other_n_asked(document: Json) -> None:
    document["parameters"]["n"] = 5000


def _twice(document: Json) -> None:
    document["crossings"].append(document["crossings"][0])


def _twice_about(document: Json) -> None:
    """The same crossing again, with a lower end a little further out."""
    again = copy.deepcopy(document["crossings"][0])
    again["lo"] = at_point(again["lo"], a1="0.6")
    document["crossings"].insert(0, again)


def _turned_round(document: Json) -> None:
    """The crossing a second time, as if it came back."""
    one = document["crossings"][0]
    document["crossings"].append({"direction": "down", "lo": one["hi"], "hi": one["lo"]})


def _foreign(case: str) -> Forgery:
    def forge(document: Json) -> None:
        document["crossings"].append(boundary_of(case)["crossings"][0])

    return forge


def _other_construction(document: Json) -> None:
    for crossing in document["crossings"]:
        crossing["hi"] = boundary_of("plain")["crossings"][0]["hi"]


def _changed_throughout(name: str, value: Any) -> Forgery:
    """One end at another value of what is fixed."""

    def forge(document: Json) -> None:
        document["crossings"][0]["hi"] = at_point(_end(document), **{name: value})

    return forge


def _head(name: str, value: Any) -> Forgery:
    def forge(document: Json) -> None:
        document[name] = value

    return forge


def _head_parameter(name: str, value: Any) -> Forgery:
    def forge(document: Json) -> None:
        document["parameters"][name] = value

    return forge


def _backwards(document: Json) -> None:
    document["crossings"].reverse()


def _one_left_out(document: Json) -> None:
    """Two rises in a row: there must be a fall between them that is not stated."""
    del document["crossings"][1]


def _same_direction(document: Json) -> None:
    for crossing in document["crossings"]:
        crossing["direction"] = "up"


def _other_delta(document: Json) -> None:
    document["crossings"][0]["hi"] = at_point({**_end(document), "delta": "0.02"})


def _level_at_an_end(document: Json) -> None:
    """P is the level itself at one end: reached, not passed."""
    p0, only = (Fraction(_end(document)["neuron"][name]) for name in ("p0", "only_d1"))
    m = _end(document)["parameters"]["m"]
    level = (1 - p0) ** m - (1 - p0 - only) ** m
    document["at"] = str(level)


def _own_setting_moves(document: Json) -> None:
    document["crossings"][0]["hi"] = at_point(_end(document), temperature="2")


def _deep(part: str, name: str) -> Forgery:
    """Lists within lists where a number belongs."""

    def forge(document: Json) -> None:
        value: Json = []
        for _ in range(200):
            value = [value]
        document[part][name] = value

    return forge


def _no_end(value: Json) -> Forgery:
    def forge(document: Json) -> None:
        document["crossings"][0]["lo"] = value

    return forge


FORGERIES: dict[str, tuple[str, Forgery]] = {
    "tau moves freely with c": ("c", _far_tau),
    "a given tau moves": ("tau given", _far_tau),
    "a fixed tau moves": ("a1", _fixed_tau_moves),
    "n moves freely with d": ("d", _far_n),
    "another n was asked for": ("d", _other_n_asked),
    "another n was asked for, d being fixed": ("a1", _other_n_asked),
    "n is fixed and moves": ("a1", _changed_throughout("n", 1010)),
    "m is fixed and moves": ("a1", _changed_throughout("m", 13)),
    "b is fixed and moves": ("a1", _changed_throughout("b", "0.21")),
    "form is fixed and moves": ("a1", _changed_throughout("form", "identity")),
    "the temperature moves": ("a1", _own_setting_moves),
    "beta is stated to be fixed": ("beta", _head("mechanism", {"name": "power", "beta": "2"})),
    "a crossing twice": ("a1", _twice),
    "a crossing about twice": ("a1", _twice_about),
    "a crossing and the same turned round": ("a1", _turned_round),
    "a crossing of another mechanism": ("a1", _foreign("beta")),
    "a crossing of another construction": ("n", _foreign("plain")),
    "a crossing of another parameter": ("a1", _foreign("c")),
    "ends of two constructions": ("n", _other_construction),
    "another construction in the head": ("n", _head("construction", "cross")),
    "another mechanism in the head": ("a1", _head("mechanism", {"name": "linear"})),
    "another parameter": ("a1", _head("parameter", "b")),
    "a parameter that is a word": ("a1", _head("parameter", "form")),
    "a parameter that is the name": ("a1", _head("parameter", "name")),
    "another format": ("a1", _head("format", "separatrix certificate")),
    "a setting stated otherwise": ("a1", _head_parameter("b", "0.3")),
    "a whole number as a float": ("a1", _head_parameter("m", 12.0)),
    "a number as a fraction": ("a1", _head_parameter("b", "1/5")),
    "one as true": ("a1", _head_parameter("m", True)),
    "tau stated as not given": ("tau given", _head_parameter("tau", None)),
    "tau stated as given": ("c", _head_parameter("tau", "0.2")),
    "tau stated as not given where there is no rule": ("plain", _head_parameter("tau", None)),
    "nothing where a number belongs": ("a1", _head_parameter("b", None)),
    "lists where a number belongs": ("a1", _deep("parameters", "b")),
    "lists where a setting belongs": ("a1", _deep("mechanism", "temperature")),
    "crossings out of order": ("d", _backwards),
    "a crossing left out between two": ("d", _one_left_out),
    "two directions the same": ("d", _same_direction),
    "two deltas": ("a1", _other_delta),
    "a level that is only reached": ("a1", _level_at_an_end),
    "a level of two": ("a1", _head("at", "2")),
    "a level in other digits": ("a1", _head("at", "٠.٥")),
    "a level as a float": ("a1", _head("at", 0.5)),
    "an end that is a boundary": ("a1", _no_end({"format": "separatrix boundary certificate", "version": 3})),
    "an end that is nothing": ("a1", _no_end(None)),
    "crossings that are none": ("a1", _head("crossings", {})),
    "version true": ("a1", _head("version", True)),
    "version 3.0": ("a1", _head("version", 3.0)),
    "version 4": ("a1", _head("version", 4)),
}


@pytest.mark.parametrize(("case", "forge"), FORGERIES.values(), ids=FORGERIES)
def test_a_forged_boundary_is_refused(case: str, forge: Forgery) -> None:
    document = boundary_of(case)
    forge(document)
    report = check_boundary(signed(document))
    assert not report.holds
    assert report.failed
    assert report.statement == ()
    assert all(len(line) < 160 and line.isprintable() for line in report.failed)


def test_a_certificate_of_another_version_is_to_be_made_again() -> None:
    document = boundary_of("a1")
    old = {name: document[name] for name in ("format", "parameter", "at", "crossings")}
    (line,) = check_boundary(signed({**old, "version": 1})).failed
    assert "version is not 3" in line
    assert "make it again with --certificate" in line


def test_too_many_wide_ends_are_refused_before_any_is_verified() -> None:
    """Each would take seconds."""
    document, m = boundary_of("m"), 0
    wide = _end(document)
    least = {"label": 0, "signs": [1, 1, 1], "row": "spike", "own_sign": 0, "least": 0}
    assert least.keys() == wide["thresholds"][0].keys()
    wide["parameters"].update(d=200_003, n=200_001)
    document["parameters"].update(d=200_003, n=200_001)
    crossings = []
    for i in range(30):
        ends = []
        for _ in range(2):
            m += 1
            ends.append({**wide, "parameters": {**wide["parameters"], "m": m}})
        crossings.append({"direction": "down" if i % 2 else "up", "lo": ends[0], "hi": ends[1]})
    document["crossings"] = crossings
    assert check_boundary(signed(document)).failed == [
        "all ends together have more than 2000000 blocks, too many to verify"
    ]


def _leaf(rng: random.Random, document: Json) -> Json:
    """Another value of the same kind in one place, an end's or not."""
    place, value = rng.choice([(place, value) for place, value in leaves(document) if place[-1] != "sha256"])
    return document if value is None else put(document, place, rng.choice(changed(value)))


def _true_end(rng: random.Random, document: Json) -> Json:
    """One end replaced by the true certificate of a point nearby."""
    crossing = rng.choice(document["crossings"])
    side = rng.choice(("lo", "hi"))
    crossing[side] = at_point(crossing[side], **_nearby(rng, crossing[side]))
    return document


def _true_ends(rng: random.Random, document: Json) -> Json:
    """Something else that is fixed, at all ends and in the head."""
    name, value = rng.choice(list(_nearby(rng, _end(document)).items()))
    for crossing in document["crossings"]:
        for side in ("lo", "hi"):
            crossing[side] = at_point(crossing[side], **{name: value})
    part = "mechanism" if name in _end(document)["mechanism"] else "parameters"
    if rng.random() < 0.8:
        document[part][name] = value
    return document


def _nearby(rng: random.Random, end: Json) -> dict[str, Any]:
    names = [name for name in (*end["parameters"], *end["mechanism"]) if name not in ("name", "spread")]
    found = {}
    for name in rng.sample(names, rng.choice((1, 1, 2))):
        value = {**end["parameters"], **end["mechanism"]}[name]
        if name == "form":
            found[name] = rng.choice(("ones", "identity"))
        elif name == "n":
            found[name] = value * rng.choice((1, 2, 10))
        elif isinstance(value, int):
            found[name] = value + rng.choice((-1, 0, 1, 5))
        else:
            found[name] = str(Fraction(value) * rng.choice((1, Fraction(9, 10), Fraction(1001, 1000), 2)))
    return found


def _rearranged(rng: random.Random, document: Json) -> Json:
    crossings = document["crossings"]
    one = rng.choice(crossings)
    change = rng.randrange(6)
    if change == 0:
        one["lo"], one["hi"] = one["hi"], one["lo"]
    elif change == 1:
        one["direction"] = "down" if one["direction"] == "up" else "up"
    elif change == 2:
        crossings.insert(rng.randrange(len(crossings) + 1), copy.deepcopy(one))
    elif change == 3:
        rng.shuffle(crossings)
    elif change == 4 and len(crossings) > 1:
        crossings.remove(one)
    else:
        crossings.append(boundary_of(rng.choice(list(ASKED)))["crossings"][0])
    return document


def _restated(rng: random.Random, document: Json) -> Json:
    change = rng.randrange(4)
    if change == 0:
        document["at"] = rng.choice(("0.4", "0.45", "0.51", "0.6", "1/3"))
    elif change == 1:
        document["parameter"] = rng.choice(("a0", "a1", "b", "c", "d", "n", "m", "tau", "beta", "peak"))
    elif change == 2 and "n" in document["parameters"]:
        document["parameters"]["n"] += rng.choice((-7, -2, -1, 1, 2, 400))
    elif "tau" in document["parameters"]:
        document["parameters"]["tau"] = rng.choice((None, "0.2", _end(document)["parameters"]["tau"]))
    return document


CHANGES = (_leaf, _true_end, _true_end, _true_ends, _rearranged, _restated)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in (1, 2))])
def test_what_is_accepted_of_many_forgeries_is_true(seed: int) -> None:
    """One to three changes, every hash made right: refused, or another true certificate."""
    rng, accepted, refused = random.Random(seed), 0, 0
    while accepted + refused < 100:
        document = boundary_of(rng.choice(list(ASKED)))
        try:
            for _ in range(rng.choice((1, 1, 2, 3))):
                document = rng.choice(CHANGES)(rng, document)
        except (UsageError, EngineRefusal, TypeError, KeyError):
            continue
        report = check_boundary(signed(document))
        if report.holds:
            accepted += 1
            assert is_true(document), document
            said = " ".join(report.statement)
            assert all(f"{document['parameter']}={value}" in said for value in _values(document))
        else:
            refused += 1
            assert report.statement == ()
    assert accepted > 3
    assert refused > 50


GRAFTS: list[tuple[str, str, dict[str, Any]]] = [
    ("spike", "softmax", {**FIXED, "a1": "0.7", "n": 40, "d": 6, "c": "0.3", "b": "0.5"}),
    ("spike", "linear", {**FIXED, "a1": "0.7", "n": 40, "d": 6, "c": "0.3", "b": "0.5", "form": "identity"}),
    ("spike", "power:beta=2", {**FIXED, "a1": "0.7", "n": 40, "d": 6, "c": "0.3", "tau": "0.2"}),
    ("cross", "taylor:order=2", {**FIXED, "a1": "0.7", "n": 40, "d": 6, "c": "0.3", "r_Q": "1.5"}),
    ("cross", "linear", {**FIXED, "a1": "0.9", "n": 60, "d": 8, "c": "0.3", "r_Q": "0.5"}),
    ("plain", "softmax", {"n": 30, "m": 4}),
    ("plain", "linear", {"n": 60, "m": 4, "tau": "0.2"}),
]


def test_a_verdict_grafted_from_two_true_ones_is_refused_or_true() -> None:
    rng, accepted = random.Random(7), 0
    made = [
        certify(construction_named(construction).read(point), mechanism_named(mechanism), Fraction(1, 100))[1]
        for construction, mechanism, point in GRAFTS
    ]
    for _ in range(250):
        one, other = rng.choice(made), rng.choice(made)
        if rng.random() < 0.5:
            try:
                other = at_point(one, **_nearby(rng, one))
            except (UsageError, EngineRefusal):
                continue
        names = rng.sample([name for name in one if name != "sha256"], rng.choice((1, 2, 3, 5, 8)))
        forged = {**copy.deepcopy(one), **{name: copy.deepcopy(other[name]) for name in names}}
        for _ in range(rng.choice((0, 0, 1, 2))):
            forged = _leaf(rng, forged)
        forged = signed(forged)
        if check_or_refuse(forged):
            accepted += 1
            said = " ".join(check(forged).statement)
            stated = {**forged["parameters"], **forged["mechanism"]}
            assert all(f"{name}={value}" in said for name, value in stated.items() if name != "name")
            assert f"{forged['mechanism']['name']} " in said
            assert f" on {forged['construction']} with " in said
            assert f": {forged['verdict']} at delta {forged['delta']}." in said
            true = certify(
                construction_named(forged["construction"]).read(forged["parameters"]),
                mechanism_named(mechanism_word(forged["mechanism"])),
                Fraction(forged["delta"]),
            )[1]
            for name in ("thresholds", "neuron", "network", "verdict"):
                assert forged[name] == true[name]
    assert accepted > 10


def test_a_refused_verdict_states_nothing() -> None:
    point = construction_named("spike").read(GRAFTS[0][2])
    document = certify(point, mechanism_named("softmax"), Fraction(1, 100))[1]
    assert check(document).statement
    assert check(without(document, ("delta",))).statement == ()
    assert check(signed({**document, "verdict": "blind"})).statement == ()


def test_check_prints_the_statement(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "boundary.json"
    write_certificate(path, boundary_of("a1"))
    code, out, _ = run(capsys, "check", str(path))
    said = " ".join(out.split())
    assert code == 0
    assert "softmax (temperature=1) on spike, where a1 alone moves." in said
    assert "it rises through 0.5 somewhere between the two, exactly once. From a1=" in said
    code, out, _ = run(capsys, "check", str(path), "--json")
    assert '"statement": [' in out


def test_a_level_that_is_only_reached_is_not_certified() -> None:
    """With one neuron P is a dyadic fraction that stays the same over whole stretches."""
    asked = {**FIXED, "m": 1, "n": 40, "d": 6, "c": "0.3", "a1": "0.1:2"}
    found = sx.boundary("spike", "softmax", **asked, probability="0.4")
    top = certify(
        found.question.point({"a1": found.crossings[0].hi.value}), found.question.mechanism({}), Fraction(1, 100)
    )
    level = Fraction(top[1]["neuron"]["only_d1"])
    reached = sx.boundary("spike", "softmax", **asked, probability=level)
    report = check_boundary(certify_boundary(reached))  # its ends lie before and after the plateau
    assert report.holds, report.failed
    last = certify(found.question.point({"a1": 2}), found.question.mechanism({}), Fraction(1, 100))
    highest = sx.boundary("spike", "softmax", **asked, probability=Fraction(last[1]["neuron"]["only_d1"]))
    assert highest.crossings == ()
    with pytest.raises(EngineRefusal, match=r"does not pass .* \(P equals .* exactly .* below it before\)"):
        certify_boundary(highest)


def test_crossings_may_share_an_end_and_no_more() -> None:
    document = boundary_of("d")
    ends = [(c["lo"]["parameters"]["d"], c["hi"]["parameters"]["d"]) for c in document["crossings"]]
    assert any(one[1] == other[0] for one, other in pairwise(ends))


@pytest.mark.parametrize(("tau", "word"), [("0.01", "saturated"), ("0.2", "distinguishes"), ("3", "blind")])
def test_the_checker_tells_saturated_from_blind(tau: str, word: str) -> None:
    point = construction_named("spike").read({**BASE, "tau": tau})
    verdict, document = certify(point, mechanism_named("softmax"), Fraction(1, 100))
    assert verdict.word == word
    assert check(document).holds
    for other in {"saturated", "blind", "distinguishes", "partial"} - {word}:
        assert not check(signed({**document, "verdict": other})).holds
