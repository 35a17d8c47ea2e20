"""Certificates of uniform theorems and of laws: true ones hold, and an altered one holds only if it is still true."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import mpmath
import pytest

import separatrix as sx
from altered_documents import changed, leaves, places, put, without
from command import invoke
from proof_oracle import sealed
from separatrix.checker import check_document
from separatrix.constructions import construction_named
from separatrix.exact.engines import certified
from separatrix.exact.outputs.growth_laws import margin_law
from separatrix.exact.proofs import certify_law, certify_uniformly
from separatrix.exact.proofs.uniform import prove_uniformly
from separatrix.mechanisms import mechanism_named

Json = Any
UNIFORM: dict[str, tuple[str, str, dict[str, Any]]] = {
    "softmax": ("softmax", "d=102: a1=1.2: a0=:0.05 b=0.1:0.2 c=0.1:0.5", {}),
    "cold": ("softmax:temperature=0.5", "d=102:110 a1=1.2:1.5 a0=:0.01", {}),
    "softmax below the boundary": ("softmax", "d=202: a1=:0.5", {"n": 10**6}),
    "linear": ("linear", "d=102: a1=:1.2 c=0.1: b=0.1:0.2", {}),
    "power": ("power:beta=5/2", "d=602: a1=:1.2", {"n": 10**6, "m": 10**9}),
    "taylor": ("taylor:order=3", "d=102: a1=:1.2", {"n": 10**5}),
    "no verdict": ("softmax", "d=12: a1=1.2: a0=:0.01", {}),
    "long": ("softmax", "d=1002: a1=0.9: a0=:0.01 b=:0.05 c=0.3:0.4", {"n": 10**400, "m": 10**40, "d": 102}),
}
LAWS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "L1": ("spike", "linear", {}),
    "L1 of a power": ("spike", "power:beta=7/3", {"n": 500}),
    "L1 of cross-attention": ("cross", "power:beta=3", {"r_Q": "0.5"}),
    "L2": ("spike", "softmax", {}),
    "L2 of two spikes": ("spike", "softmax", {"a0": "0.9", "a1": "1.3", "b": "0.3", "c": "0.2", "n": 1000}),
    "L2 at s1 = 1": ("spike", "softmax", {"a1": "0.8", "b": "0.25", "c": "0.2"}),
    "L3": ("spike", "softmax:temperature=2", {}),
    "L3 before the peak": ("spike", "softmax", {"n": 4, "d": 4, "a0": "0", "a1": "0.9", "b": "0.1", "c": "0.1"}),
    "L3 of cross-attention": ("cross", "softmax", {"r_Q": "0.5", "n": 10**12}),
    "L4": ("spike", "taylor:order=3", {}),
    "L4 without a spike": ("spike", "taylor:order=40", {"a0": "0", "n": 10**6}),
}


def uniform(name: str) -> Json:
    """Return the certificate of a uniform theorem, as it is read from a file."""
    mechanism, ranges, parameters = UNIFORM[name]
    return json.loads(json.dumps(certify_uniformly(prove_uniformly(mechanism, ranges, parameters))))


def law(name: str) -> Json:
    """Return the certificate of a law, as it is read from a file."""
    kind, mechanism, changes = LAWS[name]
    construction = construction_named(kind).read({**construction_named(kind).example, **changes})
    bounds = margin_law(construction, mechanism_named(mechanism))
    assert bounds is not None
    return json.loads(json.dumps(certify_law(construction, mechanism_named(mechanism), bounds)))


def spelled(mechanism: Json) -> str:
    """Return a mechanism as the command line spells it."""
    settings = ",".join(f"{name}={value}" for name, value in mechanism.items() if name != "name")
    return f"{mechanism['name']}:{settings}" if settings else str(mechanism["name"])


def is_uniform_bound_true(document: Json) -> bool:
    """Whether the exact probabilities at corners of the ranges do not contradict a certificate."""
    ends = {name: text.split(":") for name, text in document["ranges"].items()}
    low = {name: pair[0] or ("0" if name == "a0" else "1e-3") for name, pair in ends.items()}
    high = {name: pair[1] or str(Fraction(low[name]) + 1) for name, pair in ends.items()}
    d = math.ceil(Fraction(low["d"]))
    first = -(-document["from"] // (d - 2)) * (d - 2)
    for a0, a1, b, c, n in product(*((low[x], high[x]) for x in ("a0", "a1", "b", "c")), (first, 1000 * first)):
        if Fraction(a0) >= Fraction(a1):
            continue
        values = {"a0": a0, "a1": a1, "b": b, "c": c, "n": n, "d": d, "m": document["m"]}
        answer = sx.verdict("spike", spelled(document["mechanism"]), values, delta=document["delta"])
        neuron, bound, triples = answer.outcome, document["bound"], document["triples"]
        at_most, at_least = answer.outcome.interval
        holds = at_most <= bound if triples is None else at_least >= bound
        holds = holds and Fraction(neuron.p0) <= document["p_at_most"]
        holds = holds and (Fraction(neuron.p1) >= Fraction(triples or 0, 8))
        holds = holds and (triples is not None or Fraction(neuron.p1) <= document["p_at_most"])
        if not holds or (document["verdict"] is not None and answer.word != document["verdict"]):
            return False
    return True


def margin_at(document: Json, n: int) -> Any:
    """Return a1 f1 - a0 f0 with 200 digits and more for long n, from the scores of the tokens."""
    values = {
        name: mpmath.mpf(Fraction(text).numerator) / Fraction(text).denominator
        for name, text in document["parameters"].items()
    }
    mechanism, r, total = document["mechanism"], values["b"] + values["c"], mpmath.mpf(0)
    for sign, a in ((-1, values["a0"]), (1, values["a1"])):
        query = values.get("r_Q", a + r)
        spike, other = (query * key * mpmath.log(n) for key in (a + r, r))
        if mechanism["name"] == "softmax":
            theta = Fraction(mechanism["temperature"])
            odds = mpmath.exp((other - spike) * theta.denominator / theta.numerator)
        elif mechanism["name"] == "taylor":
            odds = mpmath.fdiv(
                *(sum(x**i / mpmath.factorial(i) for i in range(mechanism["order"] + 1)) for x in (other, spike))
            )
        else:
            beta = Fraction(mechanism.get("beta", 1))
            odds = (other / spike) ** (mpmath.mpf(beta.numerator) / beta.denominator)
        total += sign * a / (1 + (n - 1) * odds)
    return total


def is_law_true(document: Json) -> bool:
    """Whether the margin at many n, near and far, does not contradict a law."""
    start, low, high = document["from"], Fraction(document["low"]), Fraction(document["high"])
    with mpmath.workdps(200 + 4 * len(str(start))):
        exponent = mpmath.mpf(Fraction(document["exponent"]).numerator) / Fraction(document["exponent"]).denominator
        slack = mpmath.mpf(10) ** -150
        for n in (*range(start, start + 40), *(start * 2**k for k in range(1, 40)), start * 10**80, start * 10**3000):
            scaled = margin_at(document, n) * mpmath.mpf(n) ** -exponent
            ends = (mpmath.mpf(end.numerator) / end.denominator for end in (low, high))
            if not next(ends) <= scaled + slack or not scaled <= next(ends) + slack:
                return False
    return True


@pytest.mark.parametrize("name", UNIFORM)
def test_uniform_certificates_hold(name: str) -> None:
    document = uniform(name)
    report = check_document(document)
    assert report.holds, report.failed
    assert (document["verdict"] is None) == (name == "no verdict")
    if document["from"] < 10**20 and document["m"] < 10**6:
        assert is_uniform_bound_true(document)


@pytest.mark.parametrize("name", LAWS)
def test_certificates_of_laws_hold(name: str) -> None:
    document = law(name)
    report = check_document(document)
    assert report.holds, report.failed
    assert is_law_true(document)


@pytest.mark.parametrize("name", ["softmax", "linear", "softmax below the boundary", "no verdict"])
def test_an_altered_uniform_certificate_holds_only_if_it_is_true(name: str) -> None:
    document, accepted = without(uniform(name), ("sha256",)), set()
    for place, value in leaves(document):
        others = changed(value) if value is not None else ["blind", "distinguishes", 1, 0.5]
        if place[0] == "ranges":
            low, high = value.split(":")
            others = [f"{x}:{high}" for x in changed(low or "0")] + [f"{low}:{x}" for x in ("", *changed(high or "2"))]
        for other in [*others, None, [], {}, True, 1.5]:
            forged = sealed(put(document, place, other))
            if other != value and check_document(forged).holds:
                assert is_uniform_bound_true(forged), (place, other)
                accepted.add(place[0])
    assert accepted <= {"ranges", "mechanism", "m", "from", "delta", "p_at_most", "bound", "verdict"}
    assert {"ranges", "from", "delta"} <= accepted


@pytest.mark.parametrize(
    "name", ["L1", "L1 of cross-attention", "L2", "L2 at s1 = 1", "L3", "L3 before the peak", "L4"]
)
def test_an_altered_law_holds_only_if_it_is_true(name: str) -> None:
    document, accepted = without(law(name), ("sha256",)), set()
    for place, value in leaves(document):
        for other in [*changed(value), None, [], {}, True, 1.5]:
            forged = sealed(put(document, place, other))
            if other != value and check_document(forged).holds:
                assert is_law_true(forged), (place, other)
                accepted.add(place[0])
    assert accepted <= {"parameters", "mechanism", "from", "low", "high"}
    assert {"low", "high"} <= accepted


@pytest.mark.parametrize("document", [uniform("softmax"), uniform("linear"), law("L1"), law("L2")])
def test_every_change_is_noticed_by_the_hash_and_every_field_is_needed(document: Json) -> None:
    for place, value in leaves(document):
        assert not check_document(put(document, place, 7 if value is None else changed(value)[0])).holds, place
    for place, _ in places(document):
        if place not in (("format",), ("sha256",)):
            assert not check_document(sealed(without(document, place))).holds, place
    assert not check_document(sealed({**document, "extra": 0})).holds


def test_each_bound_is_the_best_that_the_theorem_gives() -> None:
    """A bound that is better in the twelfth digit is not accepted, and one more triple neither."""
    for name in ("softmax", "linear", "power", "taylor"):
        document = uniform(name)
        for field in ("bound", "p_at_most"):
            worse = field == "bound" and document["triples"] is not None
            better = document[field] * (1 + 1e-12 if worse else 1 - 1e-12)
            assert check_document(sealed({**document, field: better})).failed == [f"{field} cannot be verified"]
    more = {**uniform("softmax"), "triples": 4}
    assert check_document(sealed(more)).failed == ["triples is wrong"]
    for name in LAWS:
        document = law(name)
        for field, sign in (("low", 1), ("high", -1)):
            better = Fraction(document[field]) + sign * abs(Fraction(document[field])) / 10**12
            text = str(better) if better.denominator > 1 else str(better.numerator)
            assert check_document(sealed({**document, field: text})).failed == [f"{field} cannot be verified"], name


@pytest.mark.parametrize(
    ("name", "ranges", "complaint"),
    [
        ("softmax", {"a1": "0.86:"}, "the hypothesis n (s1 - 1) >= s1 > 1 is wrong"),
        ("softmax", {"a0": ":0.9"}, "the ranges violate the hypotheses"),
        ("softmax", {"a0": ":"}, "the ranges violate the hypotheses"),
        ("softmax", {"c": "0.1:"}, "the ranges violate the hypotheses"),
        ("softmax", {"b": "0.1:"}, "the ranges violate the hypotheses"),
        ("softmax", {"b": "0:0"}, "the ranges violate the hypotheses"),
        ("softmax", {"d": "3:"}, "the ranges violate the hypotheses"),
        ("softmax", {"d": ":"}, "the ranges violate the hypotheses"),
        ("softmax", {"b": "0.2:0.1"}, "the range of b is empty"),
        ("softmax", {"b": "-0.1:0.2"}, "the range of b is empty"),
        ("softmax", {"b": "0.1"}, "b is not a range low:high"),
        ("softmax", {"b": "0.10:0.2"}, "b is not an exact decimal or fraction"),
        ("softmax below the boundary", {"a1": ":0.87"}, "the ranges violate the hypotheses"),
        ("softmax below the boundary", {"a1": ":0.82"}, "the hypothesis eta > 0 cannot be verified"),
        ("linear", {"a1": "1.2:"}, "the ranges violate the hypotheses"),
        ("linear", {"b": ":0.2", "c": ":"}, "the ranges violate the hypotheses"),
        ("linear", {"a1": ":40"}, "the hypothesis eta > 0 cannot be verified"),
        ("linear", {"a0": "500000:1000000"}, "the range of a0 exceeds that of a1"),
        ("linear", {"a0": ":1.3"}, "the range of a0 exceeds that of a1"),
        ("linear", {"a0": ":"}, "the range of a0 exceeds that of a1"),
    ],
)
def test_a_failing_hypothesis_is_named(name: str, ranges: dict[str, str], complaint: str) -> None:
    document = uniform(name)
    forged = sealed({**document, "ranges": {**document["ranges"], **ranges}, "verdict": None})
    assert check_document(forged).failed[0] == complaint


def test_triples_are_for_softmax_alone() -> None:
    assert not check_document(sealed({**uniform("linear"), "triples": 4, "bound": 0.1})).holds
    assert not check_document(sealed({**uniform("softmax"), "triples": None})).holds


@pytest.mark.parametrize("field", ["from", "m"])
def test_huge_numbers_are_answered_at_once(field: str) -> None:
    for name in UNIFORM:
        check_document(sealed({**uniform(name), field: 10**3999}))
    extreme = {"d": "102:", "a0": ":0.01", "a1": f"{10**3999}:", "b": f"0.{'0' * 3990}1:0.2", "c": f"0.1:{10**3999}"}
    assert not check_document(sealed({**uniform("softmax"), "ranges": extreme})).holds
    assert not check_document(
        sealed({**uniform("softmax"), "ranges": {**extreme, "c": "0.1:0.2"}, "m": 10**3999})
    ).holds
    for name in LAWS:
        if field == "from":
            check_document(sealed({**law(name), field: 10**3999}))
        parameters = {**law(name)["parameters"], "a1": str(10**3999), "b": f"0.{'0' * 3990}1"}
        assert not check_document(sealed({**law(name), "parameters": parameters})).holds
        for text in (str(10**3999), f"0.{'0' * 3990}1", f"1/{10**3998 + 7}"):
            for place in ("low", "high", "exponent"):
                check_document(sealed({**law(name), place: text}))


def test_p_and_the_triples_are_those_of_the_certified_engine_in_the_limit() -> None:
    document = uniform("cold")
    spike = construction_named("spike").read(
        {"n": 100 * 10**9, "d": 102, "m": 12, "a0": 0, "a1": "1.2", "b": "0.2", "c": "0.1"}
    )
    neuron = certified.count(spike, mechanism_named("softmax:temperature=0.5")).low
    assert neuron.p0 <= document["p_at_most"] < 1000 * neuron.p0
    assert neuron.p1 >= Fraction(document["triples"], 8) > neuron.p1 - Fraction(1, 100)


def test_the_commands_write_and_check_them(tmp_path: Path) -> None:
    file = tmp_path / "theorem.json"
    for words, phrases in (
        (
            "prove spike softmax --theorem --certificate",
            ("tau = c + 0.1 and everything in d=102: a0=:0.01 a1=1.2:", "for every n >= 1000.", "hypotheses of U1"),
        ),
        ("prove spike taylor:order=3 --for a1=:1.2 --from 1e6 --certificate", ("at delta 0.01: blind", "U2")),
        (
            "scaling spike linear n=1e3:1e9:4:log --certificate",
            ("n^(-1) times a number from 5.96576262862951049042 to",),
        ),
    ):
        assert "verify it with" in invoke(*words.split(), str(file)).stdout
        result = invoke("check", str(file))
        assert result.returncode == 0
        text = " ".join(result.stdout.split())
        assert all(phrase in text for phrase in (*phrases, "certificate holds", "Not claimed: "))
    file.write_text(json.dumps(sealed({**law("L1"), "low": "5.97"})))
    result = invoke("check", str(file))
    assert (result.returncode, "low cannot be verified" in result.stdout) == (1, True)
    for words in ("scaling spike relu n=1e3:1e6:3:log", "scaling spike softmax,linear n=1e3:1e6:3:log"):
        result = invoke(*words.split(), "--certificate", str(tmp_path / "none.json"))
        assert (result.returncode, "no bounds for every n are proved here" in result.stderr) == (2, True)
    assert not (tmp_path / "none.json").exists()
