"""Uniform theorems: bounds for every n, every larger d and ranges of amplitudes."""

from __future__ import annotations

import json
import random
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import separatrix as sx
from expectations import assert_refused, run
from separatrix.checker import check_document
from separatrix.constructions.spike import Spike
from separatrix.core.errors import EngineRefusal, UsageError
from separatrix.core.parameters import Grid
from separatrix.exact.engines.closed import evaluate
from separatrix.exact.proofs import certify_uniformly
from separatrix.exact.proofs.uniform import Box, prove_uniformly
from separatrix.mechanisms.load import mechanism_from

RANGES = "d=102: a1=1.2: a0=:0.05 b=0.1:0.2 c=0.1:0.5"


def draw_inside(rng: random.Random, box: Box, width: Fraction) -> Fraction:
    """Draw a value of a range, of which an open end extends by `width`."""
    low = box.low if box.low is not None else Fraction(0)
    high = box.high if box.high is not None else low + width
    return low + (high - low) * Fraction(rng.choice([0, 1, rng.randint(0, 100), 100]), 100)


@pytest.mark.parametrize(
    ("mechanism", "ranges"), [("softmax", RANGES), ("linear", "d=102: a1=:1.2 a0=:0.3 b=0.1:0.2 c=0.1:")]
)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 40))])
def test_bounds_hold_at_random_points(mechanism: str, ranges: str, seed: int) -> None:
    rng = random.Random(seed)
    proof = prove_uniformly(mechanism, ranges)
    assert proof.verdict is not None
    for _ in range(25):
        values = {name: draw_inside(rng, box, Fraction(2)) for name, box in proof.boxes.items() if name != "d"}
        if values["a1"] < Fraction(1, 10**6) or values["a0"] >= values["a1"]:
            continue
        d = 102 + rng.choice([0, 1, rng.randint(0, 300)])
        step = d - 2
        n = step * rng.choice([-(-1000 // step), rng.randint(-(-1000 // step), 10**4), 10**12])
        outcome = sx.verdict("spike", mechanism, {**values, "d": d, "n": n, "m": 12}).outcome
        low, high = outcome.interval
        assert proof.at_least is None or low >= proof.at_least
        assert proof.at_most is None or high <= proof.at_most


@pytest.mark.parametrize(
    ("mechanism", "ranges", "start"),
    [
        ("softmax", RANGES, 1000),
        ("softmax:temperature=0.5", RANGES, 1000),
        ("softmax", "d=202: a1=:0.5 a0=:0.3 b=0.1:0.2 c=0.1:0.5", 10**9),
        ("linear", "d=102: a1=:1.2 a0=:0.3 b=0.1:0.2 c=0.1:", 1000),
        ("power:beta=5/2", "d=102: a1=:1.2 a0=:0.3 b=0.1:0.2 c=0.1:", 10**5),
        ("taylor:order=3", "d=102: a1=:1.2 a0=:0.3 b=0.1:0.2 c=0.1:", 10**5),
    ],
)
def test_bounds_hold_at_two_thousand_points(mechanism: str, ranges: str, start: int) -> None:
    rng, proof = random.Random(mechanism + ranges), prove_uniformly(mechanism, ranges, start=start)
    assert proof.verdict is not None
    columns: dict[str, list[Any]] = {name: [] for name in ("n", "d", "a0", "a1", "b", "c")}
    while len(columns["n"]) < 2000:
        values = {name: draw_inside(rng, box, Fraction(2)) for name, box in proof.boxes.items() if name != "d"}
        if values["a0"] >= values["a1"] or min(values["b"], values["c"]) <= 0:
            continue
        assert proof.boxes["d"].low is not None
        d = int(proof.boxes["d"].low) + rng.choice([0, 0, 1, rng.randint(2, 300)])
        first = -(-start // (d - 2))
        n = (d - 2) * rng.choice([first, first + 1, first + rng.randint(0, 10**4), first * 10 ** rng.randint(1, 30)])
        for name, value in {**values, "n": n, "d": d}.items():
            columns[name].append(value)
    grid = evaluate(Spike, mechanism_from(mechanism), Grid({"m": 12}, (columns,)))
    error = 1e-9  # of the closed form in float64
    assert proof.at_least is None or grid.distinguish.min() >= proof.at_least - error
    assert proof.at_most is None or grid.distinguish.max() <= proof.at_most + error
    assert grid.p0.max() <= proof.p_at_most + error
    assert grid.p1.min() >= (proof.triples or 0) / 8 - error
    assert proof.triples is not None or grid.p1.max() <= proof.p_at_most + error


def test_how_tight_the_bounds_are() -> None:
    """At the corner of the ranges, relative to the probability of a failure: factors that are stated in the docs."""
    for mechanism, corner, factor in (
        ("softmax", {}, 1.2),
        ("linear", {}, 220),
        ("taylor:order=3", {"n": 10**5}, 300),
        ("softmax", {"a1": "0.5", "n": 10**9}, 300),
    ):
        above = mechanism == "softmax" and not corner
        ranges = f"d=102: a0=:0.01 a1={corner.get('a1', '1.2')}:" if above else f"d=102: a1=:{corner.get('a1', '1.2')}"
        proof = prove_uniformly(mechanism, ranges, {"n": 1000, **corner})
        outcome = sx.verdict("spike", mechanism, {**Spike.example, **corner}).outcome
        bound, exact = proof.at_most, 1 - (1 - float(outcome.p0)) ** 12
        if proof.at_least is not None:
            bound, exact = 1 - proof.at_least, 1 - outcome.distinguish
        assert bound is not None
        assert exact <= bound < factor * exact


def test_a_bound_takes_less_than_a_tenth_of_a_second() -> None:
    prove_uniformly("softmax", RANGES)
    for mechanism, ranges in (("softmax", RANGES), ("linear", "d=102: a1=:1.2"), ("power:beta=99/2", "d=102: a1=:0.1")):
        start = time.process_time()
        prove_uniformly(mechanism, ranges, start=10**300)
        assert time.process_time() - start < 0.1


def test_corner_cases() -> None:
    points: list[tuple[str, str, dict[str, Any], str | None]] = [
        ("softmax", "d=1e9: a1=1.2: a0=:0.01", {"n": 10**30, "m": 10**6}, "distinguishes"),
        ("linear", "d=1e9: a1=:1.2", {"n": 10**30, "m": 10**1000}, "blind"),  # m p is below every float
        ("softmax", "d=102: a1=1.2: a0=0", {"m": 1}, None),  # P <= 1/2
        ("softmax:temperature=1.79", "d=102: a1=1.2: a0=:0.01", {"n": 10**30}, "distinguishes"),  # s1 is just above 1
        ("softmax:temperature=1/1000", "d=102: a1=0.7: a0=0", {}, "distinguishes"),
        ("softmax", "d=102:102 a1=1.2:1.2 a0=0.01:0.01", {}, "distinguishes"),
        ("linear", "d=102: a1=1e-9:1e-9 a0=0", {}, "blind"),
    ]
    for mechanism, ranges, parameters, verdict in points:
        proof = prove_uniformly(mechanism, ranges, parameters)
        assert proof.verdict == verdict, ranges
        assert check_document(json.loads(json.dumps(certify_uniformly(proof)))).holds, ranges
    tight = prove_uniformly("softmax", "d=102: a1=1.2: a0=:0.01", delta="0.00029")
    assert tight.verdict is None
    assert prove_uniformly("softmax", "d=102: a1=1.2: a0=:0.01", delta="0.0003").verdict == "distinguishes"
    for m, reason in ((10**10, "a larger d or a smaller m"), (0, "m=0 is too small")):
        with pytest.raises((EngineRefusal, UsageError), match=reason):
            prove_uniformly("softmax", "d=102: a1=1.2: a0=:0.01", {"m": m})


def test_the_theorem_at_the_reference_point(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "prove", "spike", "softmax,linear", "--theorem")
    assert code == 0
    text = " ".join(out.split())
    assert "softmax distinguishes D0 from D1 for every n >= 1000 and d >= 102" in text
    assert "P >= 0.999708" in text
    assert "P <= 0.000240465" in text
    softmax = prove_uniformly("softmax", "d=102: a1=1.2: a0=:0.01")
    exact = sx.prove("spike", "softmax")
    assert softmax.at_least is not None
    assert softmax.at_least <= exact.least
    assert 1 - softmax.at_least < 1.2 * (1 - exact.least)  # tight within 20 % of the failure probability


@pytest.mark.parametrize(
    ("mechanism", "ranges", "hypothesis"),
    [
        ("softmax", "d=102: a1=0.8:", "s1 > 1"),
        ("softmax", "d=102: a1=:1.2", "s1 > 1"),
        ("softmax", "d=102: a0=0.01:", "an upper bound of a0"),
        ("softmax", "d=102: a0=:4", "s0 < 1"),
        ("softmax", "d=102: c=0.1:", "an upper bound of c"),
        ("softmax", "d=102: a1=0.862:", "n (s1-1) >= s1, which holds from n = 610 on"),
        ("softmax", "d=102: b=1.15:1.3", "its bound (1-p)^m - (1-k/8)^m is not positive"),
        ("linear", "d=102: a1=1.2:", "an upper bound of a1"),
        ("linear", "d=102: b=:0.2 c=:0.1", "b + c has a positive lower bound"),
        ("linear", "d=102: a1=:40", "eta"),
        ("softmax", "d=102: a1=:0.85", "eta"),
        ("taylor:order=4", "d=102: a1=:1.2", "a larger n is needed"),
        ("relu", "d=102: a1=:1.2", "softmax, linear, power or taylor, not relu"),
    ],
)
def test_a_failing_hypothesis_is_named(mechanism: str, ranges: str, hypothesis: str) -> None:
    parameters = {"n": 500} if "0.862" in ranges else {}
    with pytest.raises(EngineRefusal, match=r"^open: the uniform theorem does not apply") as refusal:
        prove_uniformly(mechanism, ranges, parameters)
    assert hypothesis in str(refusal.value)
    assert "known instead" in str(refusal.value)


def test_without_the_hypotheses_the_statements_are_false() -> None:
    assert sx.prove("spike", "softmax", a1="0.8").eventually.verdict == "blind"  # s1 < 1
    assert sx.prove("spike", "softmax", a0="1.1", m=12).eventually.verdict != "distinguishes"  # s0 > 1
    assert sx.prove("spike", "linear", d=7, m=5, a0=0, a1=1, b="0.1", c="0.2").eventually.verdict == "partial"  # width
    assert sx.verdict("spike", "linear", a1=40, n=1000).word != "blind"  # no upper bound of a1


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("spike softmax --for b=0.3:0.1", "b=0.3:0.1 is empty: 0.3 exceeds 0.1"),
        ("spike softmax --for d=3:", "d=3: is out of range"),
        ("spike softmax --for d=:200", "d=:200 is out of range"),
        ("spike softmax --for n=3:", "n cannot have a range here"),
        ("spike softmax --for a1=1:2:3", "a1=1:2:3 is no range"),
        ("spike softmax --for a1=:", "a1=: is no range"),
        ("spike linear --for a1=0.1:0.2;", "is not a number"),
        ("spike linear --for a0=2:", "a0 must be smaller than a1"),
        ("spike linear --for a0=:5", "give a0 an upper end of at most 1.2"),
        ("spike softmax tau=0.4 --theorem", "tau = c + 0.1"),
        ("spike softmax x=1 --theorem", "no parameter x"),
        ("spike softmax --theorem --from 2", "n=2 is too small"),
        ("cross softmax --theorem", "are about spike, not about cross"),
        ("spike softmax,linear --theorem --certificate p.json", "a certificate is of one mechanism, not of 2"),
        ("spike softmax --theorem --out p.csv", "--coq and --out are for fixed parameters"),
        ("spike softmax --theorem --coq p.v", "--coq and --out are for fixed parameters"),
    ],
)
def test_bad_ranges_are_refused_in_one_line(
    words: str, complaint: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused(capsys, complaint, tmp_path, "prove", *words.split())
