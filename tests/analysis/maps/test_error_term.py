"""The boundary with an error term, against exact fractions at many n and d."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

import separatrix as sx
from separatrix.analysis.maps.error_term import ErrorTerm, bound_error_term
from separatrix.constructions import construction_named
from separatrix.constructions.spike import Spike
from separatrix.exact.engines import Sampling, certified
from separatrix.exact.engines.outcome import side_of_fractions
from separatrix.mechanisms import Linear, Softmax

REFERENCE = {"n": 1000, "d": 102, "m": 12, "a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1"}


def side_at(point: dict[str, object], error_term: ErrorTerm, constant: Fraction, closer: float) -> int | None:
    """The sign of P - level where a1 (a1+b+c)/temperature = 1 - constant/log n, with a1 moved by `closer`."""
    r, theta = Fraction(str(point["b"])) + Fraction(str(point["c"])), float(error_term.temperature)
    s = 1 - float(constant) / math.log(int(str(point["n"])))
    a1 = (-float(r) + math.sqrt(float(r) ** 2 + 4 * theta * max(s, 0))) / 2 + closer
    if a1 <= float(Fraction(str(point["a0"]))):  # no a1 satisfies the condition
        return None
    read = construction_named("spike").read({**point, "a1": Fraction(a1).limit_denominator(10**9)})
    neuron = certified.count(read, Softmax(temperature=error_term.temperature)).low
    return side_of_fractions(neuron.p0, neuron.only, read.m, error_term.level)


def test_the_constants_at_the_reference_point() -> None:
    found = sx.boundary("spike", "softmax", a1="0.5:1.5").error_term
    assert found is not None
    assert (found.below, found.above) == (Fraction("2.967"), Fraction("2.078"))
    middle = 1 - float(sx.boundary("spike", "softmax", a1="0.5:1.5").crossings[0].middle) * (0.6963845753 + 0.3)
    assert float(found.above) < middle * math.log(1000) < float(found.below)


@pytest.mark.parametrize("seed", [1, 2, *range(4, 12)])
def test_p_is_on_the_stated_side_at_every_larger_n_and_d(seed: int) -> None:
    rng = random.Random(seed)
    d, theta = rng.choice((42, 102, 302)), rng.choice((Fraction(1), Fraction(1), Fraction(2), Fraction(1, 2)))
    point: dict[str, object] = {
        **REFERENCE,
        "d": d,
        "m": rng.choice((3, 12, 30)),
        "n": (d - 2) * rng.choice((1, 10, 300)),
    }
    point |= {"b": rng.choice(("0.1", "0.2", "0.4")), "c": rng.choice(("0.1", "0.5")), "a0": rng.choice(("0", "0.05"))}
    point["tau"] = Fraction(str(point["c"])) + rng.choice((Fraction(1, 10), Fraction(1, 20), Fraction(3, 10)))
    level = rng.choice((Fraction(1, 2), Fraction(1, 10), Fraction(9, 10)))
    found = bound_error_term(construction_named("spike").read(point), Softmax(temperature=theta), level)
    assert found is not None
    decided = 0
    for wider, longer in ((0, 1), (0, 50), (60, 3), (1000, 1), (0, 10**9), (7, 10**40)):
        size = -(-int(str(point["n"])) // (d - 2 + wider)) * longer
        there = {**point, "d": d + wider, "n": (d - 2 + wider) * size}
        if found.below is not None and (side := side_at(there, found, found.below, -1e-8)) is not None:
            assert side == -1
            decided += 1
        if found.above is not None:
            assert side_at(there, found, found.above, 1e-8) == 1
            assert side_at(there, found, Fraction(0), 1e-8) == 1
            assert side_at(there, found, Fraction(0), 1.0) == 1
            decided += 1
    assert decided


def test_the_constants_cannot_be_much_better() -> None:
    """One unit beyond both, P is already on the other side."""
    point = construction_named("spike").read({**REFERENCE, "n": 10**12, "d": 1002})
    found = bound_error_term(point, Softmax(), Fraction(1, 2))
    assert found is not None
    assert found.below is not None
    assert found.above is not None
    there = {**REFERENCE, "n": 10**12, "d": 1002}
    assert side_at(there, found, found.below - 1, 0) == 1
    assert side_at(there, found, found.above + 1, 0) == -1


def test_both_constants_tend_to_the_same_limit() -> None:
    point = construction_named("spike").read({**REFERENCE, "n": 10**300, "d": 10**6 + 2})
    found = bound_error_term(point, Softmax(), Fraction(1, 2))
    assert found is not None
    assert found.below is not None
    assert found.above is not None
    limit = math.log((math.sqrt(0.3**2 + 4) - 0.3 + 0.4) / 0.2 - 1)
    assert limit == pytest.approx(2.263, abs=1e-3)
    assert limit - 0.01 < found.above < limit < found.below < limit + 0.01


@pytest.mark.parametrize(
    "change", [{"form": "identity"}, {"tau": "0.1"}, {"tau": "0.05"}, {"d": 4, "m": 12, "n": 1000, "a0": "1.1"}]
)
def test_nothing_is_stated_outside_the_hypotheses(change: dict[str, object]) -> None:
    point = construction_named("spike").read({**REFERENCE, **change})
    assert bound_error_term(point, Softmax(), Fraction(1, 2)) is None


def test_it_is_about_softmax_and_a1_only() -> None:
    assert bound_error_term(Spike.read(REFERENCE), Linear(), Fraction(1, 2)) is None
    assert sx.boundary("spike", "softmax", b="0.1:0.5", scan=5).error_term is None


def test_it_is_about_exact_arithmetic() -> None:
    """In bfloat16, P may be 0 where exact arithmetic has P > 1/2."""
    point = {"n": 64, "d": 18, "a0": 0, "b": "0.001", "c": "16", "tau": "16.01", "m": 12, "scan": 3, "tolerance": "0.5"}
    rounded = Sampling(dtype="bfloat16", draws=20)
    assert (
        sx.boundary("spike", "softmax", a1="0.0001:0.05", engine="dense", sampling=rounded, **point).error_term is None
    )
    assert sx.boundary("spike", "softmax", a1="0.0001:0.05", **point).error_term is not None


def test_half_of_the_statement_is_left_out_where_it_is_not_proved() -> None:
    found = bound_error_term(
        construction_named("spike").read({**REFERENCE, "d": 12, "m": 2}), Softmax(), Fraction(1, 2)
    )
    assert found is not None
    assert found.above is None
    assert "P > " not in found.statement
    assert found.statement.startswith("For every n >= 1000 and d >= 12, all else equal: P < 0.5 if a1(a1+b+c) <= 1 - ")
