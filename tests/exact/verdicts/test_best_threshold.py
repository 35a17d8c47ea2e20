"""The best threshold against brute force: literal tokens, every sign vector, every threshold, ties too."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import mpmath
import pytest
import torch

from cases import SMALL
from separatrix.constructions import CONSTRUCTIONS, Construction, ExactConstruction, construction_named
from separatrix.exact.outputs.proved import proved_outputs
from separatrix.exact.verdicts import Word, readers
from separatrix.exact.verdicts.sign_states import sign_states
from separatrix.mechanisms import mechanism_named

BLOCKS = {"n": 4, "d": 4, "m": 3, "a0": "0.05", "a1": "1.1", "b": "0.55", "c": "0.3"}
POINTS: list[tuple[str, dict[str, object]]] = [
    *SMALL.items(),
    ("spike", BLOCKS),
    ("spike", {**BLOCKS, "n": 16, "d": 6, "a0": "0.25", "b": "0.5", "form": "identity"}),
    ("spike", {**BLOCKS, "n": 3, "d": 5, "a0": 0, "a1": "0.5", "b": "0.5", "c": "0.5"}),
    ("cross", {**BLOCKS, "r_Q": 1}),
    ("cross", {**BLOCKS, "n": 9, "d": 5, "r_Q": "0.5"}),
    ("location", {"n": 4, "d": 4, "m": 3}),
    ("location", {"n": 12, "d": 6, "m": 7, "b": "0.5"}),
    ("plain", {"n": 3, "m": 7}),
    ("plain", {"n": 6, "m": 2, "peak": "0.7"}),
    ("majority", {"n": 4, "m": 3, "groups": 3}),
    ("majority", {"n": 7, "m": 2, "groups": 3, "noise": 1}),
    ("parity", {"n": 32, "m": 1, "b": "0.11", "tau": "0.11"}),
    ("regression", {"n": 4, "m": 1, "width": 2, "a0": "0.5"}),
]
"""Small points of every construction with exact tokens; where signs, tokens and tau coincide, too."""
NEAR = mpmath.mpf(10) ** -30


def test_every_construction_is_tried() -> None:
    assert {name for name, _ in POINTS} == set(CONSTRUCTIONS) - {"rough"}


def _exact(numbers: torch.Tensor, unit: float) -> list[list[Fraction]]:
    """Entries are short decimals or small fractions, times a unit."""
    return [[Fraction(x / unit).limit_denominator(5000) for x in row] for row in numbers.tolist()]


def _tokens(made: Construction, label: int) -> tuple[list[list[Any]], Any, list[list[Any]]]:
    """The logits of every query, their unit, and the values, in exact numbers, from literal tokens."""
    tokens = made.dense(label, 0, torch.float64)
    with mpmath.workdps(50):
        log_n = mpmath.log(made.n)
        if tokens.values is None:
            p = made.parameters
            base, peak = mpmath.log(mpmath.mpf(p.base.numerator) / p.base.denominator), p.peak * log_n
            logits = [[peak if label and i == 0 else base for i in range(made.n)]]
            return logits, 1, [[Fraction(i == j) for j in range(made.n)] for i in range(made.n)]
    unit = float(log_n) if isinstance(made, ExactConstruction) and made.logit_base else 1.0
    units = (1.0, unit) if isinstance(made, ExactConstruction) else (made.unit, made.unit)
    if made.name == "location":
        units = (1.0, made.unit**2)
    queries, keys = (_exact(x, u) for x, u in zip((tokens.queries, tokens.keys), units, strict=True))
    logits = [[sum(map(Fraction.__mul__, q, k), Fraction(0)) for k in keys] for q in queries]
    plain = isinstance(made, ExactConstruction) and made.logit_base is None
    return logits, 1 if plain else log_n, _exact(tokens.values, made.unit)


def _score(kernel: str, logit: Any, unit: Any) -> Any:
    """linear and power stay rational: the unit cancels."""
    if kernel == "linear":
        return logit
    if kernel == "power:beta=2":
        return logit**2
    z = unit * _number(logit)
    return mpmath.exp(z) if kernel == "softmax" else 1 + z + z * z / 2


def brute_force(made: Construction, kernel: str) -> float:
    """The largest P over all thresholds, with peaks nearer than 1e-30 taken for equal."""
    peaks: list[list[Any]] = []
    with mpmath.workdps(50):
        for label in (0, 1):
            logits, unit, values = _tokens(made, label)
            rows = []
            for row in {tuple(row) for row in logits}:
                scores = [_score(kernel, logit, unit) for logit in row]
                total = sum(scores)
                carried = zip(*values, strict=True)
                rows.append([sum(map(_times, scores, each)) / total for each in carried])
            signs = product((1, -1), repeat=len(rows[0]))
            peaks.append([max(sum(map(_times, row, y)) for row in rows) for y in signs])
        levels = sorted({mpmath.mpf(0), *(_number(x) for each in peaks for x in each)})
        taus = [(low + high) / 2 for low, high in pairwise(levels) if high - low > NEAR and low > -NEAR]
        fired = [[[_number(x) > tau for x in each] for each in peaks] for tau in taus]
    return max((_chance(*each, made.m) for each in fired), default=0.0)


def _times(x: Any, y: Any) -> Any:
    return x * _number(y) if isinstance(x, mpmath.mpf) else x * y


def _number(x: Any) -> Any:
    return x if isinstance(x, mpmath.mpf) else mpmath.mpf(Fraction(x).numerator) / Fraction(x).denominator


def _chance(d0: list[bool], d1: list[bool], m: int) -> float:
    silent = Fraction(d0.count(False), len(d0))
    neither = Fraction(sum(not one and not other for one, other in zip(d0, d1, strict=True)), len(d0))
    return float(silent**m - neither**m)


@pytest.mark.parametrize("kernel", ["softmax", "linear", "power:beta=2", "taylor:order=2"])
@pytest.mark.parametrize(("name", "values"), POINTS)
def test_no_threshold_beats_the_best_one(name: str, values: dict[str, object], kernel: str) -> None:
    found = readers(name, kernel, values)
    assert found.threshold is not None
    outcome = found.threshold.outcome
    assert outcome.interval[0] == outcome.interval[1]
    assert outcome.engine == ("closed" if name == "routing" else "certified")
    assert outcome.distinguish == pytest.approx(brute_force(found.construction, kernel), abs=1e-14)


@pytest.mark.parametrize("spelling", ["hardmax", "elu", "topk:k=1", "window:size=2", "delta"])
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("spike", BLOCKS),
        ("cross", {**BLOCKS, "r_Q": 1}),
        ("location", {"n": 4, "d": 4, "m": 3}),
        ("majority", {"n": 4, "m": 3, "groups": 3}),
        ("plain", {"n": 4, "m": 3}),
        ("rough", {**BLOCKS, "noise": "0.1"}),
    ],
)
def test_as_many_signs_as_tokens(name: str, values: dict[str, object], spelling: str) -> None:
    """Not only `plain`, whose tokens carry a sign each, may have them."""
    found = readers(name, spelling, values)
    assert found.construction.signs == found.construction.n == 4
    assert found.threshold is not None
    assert found.threshold.outcome.distinguish >= found.fixed.outcome.distinguish
    if found.linear is not None:
        assert sum(each.copies for each in found.linear.features) == 4


def test_a_tie_that_no_precision_decides_is_not_certified() -> None:
    """The scores 5 and 2 of the logits 4 and 1 give exactly tau, which balls cannot know."""
    found = readers("dispersion", "taylor:order=1", {"n": 12, "m": 1, "tau": "5/27"})
    assert found.fixed.word == "undecided"
    assert found.threshold is not None
    assert found.threshold.outcome.interval == (0.5, 0.5)
    assert found.threshold.tau != Fraction(5, 27)
    assert "but those within" in found.threshold.among
    assert found.verdict.word is Word.OPEN
    assert "P between 0 and 0.5" in found.verdict.evidence
    assert "undecided (P between 0 and 0.5)" in found.sentence


@pytest.mark.parametrize(("kernel", "exact"), [("linear", True), ("power:beta=2", True), ("softmax", False)])
def test_rational_pre_activations_are_compared_exactly(kernel: str, exact: bool) -> None:
    made = construction_named("spike").read({**BLOCKS, "n": 9, "d": 5})
    states = sign_states(made, [proved_outputs(made, mechanism_named(kernel))])
    assert [each.scale.off == 0 for each in states] == [exact]
