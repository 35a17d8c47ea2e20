"""Statements for every n against the certified engine at single n: other code for the same probabilities."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import pytest

import separatrix as sx
from separatrix.constructions.cross import Cross
from separatrix.constructions.spike import Spike
from separatrix.exact.engines import certified
from separatrix.exact.proofs import Proof, prove
from separatrix.mechanisms.load import mechanism_from

MECHANISMS = ("softmax", "linear", *(f"power:beta={beta}" for beta in range(1, 9)), "softmax:temperature=1/2")
ALL_MECHANISMS = (*MECHANISMS[::3], "softmax:temperature=3", *(f"taylor:order={order}" for order in range(1, 7)))


def require_agreement(proof: Proof, point: Mapping[str, Any], sizes: Iterable[int]) -> int:
    """Require the fractions of the certified engine at these t; return the number of compared t."""
    columns = proof.construction.step
    compared = 0
    for t in sorted(set(sizes)):
        if columns * t < proof.start:
            continue
        count = certified.count(type(proof.construction).read({**point, "n": columns * t}), proof.mechanism)
        assert count.is_decided
        neuron = count.low
        piece = [piece for piece in proof.pieces if piece.t <= t][-1]
        assert piece.neuron == neuron, (proof.mechanism.spelled, point, t)
        compared += 1
    return compared


def around_changes(proof: Proof) -> set[int]:
    """Every t at which a firing threshold changes or turns, with its neighbours."""
    changes = {t for line in proof.lines for t in (*line.turns, *(t for t, _ in line.steps))}
    return {t + shift for t in changes for shift in (-1, 0, 1)}


def draw_point(rng: random.Random) -> dict[str, Any]:
    """Draw a point; the small denominators make ties and rational powers frequent."""
    q = rng.choice([2, 4, 5, 10, 100])

    def amplitude(low: float, high: float) -> str:
        return str(Fraction(rng.randint(int(low * q), int(high * q)), q))

    a1 = amplitude(1 / q, 2)
    a0 = rng.choice(["0", str(Fraction(a1) * Fraction(rng.randint(0, 9), 10))])
    point = {"d": rng.choice([4, 5, 6, 7, 9, 12, 20, 102]), "m": rng.choice([1, 2, 12, 17]), "a0": a0, "a1": a1}
    point |= {"b": amplitude(1 / q, 1), "c": amplitude(1 / q, 1)}
    return point | ({"tau": amplitude(1 / q, 1)} if rng.random() < 0.3 else {})


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(4, 60))]
)
def test_random_points_agree_at_every_change_and_at_random_n(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(12):
        point, mechanism = draw_point(rng), rng.choice(MECHANISMS)
        proof = prove("spike", mechanism, point, start=rng.choice([3, 10, 1000, 10**6]))
        changes = sorted(around_changes(proof))
        sizes = rng.sample(changes, min(len(changes), 10))
        sizes += [int(10 ** rng.uniform(0, 30)) for _ in range(4)]
        sizes += [rng.randint(2, 12) ** rng.randint(1, 20) for _ in range(4)]  # n^s is rational at some of them
        require_agreement(proof, point, sizes)


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(4, 60))]
)
def test_random_points_of_all_cases_agree_at_changes_and_at_random_n(seed: int) -> None:
    rng = random.Random(f"all {seed}")
    for case in ("identity", "cross", "ones", "identity"):
        point, mechanism = draw_point(rng), rng.choice(ALL_MECHANISMS)
        point |= {"r_Q": str(Fraction(rng.randint(1, 12), 4))} if case == "cross" else {"form": case}
        proof = prove("cross" if case == "cross" else "spike", mechanism, point, start=rng.choice([3, 10, 1000, 10**6]))
        changes = sorted(around_changes(proof))
        sizes = rng.sample(changes, min(len(changes), 12))
        sizes += [int(10 ** rng.uniform(0, 30)) for _ in range(4)]
        sizes += [rng.randint(2, 12) ** rng.randint(1, 20) for _ in range(4)]
        require_agreement(proof, point, sizes)


@pytest.mark.parametrize("mechanism", ["softmax", "linear", "power:beta=3", "taylor:order=2"])
@pytest.mark.parametrize("construction", [Spike, Cross])
def test_every_change_at_the_reference_points(construction: type[Spike | Cross], mechanism: str) -> None:
    proof = prove(construction.name, mechanism)
    assert require_agreement(proof, {**construction.example, "n": 1}, around_changes(proof)) >= 3


@pytest.mark.parametrize("mechanism", ["softmax", "linear", "power:beta=3", "taylor:order=2", "taylor:order=4"])
def test_every_change_with_inner_products(mechanism: str) -> None:
    point = {"d": 12, "m": 5, "a0": "0.3", "a1": "1.5", "b": "0.6", "c": "0.4", "form": "identity"}
    proof = prove("spike", mechanism, point, start=10)
    assert require_agreement(proof, point, around_changes(proof)) >= 20


@pytest.mark.parametrize("d", range(4, 13))
def test_small_n_exhaustively(d: int) -> None:
    for (a0, a1), (b, c), mechanism in product(
        [("0", "1"), ("1/2", "1"), ("1/4", "3/4")],
        [("1/2", "1/2"), ("1/4", "1")],
        ["softmax", "linear", "power:beta=2", "taylor:order=2"],
    ):
        point = {"d": d, "m": 3, "a0": a0, "a1": a1, "b": b, "c": c, "tau": "1/2"}
        require_agreement(prove("spike", mechanism, point, start=3), point, range(1, 9))
        identity = {**point, "form": "identity"}  # from t = 1 on, where the spike is alone in its block
        require_agreement(prove("spike", mechanism, identity, start=3), identity, range(1, 9))


@pytest.mark.parametrize(
    ("amplitudes", "exponent"),
    [
        ({"a0": "0", "a1": "1/2", "b": "1/2", "c": "1"}, 1),  # s1 = 1: the limit of T is not the end of the range
        ({"a0": "1/4", "a1": "1/2", "b": "1/4", "c": "1/4", "tau": "1/2"}, Fraction(1, 2)),
        ({"a0": "0", "a1": "1/2", "b": "1/4", "c": "1/4", "tau": "1/4"}, Fraction(1, 2)),
    ],
)
def test_ties_at_rational_powers(amplitudes: dict[str, str], exponent: Fraction) -> None:
    """At perfect powers n^s is rational, and pre-activations equal tau exactly at some of them."""
    a1, b, c = (Fraction(amplitudes[name]) for name in ("a1", "b", "c"))
    assert a1 * (a1 + b + c) == exponent
    ties = 0
    for d in (4, 6, 11):
        point = {"d": d, "m": 5, **amplitudes}
        proof = prove("spike", "softmax", point, start=3)
        squares = [(d - 2) * k * k for k in range(1, 30)]
        require_agreement(proof, point, [*range(1, 60), *squares, *around_changes(proof)])
        for line, t in product(proof.lines, range(line_start(proof), 60)):
            for plus in range(d - 2):
                ties += line.excess(plus).sign((d - 2) * t) == 0
    assert ties > 0


@pytest.mark.parametrize(
    ("construction", "mechanism", "point"),
    [
        ("spike", "softmax", {"a0": "0", "a1": "1", "b": "1/2", "c": "1/4", "tau": "1/4", "form": "identity"}),
        ("spike", "softmax", {"a0": "1/2", "a1": "3/2", "b": "1/2", "c": "1/2", "tau": "1/2", "form": "identity"}),
        ("spike", "linear", {"a0": "0", "a1": "1/2", "b": "1/4", "c": "1/4", "tau": "1/4", "form": "identity"}),
        ("spike", "taylor:order=2", {"a0": "0", "a1": "1/2", "b": "1/4", "c": "1/4", "tau": "1/4"}),
        ("spike", "taylor:order=2", {"a0": "0", "a1": "1/2", "b": "1/4", "c": "1/4", "tau": "1/4", "form": "identity"}),
        ("cross", "softmax", {"a0": "1/4", "a1": "1/2", "b": "1/4", "c": "1/4", "tau": "1/4", "r_Q": "1"}),
    ],
)
def test_ties_of_all_cases(construction: str, mechanism: str, point: dict[str, str]) -> None:
    ties = 0
    for d in (4, 7):
        values: dict[str, Any] = {"d": d, "m": 5, **point}
        proof = prove(construction, mechanism, values, start=3)
        powers = [(d - 2) ** 3 * k**4 for k in range(1, 7)]  # n is a fourth power
        sizes = [*range(1, 25), *powers, *around_changes(proof)]
        require_agreement(proof, values, sizes)
        for line, t, plus in product(proof.lines, [*range(line_start(proof), 25), *powers], range(d - 2)):
            ties += line.excess(plus).sign((d - 2) * t) == 0
    assert ties > 0


def line_start(proof: Proof) -> int:
    return proof.lines[0].start


def test_a_spike_of_zero_in_d0() -> None:
    proof = prove("spike", "softmax", a0=0, d=12, start=10)
    assert {line.turns for line in proof.lines if line.label == 0} == {()}
    require_agreement(proof, {**Spike.example, "a0": 0, "d": 12}, [*around_changes(proof), 10**29])


@pytest.mark.parametrize("form", ["ones", "identity"])
@pytest.mark.parametrize(
    "mechanism", ["softmax", "softmax:temperature=1/2", "linear", "power:beta=5", "taylor:order=3"]
)
def test_lines_are_constant_between_steps_and_monotone_between_turns(mechanism: str, form: str) -> None:
    point = {"d": 12, "m": 5, "a0": "0.3", "a1": "0.9", "b": "0.4", "c": "0.15", "form": form}
    for line in prove("spike", mechanism, point, start=10).lines:
        values = [line.least_firing_count(t) for t in range(line.start, 150)]
        steps = dict(line.steps)
        current, expected = line.steps[0][1], []
        for t in range(line.start, 150):
            current = steps.get(t, current)
            expected.append(current)
        assert values == expected
        ends = [0, *(turn - line.start + 1 for turn in line.turns), len(values)]
        for first, last in pairwise(ends):
            part = values[first:last]
            assert part in (sorted(part), sorted(part, reverse=True))
        assert line.steps[-1][1] == line.least_firing_count(None)


def test_words_are_those_of_verdict_at_every_stretch() -> None:
    for mechanism, changes in (("softmax", {"a1": "0.8"}), ("softmax", {"tau": "0.05"}), ("linear", {"tau": "0.05"})):
        proof = prove("spike", mechanism, changes)
        for stretch in proof.stretches[:: max(len(proof.stretches) // 12, 1)]:
            verdict = sx.verdict("spike", mechanism, {**changes, "n": stretch.n})
            assert (stretch.word, stretch.distinguish) == (verdict.word, verdict.outcome.distinguish)


def test_a_reader_with_a_low_threshold_is_saturated_for_ever() -> None:
    proof = prove("spike", "softmax", tau="0.001", a1="0.5", m=200)
    assert proof.eventually.verdict == "saturated"
    far = proof.construction.step * 10**20
    assert sx.verdict("spike", mechanism_from("softmax"), n=far, tau="0.001", a1="0.5", m=200).word == "saturated"
