"""The picture at any point: by counts what it is on all tokens, at any n, and in words that are true."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from typing import Any

import pytest
import torch

from documents import require_document
from separatrix.analysis.cards.illustration import illustrate_at
from separatrix.constructions import CONSTRUCTIONS, construction_named
from separatrix.core.errors import EngineRefusal, UsageError
from separatrix.core.numbers.formats import SIGNIFICANT_BITS, TORCH_NAMES
from separatrix.exact.outputs.kernels import kernel_rows, rational_model, spike_weights
from separatrix.exact.reader import FourLayerNetwork
from separatrix.exact.verdicts import verdict
from separatrix.mechanisms import MECHANISMS, mechanism_named

SMALL: dict[str, dict[str, object]] = {
    "spike": {"n": 60, "d": 7},
    "plain": {"n": 50},
    "cross": {"n": 30, "d": 12},
    "location": {"n": 40, "d": 6},
    "duplication": {"n": 20},
    "averaging": {"n": 40, "q": 4},
    "regression": {"n": 40},
    "majority": {"n": 30},
    "spikes": {"n": 30},
    "dispersion": {"n": 30},
    "parity": {"n": 16},
}
COUNTING = [name for name, kind in MECHANISMS.items() if kind(**kind.example).takes_counts]


@pytest.mark.parametrize("construction", SMALL)
@pytest.mark.parametrize("mechanism", COUNTING)
def test_counts_give_what_all_tokens_give(construction: str, mechanism: str) -> None:
    kind = MECHANISMS[mechanism](**MECHANISMS[mechanism].example)
    require_same_as_network(construction, kind.spelled, SMALL[construction], seed=5)


@pytest.mark.parametrize("mechanism", ["softmax", "linear", "power:beta=3", "hardmax", "relu"])
@pytest.mark.parametrize("size", [1, 2, 9])
def test_so_they_do_where_queries_are_of_many_kinds(mechanism: str, size: int) -> None:
    point = {"n": 5 * size, "d": 7, "form": "identity"}
    assert len(require_same_as_network("spike", mechanism, point, seed=1).queries) == 3


def require_same_as_network(construction: str, mechanism: str, given: dict[str, Any], seed: int) -> Any:
    """The picture against every layer of the network on literal tokens."""
    found = illustrate_at(construction, mechanism, given, seed=seed)
    point = construction_named(construction).read(found.parameters)
    network = FourLayerNetwork.draw(mechanism_named(mechanism), point, seed)
    picture = found[mechanism]
    for label, rows in zip((0, 1), found.tokens, strict=True):
        tokens = point.dense(label, 0, torch.float64)
        layers = network.layers(tokens)
        peaks = layers.preactivations.amax(0) / point.unit
        assert picture.readings[label] == pytest.approx(peaks.tolist(), rel=1e-9, abs=1e-12)
        assert rows[0].first == 1
        assert rows[-1].last == len(tokens.keys)
        for name, weights in zip(found.queries, picture.weights[label], strict=True):
            asked = layers.attention[int(name.split("–")[0]) - 1 if name else 0]
            seen = [float(asked[row.first - 1 : row.last].sum()) for row in rows]
            assert weights == pytest.approx(seen, rel=1e-9, abs=1e-12)
    return found


@pytest.mark.parametrize("n", [10**3, 10**9, 10**18, 10**30, 10**300])
def test_it_is_exact_at_any_n(n: int) -> None:
    found = illustrate_at("spike", "softmax,linear", {"n": n})
    point = construction_named("spike").read({**found.parameters})
    for picture in found.mechanisms:
        name = picture.mechanism
        exact = [spike_weights(mechanism_named(name), rational_model(point), label) for label in (0, 1)]
        for label, rows in zip((0, 1), found.tokens, strict=True):
            assert [row.first for row in rows] == [1, *(row.last + 1 for row in rows[:-1])]
            assert sum(row.count for row in rows) == n
            own, others = picture.weights[label]
            assert own[0] == pytest.approx(float(exact[label]["spike"]), rel=1e-10)
            assert others[0] == pytest.approx(float(exact[label]["rest"]), rel=1e-10)
            assert sum(own) == pytest.approx(1)
        answer = verdict("spike", name, n=n)
        chance = picture.difference.chance
        assert chance is not None
        assert chance.distinguish == answer.outcome.distinguish
        assert picture.difference.bits == answer.bits
    require_document("illustration", json.loads(json.dumps(found.as_json(), allow_nan=False)))


@pytest.mark.parametrize("n", [10, 10**3, 9300, 10**4, 13000, 10**5, 10**6, 10**9, 10**12, 10**18])
def test_formats_are_those_of_the_verdict(n: int) -> None:
    found = illustrate_at("spike", "linear", {"n": n, "d": 7})
    lost = verdict("spike", "linear", found.parameters).formats
    assert lost is not None
    unseen = [name for name, least in lost.items() if least is not None and least <= found.parameters["n"]]
    assert [name for name, same in found["linear"].difference.formats.items() if same] == unseen
    sentence = found["linear"].sentence
    if "not even float64" in sentence:
        assert unseen == [*SIGNIFICANT_BITS]
    else:
        said = re.findall(r"\b(?:bfloat16|float\d\d)\b", sentence)
        assert said == [TORCH_NAMES[name] for name in unseen]
    assert ("every number format sees it" in sentence) == (not unseen)


def test_what_differs_first_is_the_bit_that_differs() -> None:
    for n in (10**3, 10**5, 10**7):
        found = illustrate_at("spike", "linear", {"n": n})
        bit, bits = found["linear"].difference.bit, found["linear"].difference.bits
        assert bit in (math.floor(bits) + 1, math.ceil(bits) + 1)


def test_a_tie_does_not_fire() -> None:
    """Two blocks, a0=0: where all signs are + D0 reads b+c, which is tau."""
    given = {"n": 1000, "d": 4, "m": 40, "a0": 0, "b": "0.1", "c": "0.1"}
    for n in (10, 1000, 10**18):
        found = illustrate_at("spike", "softmax,linear", {**given, "n": n})
        for picture in found.mechanisms:
            assert max(picture.readings[0]) == found.threshold
            assert picture.fire_counts[0] == 0
            ties = sum(x == found.threshold for readings in picture.readings for x in readings)
            assert f"({ties} exactly at the threshold" in picture.sentence


@pytest.mark.parametrize("construction", ["level", "parity", "dispersion", "averaging", "injectivity"])
def test_neurons_fire_as_rationals_say(construction: str) -> None:
    given = CONSTRUCTIONS[construction].example
    for tau in (Fraction(1, 2), Fraction(1, 4), Fraction(1)):
        found = illustrate_at(construction, "softmax,linear", {**given, "tau": tau}, seed=2)
        at = construction_named(construction).read(found.parameters)
        for picture in found.mechanisms:
            network = FourLayerNetwork.draw(mechanism_named(picture.mechanism), at, 2)
            rows = kernel_rows(at, mechanism_named(picture.mechanism))
            for label in (0, 1):
                exact = [rows.fires(label, [int(y) for y in signs]) for signs in network.signs.tolist()]
                assert picture.fires[label] == exact


def test_draws_tell_apart_as_often_as_the_verdict_says() -> None:
    given = {"n": 1000, "d": 12, "m": 2}
    p = verdict("spike", "softmax", given).outcome.distinguish
    draws = 150
    told = sum(illustrate_at("spike", "softmax", given, seed=seed)["softmax"].tells_apart for seed in range(draws))
    assert 0.1 < p < 0.9
    assert abs(told - draws * p) < 5 * math.sqrt(draws * p * (1 - p))


def test_what_has_no_picture_is_refused_in_a_line() -> None:
    found = illustrate_at("spike", "softmax,retention", {"n": 10**6})
    assert [picture.mechanism for picture in found.mechanisms] == ["softmax"]
    assert [refused.reason for refused in found.refused] == [
        "retention needs every token, and n=1,000,000 is more than a picture has, 2,000"
    ]
    assert found.as_json()["refused"][0]["mechanism"] == "retention"
    for words, said in {
        ("spike", "retention", "n=1000000"): "retention needs every token",
        ("rough", "softmax", "n=3000"): "rough needs every token, and n=3,000",
        ("spike", "softmax", "m=1001"): "m=1,001 is more neurons than a picture has, 1,000",
        ("spike", "softmax", "d=100002"): "100,001 distinct tokens",
        ("spike", "softmax", f"n={10**301}"): "take n=1e300 or less",
        ("plain", "softmax", "n=10000000000000000000"): "signs of so many tokens cannot be drawn",
    }.items():
        name, value = words[2].split("=")
        with pytest.raises(EngineRefusal, match=said):
            illustrate_at(words[0], words[1], {name: value})
    for name, given, said in (
        ("spikey", {}, "spike"),
        ("spike", {"q": 1}, "q"),
        ("spike", {"n": "many"}, "n=many"),
        ("spike", {"a0": 2}, "a0=2 must be smaller"),
    ):
        with pytest.raises(UsageError, match=said):
            illustrate_at(name, "softmax", given)
    with pytest.raises(UsageError, match="seed=-1"):
        illustrate_at("spike", "softmax", {}, seed=-1)


def test_places_are_seen_where_they_matter() -> None:
    found = illustrate_at("dispersion", "window:size=8,softmax", {"n": 100})
    assert found["window:size=8"].weights[1][0] == (0, pytest.approx(1))
    assert found["softmax"].weights[1][0][0] > 0
    assert "token 1 gets none of the weight" in found["window:size=8"].sentence


def test_n_is_moved_and_said_to_be() -> None:
    found = illustrate_at("spike", "softmax", {"n": 1060})
    assert found.parameters["n"] == 1100
    assert found.moved == "n=1060 is rounded to a multiple of d−2: n=1100."
    assert illustrate_at("spike", "softmax", {"n": "1e3"}).moved == ""


def test_signs_of_single_tokens_are_drawn_at_any_n() -> None:
    for n in (10**5, 10**6, 10**18):
        found = illustrate_at("plain", "softmax,linear", {"n": n}, seed=4)
        assert found["softmax"].tells_apart
        assert not found["linear"].tells_apart


def test_sentences_say_what_is_drawn() -> None:
    found = illustrate_at("spike", "softmax,linear", {})
    assert found["softmax"].sentence.startswith("softmax: the spike gets 0.996 of the weight in D1 and 1/979 in D0; ")
    assert "4 of 12 neurons fire on D1, none on D0: told apart with these signs" in found["softmax"].sentence
    assert "no neuron fires, on D0 or on D1: not told apart" in found["linear"].sentence
    same = illustrate_at("duplication", "softmax", {})
    assert "no reader tells them apart" in same["softmax"].sentence
