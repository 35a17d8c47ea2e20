"""Weight matrices of linear attention: against literal d-by-d matrices, all signs, and random weights."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest

import separatrix as sx
from cases import BASE
from documents import require_document
from expectations import assert_refused, run
from separatrix.analysis.weights.result import CONCLUSION
from separatrix.constructions.spike import Spike
from separatrix.core.errors import EngineRefusal
from separatrix.exact.engines import solve
from separatrix.exact.weights import BlockScores, SpikePoint, linear, read_linear
from separatrix.exact.weights.bounds import (
    rank_one_bound,
    robust_weights,
    signed_weights,
    uniform_bound,
    unnormalised_ratio,
    weights_with_amplitude,
    weights_with_n,
)
from separatrix.mechanisms import mechanism_named

Matrix = list[list[Fraction]]
SMALL = (
    {"n": 8, "d": 6, "m": 3, "a0": "0.05", "a1": "1.1", "b": "0.55", "c": "0.3"},
    {"n": 3, "d": 5, "m": 2, "a0": "0", "a1": "0.7", "b": "0.2", "c": "0.1"},
    {"n": 6, "d": 4, "m": 1, "a0": "0.2", "a1": "0.9", "b": "0.15", "c": "0.4"},
)
THETA, ETA, BLOCK = Fraction(1, 5), Fraction(1, 4), Fraction(7, 4)


def point_of(parameters: dict[str, Any]) -> SpikePoint:
    return SpikePoint.of(Spike.read(parameters))


def diagonal(p: SpikePoint, entry: Callable[[int], Fraction]) -> Matrix:
    return [[entry(i) if i == j else Fraction(0) for j in range(p.d)] for i in range(p.d)]


def outer(u: list[Fraction], v: list[Fraction]) -> Matrix:
    return [[x * y for y in v] for x in u]


def added(*matrices: Matrix) -> Matrix:
    return [[sum(entries, Fraction(0)) for entries in zip(*rows, strict=True)] for rows in zip(*matrices, strict=True)]


def unit(p: SpikePoint, **entries: Fraction) -> list[Fraction]:
    """A vector of width d by its first, last and all block entries."""
    return [entries.get("first", Fraction(0)), *[entries.get("blocks", Fraction(0))] * (p.d - 2), entries["last"]]


def families(p: SpikePoint) -> Iterator[tuple[str, Matrix, BlockScores]]:
    """Every family: the d-by-d matrix as the documentation writes it, and its scores."""
    one, zero = Fraction(1), Fraction(0)
    ones = outer([one] * p.d, [one] * p.d)
    first = outer(unit(p, first=one, last=zero), unit(p, first=one, last=zero))
    yield "ones", ones, BlockScores.diagonal_plus_ones(p, zero, one)
    yield "identity", diagonal(p, lambda i: one), BlockScores.diagonal_plus_ones(p, one, zero)
    beta = -(p.c**2) / (p.row_sums[1] * p.r)
    scaled = [[beta * x for x in row] for row in ones]
    yield "rank one", added(diagonal(p, lambda i: one), scaled), BlockScores.diagonal_plus_ones(p, one, beta)
    share = [[THETA / p.n * x for x in row] for row in ones]
    yield "with n", added(first, share), weights_with_n(p, THETA)
    w, v = unit(p, first=-1 / p.a[1], last=1 / p.c), unit(p, last=1 / p.c)
    yield "amplitude", added(outer(w, v), first), weights_with_amplitude(p)
    last = unit(p, last=1 / p.c)
    spike_query = outer(unit(p, first=-1 / ((1 + ETA) * p.a[1]), last=zero), last)
    blocks = diagonal(p, lambda i: BLOCK / p.b**2 if 0 < i < p.d - 1 else zero)
    yield "robust", added(outer(last, last), spike_query, blocks), robust_weights(p, ETA, BLOCK)


def naive(p: SpikePoint, matrix: Matrix) -> tuple[list[Fraction], list[Fraction]]:
    """p0, p1, P(D1 alone), and the spike's weight in its own row, over all tokens and signs."""
    fired, own = [], []
    vectors = list(product((1, -1), repeat=p.d))
    for a in p.a:
        tokens = []
        for j in range(p.n):
            token = [Fraction(0)] * p.d
            token[1 + j // p.block_size], token[-1] = p.b, p.c
            if j == 0:
                token[0] = a
            tokens.append(token)
        outputs = []
        for j, query in enumerate(tokens):
            mapped = [
                sum((q * x for q, x in zip(query, column, strict=True)), Fraction(0))
                for column in zip(*matrix, strict=True)
            ]
            scores = [sum((x * k for x, k in zip(mapped, key, strict=True)), Fraction(0)) for key in tokens]
            total = sum(scores, Fraction(0))
            outputs.append([sum(s * t[i] for s, t in zip(scores, tokens, strict=True)) / total for i in range(p.d)])
            if j == 0:
                own.append(scores[0] / total)
        distinct = {tuple(row) for row in outputs}
        fired.append(
            [any(sum(y * x for y, x in zip(signs, row, strict=True)) > p.tau for row in distinct) for signs in vectors]
        )
    alone = [d1 and not d0 for d0, d1 in zip(*fired, strict=True)]
    return [Fraction(sum(column), len(vectors)) for column in (*fired, alone)], own


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_readings_are_those_of_the_literal_matrix(case: dict[str, Any]) -> None:
    p = point_of(case)
    for name, matrix, scores in families(p):
        reading, (counts, own) = read_linear(scores, p), naive(p, matrix)
        outcome = reading.outcome
        assert [outcome.p0, outcome.p1, outcome.only] == counts, name
        assert list(reading.own) == own, name


def test_sums_and_least_scores_of_rows_are_those_of_all_tokens() -> None:
    """Signed scores of random matrices, key by key; the counts of the kinds of rows add up to n."""
    chance = random.Random(4)
    for case in SMALL:
        p = point_of(case)
        scores = BlockScores(*(Fraction(chance.randint(-9, 9), 4) for _ in range(5)))
        for label in (0, 1):
            tokens = [(p.a[label] if j == 0 else Fraction(0), j // p.block_size) for j in range(p.n)]
            first = {"spike": 0, "mate": 1, "other": p.block_size}
            rows = list(scores.rows(p, label))
            assert sum(row.count for row in rows) == p.n
            for row in rows:
                q, own = tokens[first[row.name]]
                literal = [
                    scores.other
                    + scores.query * q
                    + scores.key * k
                    + scores.pair * q * k
                    + scores.block * (own == block)
                    for k, block in tokens
                ]
                assert row.total(p) == sum(literal)
                assert row.absolute_total(p) == sum(map(abs, literal))
                assert row.least(p) == min(literal)


@pytest.mark.parametrize("form", ["ones", "identity"])
def test_both_forms_are_those_of_the_certified_engine(form: str) -> None:
    chance = random.Random(form)
    for _ in range(25):
        d = chance.choice([4, 5, 12, 42])
        a0 = Fraction(chance.randint(0, 50), 100)
        values = {"n": (d - 2) * chance.choice([1, 2, 3, 50, 10**6]), "d": d, "m": chance.randint(1, 20), "form": form}
        values |= {"a0": a0, "a1": a0 + Fraction(chance.randint(1, 150), 100)}
        values |= {name: Fraction(chance.randint(1, 12), 20) for name in ("b", "c")}
        if values["n"] < 3:
            continue
        construction = Spike.read(values)
        alpha = Fraction(int(form == "identity"))
        p = SpikePoint.of(construction)
        ours = read_linear(BlockScores.diagonal_plus_ones(p, alpha, 1 - alpha), p).outcome
        theirs = solve(construction, mechanism_named("linear"), "certified")
        assert (ours.p0, ours.p1, ours.only, ours.distinguish) == (
            theirs.p0,
            theirs.p1,
            theirs.only,
            theirs.distinguish,
        )
        assert ours.margin == pytest.approx(theirs.margin, rel=1e-12)


def test_spans_are_sets_of_integers() -> None:
    chance = random.Random(1)
    for _ in range(300):
        spans = [[(chance.randint(0, 9), chance.randint(0, 9)) for _ in range(chance.randint(0, 4))] for _ in range(2)]
        sets = [{i for start, stop in pair for i in range(start, stop)} for pair in spans]
        first, second = (linear._union(pair) for pair in spans)
        assert {i for span in first for i in range(*span)} == sets[0]
        assert all(a[1] < b[0] for a, b in pairwise(first))
        assert {i for span in linear._subtract(first, second) for i in range(*span)} == sets[0] - sets[1]
    for constant, slope in product(range(-4, 5), range(-2, 3)):
        span = linear._positive_span(Fraction(constant), Fraction(slope), 5)
        assert set(range(*span)) == {i for i in range(6) if constant + slope * i > 0}
    sums = linear._binomial_sums(7, [0, 3, 8])
    assert sums == {0: 0, 3: 1 + 7 + 21, 8: 128}


def test_no_diagonal_plus_ones_exceeds_the_bound() -> None:
    chance, tried = random.Random(2), 0
    for _ in range(60):
        d = chance.choice([4, 6, 22, 102])
        case = {"n": (d - 2) * chance.randint(1, 40), "d": d, "m": 1, "a0": "0.01"}
        case |= {name: Fraction(chance.randint(2, 30), 20) for name in ("a1", "b", "c")}
        if case["n"] < 3:
            continue
        p = point_of(case)
        bound = rank_one_bound(p)
        if bound is None:
            continue
        best, *_ = BlockScores.diagonal_plus_ones(p, Fraction(1), bound.beta_over_alpha).rows(p, 1)
        assert best.spike / best.total(p) == bound.bound
        assert best.least(p) >= 0
        for _ in range(30):
            alpha = Fraction(chance.choice([-1, 0, 1]))
            beta = Fraction(chance.randint(-300, 3000), 1000)
            own, *_ = BlockScores.diagonal_plus_ones(p, alpha, beta).rows(p, 1)
            if own.least(p) >= 0 and own.total(p) > 0:
                tried += 1
                assert own.spike / own.total(p) <= bound.bound
    assert tried > 200


def test_the_bound_of_diagonal_plus_ones_needs_its_hypotheses() -> None:
    p = point_of({**BASE, "a1": "0.3", "a0": "0.01", "b": "0.05", "c": "2"})
    assert rank_one_bound(p) is None
    sigma = p.a[1] ** 2 + p.b**2 - p.a[1] * p.c**2 / p.r
    assert sigma < 0
    assert sigma / (sigma + (p.block_size - 1) * p.b**2) > 1, "no bound of a weight"


def test_exact_probabilities_keep_the_uniform_bound() -> None:
    chance, tried, gaps = random.Random(3), 0, []
    for _ in range(30):
        d = chance.choice([22, 42, 102])
        case = {"n": (d - 2) * chance.randint(5, 60), "d": d, "m": chance.randint(2, 20)}
        case |= {"a0": Fraction(chance.randint(0, 5), 100), "a1": Fraction(chance.randint(50, 150), 100)}
        case |= {"b": Fraction(chance.randint(5, 30), 100), "c": Fraction(chance.randint(5, 40), 100)}
        p, theta = point_of(case), Fraction(chance.randint(1, 40), 40)
        bound = uniform_bound(p, theta)
        if bound is None:
            continue
        for n, width in ((p.n, d), (p.n * 7, d), (10**12, d), (10**6, d + 100)):
            at = replace(p, n=n - n % (width - 2) + (width - 2) * (n % (width - 2) > 0), d=width)
            if at.n < p.n:
                continue
            tried += 1
            reading = read_linear(weights_with_n(at, theta), at)
            assert reading.outcome.distinguish >= bound.bound, (case, n, width)
            assert reading.least_score > 0
            gaps.append(reading.outcome.distinguish - bound.bound)
    assert tried > 25
    assert min(gaps) < 0.02, "the bound is not loose everywhere"


def test_the_uniform_bound_needs_its_hypotheses() -> None:
    reference = point_of(BASE)
    assert uniform_bound(reference, Fraction(6, 100)) is not None
    assert uniform_bound(replace(reference, a=(Fraction(1, 2), reference.a[1])), Fraction(6, 100)) is None
    assert uniform_bound(replace(reference, a=(Fraction(0), Fraction(1, 20))), Fraction(6, 100)) is None
    assert uniform_bound(reference, Fraction(1, 10**6)) is None, "D0's spike keeps too much weight at n = 1000"


def test_one_percent_ruins_exact_weights_at_large_n_only() -> None:
    for n, is_ruined in ((1000, False), (10**6, True)):
        p = replace(point_of(BASE), n=n)
        scores = weights_with_amplitude(p)
        for factor in (Fraction(99, 100), Fraction(101, 100)):
            off = read_linear(scores, replace(p, a=(p.a[0], p.a[1] * factor)))
            assert (off.outcome.distinguish < 0.01) is is_ruined


def test_robust_weights_have_no_negative_score_and_tell_apart_as_n_grows() -> None:
    for n in (10**6, 10**12, 10**30):
        p = replace(point_of(BASE), n=n - n % 1000, d=1002, m=17)
        scores = robust_weights(p, ETA, 300 * Fraction(1))
        for percent in range(0, 126, 5):
            at = replace(p, a=(p.a[0], p.a[1] * Fraction(percent, 100)))
            reading = read_linear(scores, at)
            assert reading.least_score >= 0
            if percent >= 95:
                assert reading.outcome.distinguish >= 0.99
                assert n * reading.largest[1] < 2000


def test_signed_weights_have_the_sum_that_is_asked_for() -> None:
    p = point_of(BASE)
    for total in (Fraction(1), Fraction(-1, 1000)):
        own, *_ = signed_weights(p, total).rows(p, 1)
        assert own.total(p) == total
    with pytest.raises(EngineRefusal, match="add up to zero"):
        read_linear(signed_weights(p, Fraction(0)), p)


def test_weights_without_normaliser_are_named_and_left_out() -> None:
    """The scores of the best diagonal plus rank one add up to sigma + (t-1) b², which is 0 here."""
    point = {"n": 8, "d": 6, "m": 2, "a0": "0.1", "a1": "0.7", "b": "0.6", "c": "2.2"}
    p = point_of(point)
    assert p.block_size == 2
    assert p.a[1] ** 2 + p.b**2 - p.a[1] * p.c**2 / p.r + p.b**2 == 0
    found = sx.weights("spike", "linear", point)
    assert "diagonal-plus-ones" not in {choice.name for choice in found.choices}
    (remark,) = [statement for statement in found.statements if statement.startswith("diagonal-plus-ones: ")]
    assert remark.endswith("the scores of a row add up to zero, so they cannot be normalised.")


def test_the_ratio_without_normaliser() -> None:
    p = point_of(BASE)
    assert float(unnormalised_ratio(p)) == pytest.approx(4.9545, abs=1e-4)
    assert abs(unnormalised_ratio(replace(p, n=10**9)) / (p.row_sums[1] / p.row_sums[0]) - 1) < 1e-6


def test_the_public_function(tmp_path: Path) -> None:
    found = sx.weights("spike", "linear", BASE)
    assert {choice.name: choice.verdict for choice in found.choices} == {
        "ones": "blind",
        "identity": "partial",
        "robust": "partial",
        **dict.fromkeys(("diagonal-plus-ones", "with-n", "exact-amplitude", "signed"), "distinguishes"),
    }
    best = found.choice("diagonal-plus-ones")
    assert (best.attention[1], best.numbers["beta"]) == (Fraction(4, 5), Fraction(-1, 45))
    assert float(best.margin) == pytest.approx(0.95994, abs=1e-5)
    assert found.choice("ones").distinguish == sx.verdict("spike", "linear", BASE).outcome.distinguish
    assert found.reference["verdict"] == "distinguishes"
    assert found.remarks == (CONCLUSION,)
    require_document("weights", found.as_json())
    assert json.loads(found.save(tmp_path / "weights.json").read_text())["choices"][0]["margin"] == "4492369/753025100"
    given = sx.weights(theta="0.06").choice("with-n")
    assert given.numbers == {"theta": Fraction(6, 100)}
    assert "P >= 0.999637 for every n >= 1000 and d >= 102" in given.bound
    assert given.attention[1] > Fraction(98, 100)
    known = sx.weights(eta=1).choice("robust")
    assert known.numbers["eta"] == 1
    assert known.least_score >= 0


def test_the_best_weights_do_not_depend_on_how_wide_tokens_are() -> None:
    wide = sx.weights(n=10**6 - 10**6 % 6000, d=6002)
    assert wide.choice("robust").numbers["block"] == Fraction(1, 4) * 6000
    assert all(0 <= choice.distinguish <= 1 for choice in wide.choices)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "weights", "spike", "linear")
    text = " ".join(out.split())
    assert code == 0
    assert "diagonal-plus-ones a1 0.8 0.9599 0.9998 distinguishes" in text
    assert "gives the spike at most 0.8 in its own row, attained at beta/alpha = -0.0222222" in text
    assert "X = 11ᵀ, one normalisation and this reader" in text
    assert "P = 0.9603 at 0.99 a1" in text
    assert "(7/8)^m = 0.2014" in text
    code, out, _ = run(capsys, "weights", "spike", "linear", "n=1e18", "tau=0.6", "a0=0", "--json")
    assert code == 0
    document = json.loads(out)
    require_document("weights", document)
    assert math.isclose(document["reference"]["margin"], 1.2, rel_tol=1e-6)
    assert not any("(7/8)^m" in statement for statement in document["statements"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("spike softmax", "weights are compared for linear on spike, not for softmax on spike"),
        ("cross linear", "weights are compared for linear on spike, not for linear on cross"),
        ("spike linear form=identity", "form=identity is itself a choice of weights, and among those compared"),
        ("spike linear n=7", "n=7 is not a multiple of d-2=100; try n=100"),
        ("spike linear a0=2", "a0=2 must be smaller than a1=1.2"),
        ("spike linear --theta 0", "theta=0 is out of range; it must be above 0 and at most 1e6"),
        ("spike linear --theta x", "theta=x is not a number"),
        ("spike linear --eta -1", "eta=-1 is out of range; it must be above 0 and at most 1e6"),
        ("spike linear --delta 1", "delta=1 is out of range; it must lie between 0 and 1/2"),
        ("spike linear noise=1", "noise"),
        ("spike linear eta=1", "eta is an option; write --eta 1"),
    ],
)
def test_wrong_input_is_refused_in_one_line(
    words: str, message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused(capsys, message, tmp_path, "weights", *words.split())
