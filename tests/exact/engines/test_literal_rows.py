"""Mechanisms without a scalar kernel, on huge inputs, against their formulas in hundreds of digits."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction

import mpmath
import pytest

from separatrix.constructions import CONSTRUCTIONS, Description, ExactConstruction
from separatrix.core.parameters import UsageError
from separatrix.exact.engines import EngineRefusal, closed
from separatrix.exact.engines.enumerated import sign_vectors
from separatrix.mechanisms import mechanism_named

DIGITS = 700
Numbers = Sequence[mpmath.mpf]
Weights = Callable[[Numbers, Numbers], list[mpmath.mpf]]


def softmax(logits: Numbers, counts: Numbers) -> list[mpmath.mpf]:
    top = max(logits)
    scores = [c * mpmath.exp(z - top) for z, c in zip(logits, counts, strict=True)]
    return [score / sum(scores) for score in scores]


def logn_softmax(logits: Numbers, counts: Numbers) -> list[mpmath.mpf]:
    return softmax([mpmath.log(sum(counts)) * z for z in logits], counts)


def sigmoid(logits: Numbers, counts: Numbers) -> list[mpmath.mpf]:
    n = sum(counts)
    return [c / (1 + n * mpmath.exp(-z)) for z, c in zip(logits, counts, strict=True)]


def relu(logits: Numbers, counts: Numbers) -> list[mpmath.mpf]:
    return [c * max(z, mpmath.mpf(0)) / sum(counts) for z, c in zip(logits, counts, strict=True)]


def hardmax(logits: Numbers, counts: Numbers) -> list[mpmath.mpf]:
    best = [c if z == max(logits) else mpmath.mpf(0) for z, c in zip(logits, counts, strict=True)]
    return [c / sum(best) for c in best]


def sparsemax(logits: Numbers, counts: Numbers) -> list[mpmath.mpf]:
    order = sorted(set(logits), reverse=True)
    for lowest in order[::-1]:
        kept = [(z, c) for z, c in zip(logits, counts, strict=True) if z >= lowest]
        tau = (sum(z * c for z, c in kept) - 1) / sum(c for _, c in kept)
        if lowest > tau:
            break
    return [c * max(z - tau, mpmath.mpf(0)) for z, c in zip(logits, counts, strict=True)]


FORMULAS: dict[str, Weights] = {
    "logn-softmax": logn_softmax,
    "sigmoid": sigmoid,
    "relu": relu,
    "hardmax": hardmax,
    "sparsemax": sparsemax,
}


def number(value: Fraction | float) -> mpmath.mpf:
    exact_value = Fraction(value)
    return mpmath.mpf(exact_value.numerator) / exact_value.denominator


def inner(query: Sequence[Fraction | float], key: Sequence[Fraction | float]) -> Fraction:
    return sum((Fraction(a) * Fraction(b) for a, b in zip(query, key, strict=True)), Fraction(0))


def fires(made: ExactConstruction, description: Description, formula: Weights) -> list[bool]:
    """For every sign vector whether some row exceeds the threshold; what is nearer than 1e-300 is a tie."""
    unit = mpmath.mpf(1) if made.logit_base is None else mpmath.log(made.logit_base)
    counts = [mpmath.mpf(kind.count) for kind in description.groups]
    over = []
    for query in description.queries:
        products = [
            sum(Fraction(a) * Fraction(b) for a, b in zip(query, kind.key, strict=True)) for kind in description.groups
        ]
        weights = formula([number(each) * unit for each in products], counts)
        values = [[number(x) for x in kind.value] for kind in description.groups]
        row = [sum(w * v[i] for w, v in zip(weights, values, strict=True)) for i in range(made.signs)]
        over.append(
            [
                sum(y * x for y, x in zip(signs, row, strict=True)) - number(made.tau)
                for signs in sign_vectors(made.signs)
            ]
        )
    return [max(each) > mpmath.mpf(10) ** -300 for each in zip(*over, strict=True)]


def points(count: int) -> list[tuple[ExactConstruction, str]]:
    pick, found = random.Random(11), []
    kinds = [kind for kind in CONSTRUCTIONS.values() if issubclass(kind, ExactConstruction) and kind.rational]
    while len(found) < count:
        kind = pick.choice(kinds)
        given = {**kind.example, "n": int(10 ** pick.uniform(1, 300))}
        for name in kind.schema.model_fields:
            if name not in ("n", "m") and pick.random() < 0.5:
                given[name] = str(Fraction(pick.randrange(1, 3000), pick.choice([1000, 1000, 1])))
        try:
            made = kind.read(given)
        except UsageError:
            continue
        if made.signs <= 4 and isinstance(made, ExactConstruction):
            found.append((made, pick.choice(list(FORMULAS))))
    return found


def test_answers_at_huge_n_are_those_of_the_formulas() -> None:
    """Or there is none: float64 refuses or leaves open what it cannot know."""
    answered = 0
    for made, spelling in points(80):
        try:
            found = closed.solve(made, mechanism_named(spelling))
        except EngineRefusal:
            continue
        with mpmath.workdps(DIGITS):
            truth = [fires(made, each, FORMULAS[spelling]) for each in made.descriptions]
        shares = [Fraction(sum(each), len(each)) for each in truth]
        if isinstance(found.p0, Fraction):
            answered += 1
            assert [found.p0, found.p1] == shares, (made.name, made.parameters, spelling)
        else:
            assert found.interval[0] < found.interval[1]
    assert answered > 40


@pytest.mark.parametrize("gap", ["1e-16", "1e-15"])
def test_hardmax_does_not_take_a_small_gap_for_a_tie(gap: str) -> None:
    """Logits closer than their rounding are told apart by the formula, not by float64: so it says nothing."""
    point = {"n": 1000, "m": 12, "rho": str(1 - Fraction(gap))}
    made = CONSTRUCTIONS["critical"].read(point)
    with mpmath.workdps(DIGITS):
        truth = fires(made, made.descriptions[1], hardmax)
    assert truth == [True, False]
    try:
        found = closed.solve(made, mechanism_named("hardmax"))
    except EngineRefusal:
        return
    assert not isinstance(found.p1, Fraction)
