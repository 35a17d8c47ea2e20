"""Certificates of every construction with exact answers, compared with code that imports nothing of Separatrix."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import separatrix as sx
from altered_documents import Json, changed, check_or_refuse, leaves, places, put, spelled, without
from cases import SMALL
from expectations import run
from independent import literal, points
from separatrix.analysis.maps.boundary import certify_boundary
from separatrix.checker import check, check_boundary, check_file
from separatrix.checker.certificate import PARAMETERS
from separatrix.checker.tokens import LEMMAS
from separatrix.constructions import CONSTRUCTIONS, construction_named
from separatrix.exact.engines import EngineRefusal
from separatrix.exact.verdicts import certify, write_certificate
from separatrix.exact.verdicts.certificate import digest
from separatrix.mechanisms import mechanism_named

KERNELS = ("softmax", "softmax:temperature=1/2", "linear", "power:beta=3", "power:beta=1/2", "taylor:order=2")
TOKENS = sorted({*SMALL} - {"routing"} | {"location"})
LOCATION = {"n": 8, "d": 6, "m": 3, "b": "0.3"}
NOT_CLAIMED = "not claimed"


def made(construction: str, mechanism: str, point: dict[str, Any]) -> Json:
    """Return a certificate as it is read from a file."""
    kind = construction_named(construction)
    document = certify(kind.read(point), mechanism_named(mechanism), Fraction(1, 100))[1]
    return json.loads(json.dumps(document))


def small(construction: str, mechanism: str, **changes: Any) -> Json:
    return made(construction, mechanism, {**SMALL, "location": LOCATION}[construction] | changes)


def sealed(document: Json) -> Json:
    """Return the document with the digest that belongs to it."""
    body = {name: value for name, value in document.items() if name != "sha256"}
    return {**body, "sha256": digest(body)}


def is_true(document: Json) -> bool:
    """Whether a certificate states the truth, by loops over literal tokens and all sign vectors."""
    construction, mechanism = document["construction"], dict(document["mechanism"])
    name = mechanism.pop("name")
    word = f"{name}:{','.join(f'{key}={value}' for key, value in mechanism.items())}" if mechanism else name
    point = {key: Fraction(value) for key, value in document["parameters"].items() if value is not None}
    neuron, m = literal.neuron(construction, word, point, point["tau"]), int(point["m"])
    p0, p1, distinguish = neuron.p0, neuron.p1, neuron.tells_apart(m)
    fire_d0, fire_d1, delta = 1 - (1 - p0) ** m, 1 - (1 - p1) ** m, Fraction(document["delta"])
    verdict = "partial"
    if distinguish >= 1 - delta:
        verdict = "distinguishes"
    elif distinguish <= delta:
        verdict = "saturated" if fire_d1 - distinguish >= Fraction(1, 2) else "blind"
    stated = {key: Fraction(value) for key, value in document["neuron"].items()}
    floats = {"fire_d0": float(fire_d0), "fire_d1": float(fire_d1), "distinguish": float(distinguish)}
    return (
        stated == {"p0": p0, "p1": p1, "only_d1": 1 - p0 - neuron.q}
        and document["network"] == floats
        and document["verdict"] == verdict
        and (document["equal_rows"] == NOT_CLAIMED or has_equal_rows(construction, word, point))
    )


def has_equal_rows(construction: str, mechanism: str, point: dict[str, Fraction]) -> bool:
    """Whether attention over literal tokens returns the same rows for both labels, up to 40 digits."""
    define = {**literal.CONSTRUCTIONS, "location": literal.location}[construction]
    d0, d1 = (literal.rows(mechanism, define(point, label)) for label in (0, 1))
    if len(d0) != len(d1):
        return False
    pairs = [pair for rows in zip(d0, d1, strict=True) for pair in zip(*rows, strict=True)]
    return all(abs(literal.exact(x) - literal.exact(y)) < literal.TIE for x, y in pairs)


def test_the_checker_supports_every_construction_with_exact_answers() -> None:
    assert {name for name, kind in CONSTRUCTIONS.items() if kind.has_certificates} == PARAMETERS.keys()
    for name in CONSTRUCTIONS.keys() - PARAMETERS.keys():
        point = construction_named(name).read(construction_named(name).example)
        with pytest.raises(EngineRefusal):
            sx.verdict(name, "softmax", point.parameters.as_json(), engine="certified")
    for name in PARAMETERS:
        assert set(construction_named(name).schema.model_fields) == {*PARAMETERS[name]}


@pytest.mark.parametrize(("construction", "mechanism"), [*product(PARAMETERS, KERNELS)])
def test_certificates_of_every_construction_hold(construction: str, mechanism: str) -> None:
    example = dict(construction_named(construction).example)
    for point in (example, SMALL.get(construction, example)):
        document = made(construction, mechanism, point)
        report = check(document)
        assert report.failed == []
        assert report.holds
        answer = sx.verdict(construction, mechanism, point, engine="certified")
        assert (document["verdict"], document["network"]["distinguish"]) == (answer.word, answer.outcome.distinguish)


@pytest.mark.parametrize("construction", TOKENS)
def test_certificates_agree_with_literal_loops(construction: str) -> None:
    rng, lemmas = random.Random(construction), 0
    for _ in range(25):
        point = points.random_point(construction, rng)
        mechanism = rng.choice(("softmax", "softmax:temperature=1/2", "linear", "power:beta=2", "taylor:order=2"))
        point.setdefault("tau", literal.level_threshold(point) if construction == "level" else Fraction(1, 2))
        values = {key: str(value) for key, value in point.items()}
        if construction == "duplication" and rng.random() < 0.5:
            values["tau"] = "1"
        document = made(construction, mechanism, values)
        assert check(document).failed == []
        assert is_true(document), (mechanism, values)
        lemmas += document["equal_rows"] != NOT_CLAIMED
    assert bool(lemmas) == (construction in ("injectivity", "duplication", "parity"))


MUTATED = {
    "injectivity": "linear",
    "duplication": "softmax",
    "parity": "taylor:order=2",
    "dispersion": "softmax",
    "critical": "softmax",
    "averaging": "softmax:temperature=1/2",
    "location": "softmax",
    "regression": "linear",
    "recall": "softmax",
    "majority": "linear",
    "spikes": "softmax",
    "level": "linear",
}


def mutants(document: Json) -> list[Json]:
    """Return copies with one field changed, in every way that `changed` knows or to another word."""
    body = without(document, ("sha256",))
    copies = [put(body, place, other) for place, value in leaves(body) if value is not None for other in changed(value)]
    copies += [{**body, "equal_rows": word} for word in (NOT_CLAIMED, *LEMMAS)]
    copies += [{**body, "verdict": word} for word in ("distinguishes", "blind", "saturated", "partial")]
    copies += [{**body, "construction": name} for name in PARAMETERS]
    copies += [
        {**body, "mechanism": kernel} for kernel in ({"name": "linear"}, {"name": "softmax", "temperature": "3"})
    ]
    rng = random.Random(0)
    for name, value in [*body["parameters"].items()] * 6:
        number = spelled(Fraction(rng.randint(0, 40), 10)) if isinstance(value, str) else rng.randint(0, 12)
        copies.append(put(body, ("parameters", name), number))
    return [sealed(copy) for copy in copies]


@pytest.mark.parametrize(("construction", "mechanism"), [*MUTATED.items()])
def test_a_changed_field_is_refused_or_true(construction: str, mechanism: str) -> None:
    accepted = refused = 0
    for mutant in mutants(small(construction, mechanism)):
        if check_or_refuse(mutant):
            assert is_true(mutant), mutant
            accepted += 1
        else:
            refused += 1
    assert accepted > 2
    assert refused > 30


@pytest.mark.parametrize("construction", ["majority", "injectivity", "recall"])
def test_fields_of_another_type_and_missing_fields_are_refused(construction: str) -> None:
    document = without(small(construction, "linear"), ("sha256",))
    for place, value in places(document):
        for other in (None, [value], {}, True, float("nan"), 1.5, "0.50", "٣", "1e3", [[[]]] * 3):
            if place == ("parameters", "digits") and other is None:
                continue
            assert not check_or_refuse(sealed(put(document, place, other))), (place, other)
        assert not check_or_refuse(sealed(without(document, place))), place
        if isinstance(value, dict):
            assert not check_or_refuse(sealed(put(document, (*place, "extra"), 0))), place


NINES = "9" * 3990
HOSTILE: list[tuple[str, str, dict[str, Any]]] = [
    ("majority", "softmax", {"groups": 11, "noise": f"1/{NINES}"}),
    ("majority", "softmax", {"groups": 10**1000}),
    ("majority", "softmax", {"n": 10**3000}),
    ("recall", "softmax", {"n": 10**9, "width": 10**3000}),
    ("recall", "linear", {"n": 4096, "width": 10**3000, "digits": None}),
    ("recall", "linear", {"digits": 10**6, "width": 10**6}),
    ("parity", "softmax", {"n": 1 << 40}),
    ("parity", "softmax", {"n": 4096, "scale": NINES}),
    ("parity", "taylor:order=2", {"n": 4096, "scale": f"1/{NINES}"}),
    ("spikes", "power:beta=3", {"k": 10**3000, "a1": NINES}),
    ("averaging", "softmax", {"n": 10**3900, "q": 10**3899, "gap": NINES}),
    ("level", "taylor:order=2", {"levels": 10**3000, "at": 10**2999}),
    ("duplication", "linear", {"r0": 10**3000, "r1": 10**2999, "n": 10**3000}),
    ("critical", "softmax", {"gamma": f"0.{'3' * 3900}", "rho": f"0.{'7' * 3900}"}),
    ("dispersion", "softmax", {"gap": NINES, "m": 10**3900}),
    ("regression", "linear", {"width": 10**3000, "n": 10**3000}),
    ("injectivity", "power:beta=1/2", {"query": NINES, "factor": f"1/{NINES}"}),
    ("location", "softmax", {"d": 10**9, "n": 10**9 - 2}),
]


@pytest.mark.parametrize(("construction", "mechanism", "changes"), HOSTILE)
def test_hostile_parameters_fail_at_once(construction: str, mechanism: str, changes: dict[str, Any]) -> None:
    document = small(construction, mechanism)
    document["parameters"].update(changes)
    report = check(sealed(document))
    assert report.holds == bool(report.statement)
    assert all(len(line) < 150 and line.isprintable() for line in report.failed)


def test_long_parameters_of_a_wide_reader_are_refused() -> None:
    document = small("majority", "softmax", groups=11, noise=f"0.{'1' * 700}")
    assert check(document).failed == ["the parameters are too long for so many sign vectors"]


@pytest.mark.parametrize(
    ("construction", "mechanism", "changes", "lemma"),
    [
        ("duplication", "softmax", {}, "proportions"),
        ("duplication", "taylor:order=3", {"r1": 1}, "proportions"),
        ("injectivity", "softmax", {"factor": 1}, "proportions"),
        ("injectivity", "taylor:order=2", {"gap": 0}, "proportions"),
        ("averaging", "power:beta=1/2", {"gap": 0}, "proportions"),
        ("plain", "softmax", {"n": 4, "m": 3, "peak": "1/2", "base": 2}, "proportions"),
        ("injectivity", "linear", {}, "homogeneity"),
        ("injectivity", "power:beta=1/2", {"factor": "0.3"}, "homogeneity"),
        ("parity", "linear", {}, "cancellation"),
        ("parity", "power:beta=2", {}, "cancellation"),
        ("parity", "taylor:order=2", {}, "cancellation"),
        ("parity", "taylor:order=3", {}, NOT_CLAIMED),
        ("parity", "power:beta=1/2", {}, NOT_CLAIMED),
        ("injectivity", "softmax", {}, NOT_CLAIMED),
        ("spikes", "linear", {"k": 2}, NOT_CLAIMED),
        ("plain", "softmax", {"n": 9, "m": 3, "peak": "1/2", "base": 2}, NOT_CLAIMED),
    ],
)
def test_the_lemma_of_equal_rows(construction: str, mechanism: str, changes: dict[str, Any], lemma: str) -> None:
    document = made(construction, mechanism, {**SMALL.get(construction, {}), **changes})
    assert document["equal_rows"] == lemma
    text = " ".join(check(document).statement)
    assert ("no reader of them whatsoever" in text) == (lemma != NOT_CLAIMED)
    assert ("anything about another reader" in text) == (lemma == NOT_CLAIMED)
    assert lemma == NOT_CLAIMED or f"Lemma of {lemma}: " in text
    for other in LEMMAS:
        report = check(sealed({**document, "equal_rows": other}))
        if lemma == NOT_CLAIMED:
            assert report.failed == [f"that D0 and D1 have equal rows by {other} is wrong"]
    equal = sx.readers(construction, mechanism, {**SMALL.get(construction, {}), **changes})
    assert (equal.verdict.word == "cannot" and "every reader" in equal.verdict.readers) == (lemma != NOT_CLAIMED)


def test_certificates_of_readers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "equal.json"
    code, out, _ = run(capsys, "readers", "injectivity", "linear", "--certificate", str(path))
    assert code == 0
    assert f"separatrix check {path}" in " ".join(out.split())
    assert check_file(path).holds
    code, _, err = run(capsys, "readers", "injectivity", "softmax", "--certificate", str(tmp_path / "other.json"))
    assert code == 2
    assert "not proved to be equal" in err
    code, _, err = run(
        capsys, "readers", "injectivity", "identity-features", "--certificate", str(tmp_path / "other.json")
    )
    assert code == 2
    assert "ask for linear, which equals it on these tokens" in " ".join(err.split())
    assert not (tmp_path / "other.json").exists()


@pytest.mark.parametrize("construction", [*PARAMETERS])
def test_statements_fit_80_columns(construction: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    write_certificate(path, made(construction, "linear", dict(construction_named(construction).example)))
    code, out, _ = run(capsys, "check", str(path))
    assert code == 0
    assert all(len(line) <= 80 for line in out.splitlines()[1:])
    text = " ".join(out.split())
    assert "{" not in text
    assert text.count("  ") == 0
    for name, value in json.loads(path.read_text())["parameters"].items():
        assert (f"{name}={value}" if value is not None else f"`{name}`") in text


BOUNDARIES: list[tuple[str, str, dict[str, Any]]] = [
    ("injectivity", "softmax", {"n": 50, "m": 3, "gap": "0:3"}),
    ("dispersion", "softmax", {"m": 12, "n": "2:1000"}),
    ("recall", "softmax", {"n": 64, "m": 12, "scale": "1:6"}),
    ("level", "linear", {"n": 10, "m": 12, "tau": "0.01:1"}),
    ("location", "softmax", {"n": 1003, "m": 12, "gap": "0:2"}),
]


@pytest.mark.parametrize(("construction", "mechanism", "parameters"), BOUNDARIES)
def test_boundaries_of_other_constructions(construction: str, mechanism: str, parameters: dict[str, Any]) -> None:
    document = certify_boundary(sx.boundary(construction, mechanism, **parameters))
    report = check_boundary(json.loads(json.dumps(document)))
    assert report.failed == []
    assert f"on {construction}, where" in report.statement[0]


def test_a_boundary_in_which_something_else_moves_has_no_certificate() -> None:
    found = sx.boundary("level", "linear", n=2, m=12, gap="0.5", levels=5, at="0:3")
    assert found.crossings
    with pytest.raises(EngineRefusal, match="tau changes with at here"):
        certify_boundary(found)
