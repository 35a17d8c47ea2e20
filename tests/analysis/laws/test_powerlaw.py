"""Laws of growth on values whose law is known."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from separatrix.analysis.laws.noisy_powerlaw import SIGNIFICANCE, noisy_law, uncertain_law
from separatrix.analysis.laws.powerlaw import TOLERANCE, exact_law

DECADES = [10.0**k for k in range(3, 10)]
Curve = Callable[[float], float]


@given(st.floats(-5, 5), st.floats(1e-6, 1e6), st.integers(3, 40))
def test_pure_power_laws_are_exact(exponent: float, scale: float, count: int) -> None:
    x = np.geomspace(10, 1e5, count)
    law = exact_law(x, scale * x**exponent)
    assert law.power_law
    assert law.exponent == pytest.approx(exponent, abs=1e-8)
    assert law.interval[0] <= exponent + 1e-9
    assert law.interval[1] >= exponent - 1e-9
    assert law.since == x[0]


@given(st.floats(-2, 2), st.floats(0.6, 2), st.floats(-20, 20))
def test_corrections_that_die_out_do_not_hide_a_power_law(p: float, q: float, size: float) -> None:
    law = exact_law(DECADES, [x**p * (1 + size * x**-q) for x in DECADES])
    assert law.power_law
    assert law.interval[0] <= p <= law.interval[1]


REJECTED: dict[str, tuple[Curve, str | None]] = {
    "logarithm": (lambda x: math.log(x) - 3, "logarithm"),
    "falling logarithm": (lambda x: 40 - math.log(x), "logarithm"),
    "square of log": (lambda x: 7 * math.log(x) ** 2, "power of log"),
    "root of log": (lambda x: math.sqrt(math.log(x)), "power of log"),
    "two powers": (lambda x: 1 / x + 1e-3 / math.sqrt(x), None),
    "log times power": (lambda x: math.log(x) / x, None),
    "slow correction": (lambda x: (1 + 5 / math.log(x)) / x, None),
    "exponential of a root": (lambda x: math.exp(-math.sqrt(math.log(x))), None),
    "turns": (lambda x: 1 / x + 1e-12 * x, None),
}


@pytest.mark.parametrize("name", REJECTED)
def test_other_laws_are_rejected_and_named(name: str) -> None:
    curve, form = REJECTED[name]
    law = exact_law(DECADES, list(map(curve, DECADES)))
    assert law.power_law is False
    assert (law.form and law.form.name) == form


def test_logarithms_are_rejected_at_any_length() -> None:
    x = [10.0**k for k in range(10, 301, 10)]
    law = exact_law(x, np.log(x) + 1)
    assert law.power_law is False
    assert law.form is not None
    assert law.form.name == "logarithm"


@given(
    st.floats(-3, 2),
    st.sampled_from([-2.0, -0.5, -0.01, 0.01, 0.3, 1.0, 2.0]),
    st.floats(0.4, 140),
    st.floats(2, 160),
    st.integers(4, 40),
)
@example(-3.0, 1.0, 0.54, 138.7, 4)
def test_a_power_of_log_is_no_power_law_however_far_out(
    p: float, b: float, start: float, decades: float, count: int
) -> None:
    """y = x^p (log x)^b at x up to 1e300: local slopes move by as little as 1e-6."""
    x = np.geomspace(10**start, 10 ** (start + decades), count)
    p *= min(1, 300 / (start + decades) / 3 - 0.02)  # y is a float64 as well
    law = exact_law(x, x**p * np.log(x) ** b)
    assert law.power_law is False


def test_log_n_over_n_is_none_to_1e300() -> None:
    x = np.geomspace(1e3, 1e300, 12)
    law = exact_law(x, np.log(x) / x)
    assert law.power_law is False
    assert "at the pace of powers of a logarithm" in law.reason
    assert exact_law([1e200, 1e250, 1e300], [math.log(x) / x for x in (1e200, 1e250, 1e300)]).power_law is None


def test_a_correction_of_one_over_log_dies_out() -> None:
    """As of polynomial kernels: their weights are A/n (1 + B/log n), which is 1/n in the end."""
    x = np.geomspace(1e4, 1e30, 9)
    law = exact_law(x, (1 + 0.5 / np.log(x)) / x)
    assert law.power_law
    assert law.interval[0] <= -1 <= law.interval[1]


@example(p=0.0, q=0.609375, size=4.0, end=76.0, count=4)
@given(st.floats(-1.5, 1.5), st.floats(0.6, 2), st.floats(-20, 20), st.floats(10, 200), st.integers(4, 40))
def test_corrections_that_die_out_do_not_hide_a_power_law_far_out(
    p: float, q: float, size: float, end: float, count: int
) -> None:
    """Far out the correction is lost in rounding, which must not be taken for movement."""
    x = np.geomspace(1e3, 10**end, count)
    law = exact_law(x, x**p * (1 + size * x**-q))
    assert law.power_law
    assert law.interval[0] - 1e-12 <= p <= law.interval[1] + 1e-12


def test_values_that_are_known_badly_do_not_move() -> None:
    """What 1e-3 of accuracy can explain is no logarithm."""
    wobble = [1 + 1e-4 * (-1) ** k for k in range(7)]
    law = exact_law(DECADES, [w / x for x, w in zip(DECADES, wobble, strict=True)], accuracy=1e-3)
    assert law.power_law
    assert law.interval[1] - law.interval[0] > 1e-3


def test_exponentials_are_named_with_their_base() -> None:
    x = list(range(1, 31))
    law = exact_law(x, [3 * 0.25**k for k in x])
    assert law.power_law is False
    assert law.form is not None
    assert law.form.formula == "3 * 0.25^x"


def test_a_kink_is_no_power_law() -> None:
    """Affine past a step: the last three slopes alone would extrapolate to the wrong limit."""
    y = [433808, 538256, 877200, 1712784, 3383952]
    assert exact_law([256, 512, 1024, 2048, 4096], y).power_law is False


def test_a_law_says_from_where_on_it_holds() -> None:
    law = exact_law(DECADES, [1 / (625 + x) for x in DECADES])
    assert law.power_law
    assert law.since == 1e5
    assert abs(law.slopes[1][1] + 1) > TOLERANCE > abs(law.slopes[2][1] + 1)


def test_three_points_are_enough_for_a_straight_line_only() -> None:
    assert exact_law([1, 10, 100], [1, 0.1, 0.01]).power_law
    assert exact_law([1, 10, 100], [1, 0.1, 0.012]).power_law is False


RUNS, NOISE = 400, 0.02


def draws(curve: Curve, known: bool, seed: int) -> list[tuple[bool | None, tuple[float, float]]]:
    """What is said of noisy values, many times over."""
    rng = np.random.default_rng(seed)
    sizes = rng.uniform(0.5, 2, len(DECADES)) * NOISE if known else np.full(len(DECADES), NOISE)
    found = []
    for _ in range(RUNS):
        y = np.array(list(map(curve, DECADES))) * np.exp(rng.normal(0, sizes))
        law = noisy_law(DECADES, y, sizes if known else None)
        found.append((law.power_law, law.interval))
    return found


@pytest.mark.parametrize("known", [True, False])
def test_noisy_power_laws_are_found_at_the_stated_coverage(known: bool) -> None:
    found = draws(lambda x: 3 * x**-0.7, known, seed=1)
    covered = sum(low <= -0.7 <= high for _, (low, high) in found) / RUNS
    rejected = sum(power is False for power, _ in found) / RUNS
    assert abs(covered - 0.95) < 4 * math.sqrt(0.95 * 0.05 / RUNS)
    assert rejected < SIGNIFICANCE + 4 * math.sqrt(SIGNIFICANCE / RUNS)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("curve", [lambda x: 1 / x + 1e-3 / math.sqrt(x), lambda x: math.log(x) - 5])
def test_noisy_curves_are_rejected(curve: Curve, known: bool) -> None:
    found = draws(curve, known, seed=2)
    assert sum(power is False for power, _ in found) > 0.9 * RUNS


def test_noisy_exponentials_are_named() -> None:
    rng = np.random.default_rng(3)
    x = list(range(1, 11))
    y = [0.5**k * math.exp(rng.normal(0, 0.1)) for k in x]
    law = noisy_law(x, y, [0.1] * 10)
    assert law.form is not None
    assert law.form.name == "exponential"
    assert math.exp(law.form.constants[1]) == pytest.approx(0.5, rel=0.05)


def test_three_noisy_points_of_unknown_noise_cannot_tell() -> None:
    law = noisy_law([1, 10, 100], [1, 0.11, 0.01])
    assert law.power_law is None
    assert "too few" in law.reason


def test_what_may_scatter_is_taken_at_its_word_where_it_does_not() -> None:
    steady = uncertain_law(DECADES, [5 / x for x in DECADES])
    assert steady.interval_is.startswith("not a confidence interval")
    rng = np.random.default_rng(4)
    scattered = uncertain_law(DECADES, [5 / x * math.exp(rng.normal(0, 0.1)) for x in DECADES])
    assert scattered.power_law
    assert "confidence interval of a straight line" in scattered.interval_is
