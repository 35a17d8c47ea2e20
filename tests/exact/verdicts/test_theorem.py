"""Whether the separation theorem covers a point: every reason why not, and the n from which it applies."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

import separatrix as sx
from expectations import run
from separatrix.analysis.cards.illustration import illustrate_at
from separatrix.constructions.spike import Spike
from separatrix.constructions.theorem import required_signs, required_width, sufficient_n
from separatrix.exact.verdicts import DELTA
from separatrix.exact.verdicts.theorem import TheoremCoverage, theorem_coverage
from separatrix.mechanisms import Linear, Softmax, mechanism_named

COVERED: dict[str, Any] = {"n": 1000, "d": 102, "m": 17, "a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1"}
UNCOVERED = "The theorem does not cover this point: it needs "


def coverage(mechanism: str = "softmax", **changes: object) -> TheoremCoverage:
    found = theorem_coverage(Spike.read({**COVERED, **changes}), mechanism_named(mechanism), DELTA)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"m": 12}, "m >= 17, here m = 12"),
        ({"d": 52}, "d >= 73, here d = 52"),
        ({"a1": "0.8"}, "a1(a1+b+c) > 1, here 0.88"),
        ({"a0": "0.9"}, "a0(a0+b+c) < 1, here 1.08"),
        ({"b": "1.15", "d": 2502, "n": 2500}, "a1 - b > 0.1, here 0.05"),
        ({"tau": 10}, "tau = c + 0.1 = 0.2, here tau = 10"),
        ({"tau": "0.2000001"}, "tau = c + 0.1 = 0.2, here tau = 0.2000001"),
        ({"form": "identity"}, "form=ones, here form=identity"),
        ({"mechanism": "relu"}, "softmax (temperature 1) or linear attention, here relu"),
        (
            {"mechanism": "softmax:temperature=2"},
            "softmax (temperature 1) or linear attention, here softmax:temperature=2",
        ),
    ],
)
def test_a_hypothesis_that_fails_is_named_with_its_value(changes: dict[str, object], reason: str) -> None:
    found = coverage(**changes)
    assert found.unmet == (reason,)
    assert not found.applies
    assert found.sentence() == f"{UNCOVERED}{reason}."


def test_all_reasons_are_given() -> None:
    found = coverage("power:beta=4", m=12, tau=10, form="identity", a1="0.2")
    assert [reason.split(",")[0].split(" ")[0] for reason in found.unmet] == [
        *("a1(a1+b+c)", "a1", "m", "tau", "form=ones", "softmax")
    ]


@pytest.mark.parametrize("mechanism", ["softmax", "softmax:temperature=1", "linear"])
def test_the_usual_threshold_written_out_is_covered(mechanism: str) -> None:
    assert coverage(mechanism, tau="0.2").applies
    assert coverage(mechanism, tau="1/5") == coverage(mechanism)


def test_other_constructions_have_nothing_to_do_with_it() -> None:
    for name in ("plain", "cross", "duplication"):
        assert sx.verdict(name, "softmax").theorem == ""


def random_setting(draw: random.Random) -> tuple[dict[str, Any], Fraction]:
    """A point that meets every hypothesis, with no more m and d than they ask for."""
    delta = Fraction(1, draw.choice([4, 10, 100, 10_000]))
    while True:
        b, c = Fraction(draw.randint(1, 80), 100), Fraction(draw.randint(1, 100), 100)
        a1 = b + Fraction(draw.randint(11, 150), 100)
        a0 = a1 * Fraction(draw.randint(0, 60), 100)
        if a1 * (a1 + b + c) > 1 > a0 * (a0 + b + c):
            break
    m = required_signs(delta) + draw.randint(0, 3)
    d = max(required_width(float(b), m, delta), 4)
    return {"d": d, "m": m, "a0": a0, "a1": a1, "b": b, "c": c}, delta


def test_the_conclusion_is_true_from_the_n_that_is_stated() -> None:
    """Exact probabilities at that n and beyond it, at points with the least m and d."""
    draw = random.Random(0)
    checked = 0
    for _ in range(60):
        setting, delta = random_setting(draw)
        for mechanism, sign in ((Softmax(), 1), (Linear(), -1)):
            start = sufficient_n(setting, delta, [mechanism.name])
            if start is None or start > 10**60:
                continue
            for factor in (1, 2, 7, 10**3, 10**9):
                n = start * factor
                at = {name: str(value) for name, value in setting.items()}
                found = sx.verdict("spike", mechanism, {**at, "n": n}, engine="closed", delta=delta)
                stated = theorem_coverage(found.construction, mechanism, delta)
                assert stated is not None
                assert stated.applies
                p, bound = found.outcome.distinguish, 1 - 2 * delta if sign > 0 else delta
                assert sign * (p - bound) >= -1e-12, (setting, n, stated.sentence())
                checked += 1
    assert checked > 300


def test_the_stated_n_is_the_least_that_is_proved_and_larger_ones_are_proved_too() -> None:
    from separatrix.constructions.theorem import _is_sufficient

    draw = random.Random(1)
    for _ in range(40):
        setting, delta = random_setting(draw)
        start, step = sufficient_n(setting, delta), setting["d"] - 2
        if start is None:
            continue
        units = ("softmax", "linear")
        assert start % step == 0
        assert all(_is_sufficient(setting, start + step * k, delta, units) for k in (0, 1, 5, 100, 10**9))
        assert start == step or start - step < 3 or not _is_sufficient(setting, start - step, delta, units)


def test_below_that_n_the_theorem_is_not_said_to_apply() -> None:
    found = coverage(a1="0.87")
    assert not found.applies
    assert found.sentence(exact=True) == (
        "The theorem's hypotheses hold, but it is about large n: P >= 0.98 is proved from n = 18174543800 "
        "on, here n = 1000. The probabilities are still exact."
    )
    assert coverage(a1="0.87", n=18174543800).applies


@pytest.mark.parametrize(
    ("engine", "end"),
    [("certified", "The probabilities are still exact."), ("closed", "This does not affect the probabilities.")],
)
def test_only_certified_probabilities_are_called_exact(engine: str, end: str) -> None:
    assert sx.verdict("spike", "softmax", engine=engine).theorem.endswith(f"here m = 12. {end}")


def test_a_threshold_in_n_that_is_not_known_is_not_implied() -> None:
    at = coverage(a1="0.86119")  # a1(a1+b+c) is just above 1
    assert not at.unmet
    assert at.proved_from is None
    assert "threshold is not known here" in at.sentence()
    assert "says nothing about n = 1000" in at.sentence()


def test_a_long_bound_is_written_with_delta() -> None:
    delta = Fraction(1, 10**100)
    at = Spike.read({**COVERED, "n": 2500 * 10**6, "m": 900, "d": 2502})
    found = theorem_coverage(at, Softmax(), delta)
    assert found is not None
    assert found.sentence().startswith("The theorem covers this point: P >= 1 - 2 delta for every n >= ")


def test_the_least_m_is_exact_where_logarithms_are_rounded() -> None:
    for m in (1, 2, 3, 10, 100, 501):
        assert required_signs(Fraction(3, 4) ** m) == m
        assert required_signs(Fraction(3, 4) ** m * Fraction(10**9 - 1, 10**9)) == m + 1


@pytest.mark.parametrize("mechanism", ["softmax", "linear"])
def test_every_place_says_the_same(mechanism: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = sx.verdict("spike", mechanism, **COVERED)
    said = found.theorem
    assert said.startswith("The theorem covers this point: P ")
    assert said in found.as_json()["remarks"]
    words = [f"{name}={value}" for name, value in COVERED.items()]
    assert said in " ".join(run(capsys, "verdict", "spike", mechanism, *words)[1].split())
    both = " ".join(run(capsys, "verdict", "spike", "softmax,linear", *words)[1].split())
    assert f"{mechanism}: {said}" in both
    assert illustrate_at("spike", mechanism, COVERED).theorem == said
    assert f"{mechanism}: {said}" in illustrate_at("spike", "softmax,linear", COVERED).theorem


def test_the_page_of_pictures_names_a_threshold_and_a_mechanism_outside_the_theorem() -> None:
    assert f"{UNCOVERED}tau = c + 0.1 = 0.2, here tau = 10." == (
        illustrate_at("spike", "softmax,linear", {**COVERED, "tau": "10"}).theorem
    )
    said = illustrate_at("spike", "softmax,relu", COVERED).theorem
    assert "softmax: The theorem covers" in said
    assert f"relu: {UNCOVERED}softmax (temperature 1) or linear attention, here relu." in said


def test_sampled_probabilities_are_not_called_exact() -> None:
    found = sx.verdict("spike", "relu", {**COVERED, "m": 12}, sampling=sx.Sampling(draws=20))
    assert found.theorem.startswith(f"{UNCOVERED}m >= 17, here m = 12")
    assert "exact" not in found.theorem
