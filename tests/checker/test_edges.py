"""Values exactly at the limits of the checker, just inside and just outside."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from separatrix.checker import arithmetic, document, kernels
from separatrix.checker.certificate import read_kernel, read_model
from separatrix.checker.check import Report, _is_rounded, derive_verdict
from separatrix.checker.constructions import TRIPLES, QueryLogits, SpikeModel, _logarithm, _primitive_root, plain
from separatrix.checker.document import Malformed
from separatrix.checker.kernels import Logit, PowerKernel, SoftmaxKernel, TaylorKernel, sign
from separatrix.checker.probability import BITS, MOST_BITS, TINY, network, neuron
from separatrix.checker.proof import _is_least
from separatrix.checker.question import nearest_multiple
from separatrix.checker.statement import to_text, with_rounding_mark

F = Fraction
QUARTER, HALF = F(1, 4), F(1, 2)
EPS = F(1, 10**30)
JSON = partial(document.parse_json)


@pytest.mark.parametrize(
    ("distinguish", "fire_d1", "word"),
    [
        ((F(3, 4), F(3, 4)), (F(1), F(1)), "distinguishes"),  # exactly 1 - delta
        ((F(3, 4) - EPS, F(3, 4)), (F(1), F(1)), None),  # 1 - delta lies in the enclosure
        ((F(3, 4) - EPS, F(3, 4) - EPS), (F(1), F(1)), "partial"),
        ((QUARTER + EPS, QUARTER + EPS), (F(1), F(1)), "partial"),
        ((QUARTER, QUARTER + EPS), (F(1), F(1)), None),  # delta lies in the enclosure
        ((QUARTER, QUARTER), (F(3, 4), F(3, 4)), "saturated"),  # exactly delta, fires on both exactly half of the time
        ((QUARTER, QUARTER), (F(3, 4) - EPS, F(3, 4) - EPS), "blind"),
        ((F(0), QUARTER), (F(3, 4), F(1)), "saturated"),
        ((F(0), QUARTER), (F(3, 4) - EPS, F(1)), None),
        ((F(1, 8), QUARTER), (F(0), F(5, 8)), None),
        ((F(1, 8), QUARTER), (F(0), F(5, 8) - EPS), "blind"),
        ((F(1, 8), F(7, 8)), (F(1), F(1)), None),
    ],
)
def test_verdicts_at_their_limits(
    distinguish: tuple[Fraction, Fraction], fire_d1: tuple[Fraction, Fraction], word: str | None
) -> None:
    assert derive_verdict(distinguish, fire_d1, QUARTER) == word


def test_a_report_holds_if_something_was_verified_and_nothing_failed() -> None:
    assert not Report(0, []).holds
    assert Report(1, []).holds
    assert not Report(1, ["n is wrong"]).holds
    report = Report()
    for holds in (True, None, False, True):
        report.note(holds, "n")
    assert (report.verified, report.failed) == (2, ["n cannot be verified", "n is wrong"])


DIGITS = "9" * document.MOST_DIGITS
READS: dict[str, tuple[Callable[[Any], Any], list[Any], list[Any]]] = {
    "integers of 4000 digits": (JSON, [DIGITS.encode(), b"-" + DIGITS.encode(), b"0"], [f"-9{DIGITS}".encode(), b"-0"]),
    "integers of a file": (partial(document.integer, place="x", low=-2, high=3), [-2, 0, 3], [-3, 4, True, 1.0, None]),
    "integers without an upper limit": (
        partial(document.integer, place="x", low=1),
        [1, 2**document.MOST_BITS - 1],
        [0, 2**document.MOST_BITS],
    ),
    "floats in shortest form": (JSON, [b"0.5", b"1e-05", b"-0.0"], [b"0.50", b"1e-5", b"1e999"]),
    "probabilities": (
        partial(document.probability, place="x"),
        [0.0, 5e-324, 1.0],
        [-5e-324, -0.0, math.nextafter(1, 2), math.nan, 1, True],
    ),
    "lists": (partial(document.entries, place="x", count=2), [[0, 1]], [[0], [0, 1, 2], (0, 1)]),
    "objects": (
        partial(document.fields, place="x", names=("a", "b")),
        [{"a": 0, "b": 1}],
        [{"a": 0}, {"a": 0, "c": 1}],
    ),
    "long fractions": (
        partial(document.exact, place="x", longest=5),
        ["12345", "1/234", "-0.25", "0", "-1/23"],
        ["123456", "1/2345", "-1/234", "01", "0.250", ".5", "1.", "-0", "2/4", "3/1", "1/0", "0/3", "+1", 1],
    ),
}


@pytest.mark.parametrize(("read", "accepted", "refused"), READS.values(), ids=READS)
def test_limits_of_the_parser(read: Callable[[Any], Any], accepted: list[Any], refused: list[Any]) -> None:
    for value in accepted:
        read(value)
    for value in refused:
        with pytest.raises(Malformed):
            read(value)


def test_numbers_are_read_exactly() -> None:
    rng = random.Random(3)
    for length in (1, 599, 600, 601, 1200, 1201, 3999, 4000):
        text = str(rng.randrange(1, 10)) + "".join(rng.choices("0123456789", k=length - 1))
        assert str(document.digits(text)) == text
        assert document.exact(text, "x") == F(text)
    for text in ("0.125", "-7.05", "22/7", "-1/3", "10"):
        assert document.exact(text, "x") == F(text)
    assert document.parse_json(b"[-12, 1.5, 0]") == [-12, 1.5, 0]


SPIKE = {"n": 8, "d": 6, "m": 1, "a0": "0", "a1": "1", "b": "0.1", "c": "0.1", "tau": "0.1", "form": "ones"}
CROSS = {**{name: value for name, value in SPIKE.items() if name != "form"}, "r_Q": "0.1"}
PLAIN = {"n": 3, "m": 1, "peak": "0.1", "base": "1.1", "spread": "0", "tau": "0.1"}


@pytest.mark.parametrize(
    ("construction", "smallest", "below"),
    [
        ("spike", {"n": 4, "d": 4}, {"n": 3, "d": 3}),
        ("spike", {"n": 5, "d": 7}, {"n": 6}),
        ("spike", {"m": 1}, {"m": 0}),
        ("spike", {"a0": "0"}, {"a0": "-0.0001"}),
        ("spike", {"a0": "0.9999"}, {"a0": "1"}),
        *(("spike", {name: "0.0001"}, {name: "0"}) for name in ("b", "c", "tau")),
        ("cross", {"r_Q": "0.0001"}, {"r_Q": "0"}),
        *(("plain", {name: "0.0001"}, {name: "0"}) for name in ("peak", "tau")),
        ("plain", {"base": "1.0001"}, {"base": "1"}),
        ("plain", {"spread": "0"}, {"spread": "0.0001"}),
        ("plain", {"spread": "0"}, {"spread": "-0.0001"}),
        ("plain", {"n": 3}, {"n": 2}),
        ("plain", {"n": 200_001}, {"n": 200_002}),
        ("spike", {"n": 200_001, "d": 200_003}, {"n": 200_002, "d": 200_004}),
    ],
)
def test_the_smallest_valid_parameters_and_those_beyond(
    construction: str, smallest: dict[str, Any], below: dict[str, Any]
) -> None:
    values: dict[str, Any] = {"spike": SPIKE, "cross": CROSS, "plain": PLAIN}[construction]
    read_model(construction, {**values, **smallest})
    with pytest.raises(Malformed):
        read_model(construction, {**values, **below})


def test_settings_of_mechanisms_at_their_limits() -> None:
    tiny = F("0.0001")
    assert read_kernel({"name": "softmax", "temperature": "0.0001"}) == SoftmaxKernel(tiny)
    assert read_kernel({"name": "power", "beta": "0.0001"}) == PowerKernel(tiny)
    assert read_kernel({"name": "linear"}) == PowerKernel(F(1))
    assert [read_kernel({"name": "taylor", "order": order}) for order in (1, 1000)] == [
        TaylorKernel(1),
        TaylorKernel(1000),
    ]
    for settings in (
        {"name": "softmax", "temperature": "0"},
        {"name": "power", "beta": "0"},
        {"name": "linear", "a": 1},
    ):
        with pytest.raises(Malformed):
            read_kernel(settings)
    for order in (0, 1001):
        with pytest.raises(Malformed):
            read_kernel({"name": "taylor", "order": order})


def test_multiples_and_roots_against_their_definitions() -> None:
    for n, step in product(range(1, 60), range(1, 12)):
        if n % step == 0:
            nearest = n
        else:
            multiples = [k * step for k in range(1, 80) if k * step >= 3]
            nearest = min(multiples, key=lambda multiple: (abs(multiple - n), -multiple))
        assert nearest_multiple(n, step) == nearest, (n, step)
    for n in (*range(2, 1100), 3**40, 10**18, 10**18 + 1):
        powers = (k for k in (*range(2, 40), 10, n) if math.prod([k] * round(math.log(n, k))) == n)
        assert _primitive_root(n) == min(powers), n
    assert _logarithm(F(64), 4) == Logit(F(3), F(4))
    assert _logarithm(F(32), 4) == Logit(F(1), F(32))
    assert _logarithm(F(3, 2), 3) == Logit(F(1), F(3, 2))
    assert plain(64, HALF, F(2), F(0), F(1)).rows[1]["query"].spike == Logit(F(3), F(2))


def _small_models() -> list[SpikeModel]:
    """Return models with and without rows of their own block."""
    logit = Logit(F(1), F(2))
    common, own = QueryLogits(logit, logit, logit), QueryLogits(logit, logit, logit, logit)
    return [
        SpikeModel(blocks, 2, (F(0), F(1)), F(1), F(1), F(1), ({"one": row, "two": common},) * 2)
        for blocks, row in product((1, 2, 3, 4), (common, own))
    ]


@pytest.mark.parametrize("model", _small_models())
def test_neurons_are_those_of_all_sign_vectors(model: SpikeModel) -> None:
    """Every sign vector: a row with a sign of its own exists in blocks with this sign only."""
    rng = random.Random(model.blocks)
    for _ in range(20):
        least = {key: rng.randrange(model.blocks + 2) for key in model.threshold_keys()}
        counted = [0, 0, 0]
        for triple, others in product(TRIPLES, product((1, -1), repeat=model.blocks)):
            plus = others.count(1)
            d0, d1 = (
                any(
                    plus >= limit and (not own or own in others)
                    for (of, signs, _, own), limit in least.items()
                    if (of, signs) == (label, triple)
                )
                for label in (0, 1)
            )
            counted = [count + one for count, one in zip(counted, (d0, d1, d1 and not d0), strict=True)]
        assert [chance * 2 ** (model.blocks + 3) for chance in neuron(model, least)] == counted


def test_probabilities_of_networks_at_the_limits_of_each_formula() -> None:
    """Long fractions are enclosed, short ones exact; the formulas for tiny p and for many neurons agree."""
    assert network(F(0), F(0), F(0), 5) == ((0, 0), (0, 0), (0, 0))
    assert network(F(1), F(1), F(0), 5) == ((1, 1), (1, 1), (0, 0))
    assert network(HALF, HALF, HALF, 2) == ((F(3, 4),) * 2, (F(3, 4),) * 2, (QUARTER,) * 2)
    assert network(F(0), HALF, HALF, MOST_BITS // 2)[2] == (1 - F(1, 2 ** (MOST_BITS // 2)),) * 2
    tiny = (F(1, 1 << 140), F(5, 1 << 200), TINY - F(1, 1 << 600), TINY, TINY + F(1, 1 << 600))
    for p in (*tiny, F(1, 3) + F(1, 1 << 600)):
        for m in (1, 200, 1000, 2000):
            (low, high), *_ = network(p, p, F(0), m)
            exact = 1 - (1 - p) ** m
            assert low <= exact <= high
            assert high - low <= exact / 2**100
    sure = network(HALF + F(1, 1 << 600), HALF, F(0), 10**6)[0]
    assert (1 - F(1, 1 << 10_000), 1) == sure


def test_intervals_contain_their_ends_and_exponentials_of_any_size() -> None:
    at = arithmetic.intervals(BITS)
    low, high = arithmetic.ends(at.enclosing(F(1, 3), F(2, 3)))
    assert low <= F(1, 3)
    assert F(2, 3) <= high
    assert high - low < F(1, 3) + EPS
    slack_low, slack_high = arithmetic.ends(at.exp(at.rational(0)))
    assert slack_low == 1 - F(1, 1 << (BITS - 8))
    assert slack_high == 1 + F(1, 1 << (BITS - 8))
    assert not at.anything() > 0
    assert not at.anything() < 0
    exponentials = [at.exp(at.rational(F(sign_of << power))) for power in (BITS - 1, BITS + 1) for sign_of in (1, -1)]
    assert exponentials[2] > exponentials[0] > 1 > exponentials[1] > exponentials[3] > 0


def test_exact_powers_at_the_limit_of_their_length() -> None:
    assert arithmetic.exact_power(F(2), F(arithmetic.MOST_BITS // 2)) == 2 ** (arithmetic.MOST_BITS // 2)
    assert arithmetic.exact_power(F(2), F(arithmetic.MOST_BITS // 2 + 1)) is None
    assert arithmetic.exact_power(F(1), F(10**4000)) == 1
    assert arithmetic.exact_power(F(10**4000), F(0)) == 1
    for base, degree in product(range(2, 40), range(2, 9)):
        for value in (base**degree - 1, base**degree, base**degree + 1):
            roots = [k for k in range(1, 40) if k**degree == value]
            assert arithmetic.exact_power(F(value), F(1, degree)) == (roots[0] if roots else None)
            assert arithmetic.exact_power(F(1, value), F(-1, degree)) == (roots[0] if roots else None)


def test_signs_without_and_with_intervals() -> None:
    """Terms of one sign, terms that cancel, and factors of zero, by hand."""
    two, three = Logit(F(1), F(2)), Logit(F(1), F(3))
    linear, softmax = PowerKernel(F(1)), SoftmaxKernel(F(1))
    assert sign(linear, []) == 0
    assert sign(linear, [(F(0), two)]) == 0
    assert sign(linear, [(F(0), two), (F(1), three)]) == 1
    assert sign(linear, [(F(-1), two), (F(-1), three)]) == -1
    assert sign(linear, [(F(1), two), (F(-1), three)]) == -1  # log 2 < log 3
    assert sign(linear, [(F(-8), two), (F(5), three)]) == -1  # 2^8 > 3^5
    assert sign(linear, [(F(-19), two), (F(12), three)]) == 1  # 2^19 < 3^12
    assert sign(softmax, [(F(3), two), (F(-2), three)]) == 0  # 3 * 2 = 2 * 3
    assert sign(softmax, [(F(3), two), (F(-2), three), (F(1), two), (F(-1), two)]) == 0
    assert sign(TaylorKernel(1), [(F(1), two), (F(-1), three)]) == -1
    assert TaylorKernel(2).cancels([(F(1), two), (F(-1), two)])
    assert not TaylorKernel(2).cancels([(F(1), two), (F(-1), three)])
    assert not softmax.cancels([(F(1), two), (F(-1), two)])


@pytest.mark.parametrize(
    ("kernel", "score"),
    [
        (SoftmaxKernel(F(2)), lambda z: math.exp(z / 2)),
        (PowerKernel(F(3, 2)), lambda z: z**1.5),
        (TaylorKernel(1), lambda z: 1 + z),
        (TaylorKernel(3), lambda z: 1 + z + z**2 / 2 + z**3 / 6),
    ],
)
def test_scores_and_their_quotients(kernel: kernels.Kernel, score: Callable[[float], float]) -> None:
    at, first, second = arithmetic.intervals(128), Logit(F(2), F(16)), Logit(F(1, 2), F(16))
    values = [score(float(logit.times) * math.log(logit.of)) for logit in (first, second)]
    for logit, value in zip((first, second), values, strict=True):
        assert float(arithmetic.ends(kernel.score(logit, at))[0]) == pytest.approx(value, rel=1e-12)
    ratio = kernel.ratio(first, second)
    assert ratio is None or float(ratio) == pytest.approx(values[0] / values[1], rel=1e-12)
    assert (ratio is None) == isinstance(kernel, TaylorKernel)
    assert kernel.ratio(first, first) == 1


@pytest.mark.parametrize(("here", "below"), list(product((1, 0, -1, None), repeat=2)))
def test_a_least_count_fires_and_one_less_does_not(
    here: int | None, below: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tie does not fire; one wrong side refutes; nothing fires beyond the blocks or below 0."""
    least, lowest, highest = 3, 1, 2
    signs = {(least, lowest): here, (least - 1, highest): below}
    excess: Any = SimpleNamespace(model=SimpleNamespace(blocks=5), terms=lambda plus: plus)
    monkeypatch.setattr("separatrix.checker.proof.sign", lambda plus, n: signs[plus, n])
    is_wrong = here in (0, -1) or below == 1
    assert _is_least(excess, least, lowest, highest) is (False if is_wrong else None if None in (here, below) else True)
    monkeypatch.setattr("separatrix.checker.proof.sign", lambda *_: here)
    assert _is_least(excess, 0, lowest, highest) is (True if here == 1 else None if here is None else False)
    assert _is_least(excess, 6, lowest, highest) is (False if here == 1 else None if here is None else True)
    assert _is_least(excess, 5, lowest, highest) is (None if here is None else False)


def test_rounded_floats_and_their_text() -> None:
    third = float(F(1, 3))
    assert _is_rounded(third, (F(1, 3), F(1, 3)))
    assert not _is_rounded(math.nextafter(third, 1), (F(1, 3), F(1, 3)))
    assert _is_rounded(third, (F(third), F(math.nextafter(third, 1)))) is None
    assert to_text(F(1, 3)) == to_text((F(1, 3), F(1))) == "0.333333333333"
    assert with_rounding_mark((QUARTER, QUARTER)) == "0.25"
    for rounded in ((QUARTER, QUARTER + EPS), (QUARTER - EPS, QUARTER)):
        assert with_rounding_mark(rounded, "?") == "0.25?"
