"""Uniform theorems: bounds for every n, every larger d and ranges of amplitudes."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path

import pytest

import separatrix as sx
from expectations import assert_refused, run
from separatrix.core.errors import EngineRefusal
from separatrix.exact.proofs.uniform import Box, prove_uniformly

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
