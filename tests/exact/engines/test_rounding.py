"""What float64 cannot know: tails, ties and error bounds of the closed engine."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import torch
from flint import arb, ctx

from separatrix.constructions import construction_named
from separatrix.core.numbers.logforms import LogForm, rational
from separatrix.core.parameters import Grid
from separatrix.exact.engines import certified, closed, enumerated
from separatrix.exact.engines.tails import ACCURACY, EXACT_TO, LEAST, Tails, _stirling, upper_tail
from separatrix.exact.verdicts import verdict
from separatrix.mechanisms import ScoreMechanism, mechanism_named

SPIKE = {"d": 102, "m": 12, "a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1"}


def tail_in_balls(trials: int, k: int) -> arb:
    """I_{1/2}(k, N-k+1), or from N = 1e18 on the normal tail, which differs by less than z^4/N of it."""
    for precision in (300, 2000):
        with ctx.workprec(precision):
            if trials > 10**18:
                return (arb(2 * k - 1 - trials) / (2 * arb(trials + 1)).sqrt()).erfc() / 2
            found = arb(0.5).beta_lower(arb(k), arb(trials - k + 1), 1)
        if found.is_finite() and found.rel_accuracy_bits() > 80:
            return found
    raise AssertionError(f"no tail of {trials} at {k}")


@pytest.mark.parametrize(
    "trials", [2, 77, EXACT_TO, 2049, 10**4, 10**6, 10**8 + 1, 10**10, 10**12, 10**14, 10**17, 1e40, 1e300]
)
def test_tails_are_right_to_their_accuracy_wherever_they_are_not_tiny(trials: int) -> None:
    trials = int(trials)
    for place in (-40, -8, -1, 0, 0.1, 2, 5, 14, 28, 37, 40):
        k = int(float(trials // 2 + int(place * 1000) * math.isqrt(trials) // 2000))
        truth = tail_in_balls(trials, k) if 0 < k <= trials else arb(k <= 0)
        ways = [Tails(np.array([float(trials)]))]
        ways += [upper_tail(np.array([float(k)]), np.array([float(trials)]))] if trials > EXACT_TO else []
        for way in ways:
            found = float((way(np.array([float(k)])) if isinstance(way, Tails) else way)[0])
            assert abs(arb(found) - truth) <= ACCURACY / 10 * truth + LEAST, (place, found)


@pytest.mark.parametrize("trials", [EXACT_TO - 1, EXACT_TO, EXACT_TO + 1, EXACT_TO + 2, 5000, 5001])
def test_tails_are_symmetric_and_fall_from_1_to_0(trials: int) -> None:
    """P(X >= k) + P(X >= trials + 1 - k) = 1, at all k and beyond both ends."""
    tails = Tails(np.array([float(trials)]))(np.arange(-2.0, trials + 4))
    assert tails[2] == 1
    assert tails[-3] == 0
    assert (np.diff(tails) <= 0).all()
    assert tails + tails[::-1] == pytest.approx(1, abs=1e-15)


def test_stirlings_correction_has_the_digits_of_extended_precision() -> None:
    for x in (100, 250, 1000):
        with mpmath.workdps(40):
            z = mpmath.mpf(x)
            stirling = (z - 0.5) * mpmath.log(z) - z + mpmath.log(2 * mpmath.pi) / 2
            truth = mpmath.loggamma(z) - stirling
            found = mpmath.mpf(np.format_float_scientific(_stirling(np.array([x], np.longdouble))[0], precision=25))
            assert abs(found - truth) < mpmath.mpf("1e-17")


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_pieces_of_a_grid_have_the_values_of_the_whole(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Columns along either axis, with one, two and three rows."""
    fixed = {name: value for name, value in SPIKE.items() if name not in ("a1", "m")}
    grid = Grid({**fixed, "n": 1000}, ({"a1": ["0.7", "0.8", "0.9"][:rows]}, {"m": [1, 2, 5, 12, 30]}))
    kind = construction_named("spike")
    whole = closed.evaluate(kind, mechanism_named("softmax"), grid)
    monkeypatch.setattr(closed, "CHUNK", 5)
    pieces = closed.evaluate(kind, mechanism_named("softmax"), grid)
    for name in ("p0", "p1", "only", "distinguish", "margin"):
        first, second = (np.broadcast_to(getattr(found, name), (rows, 5)) for found in (whole, pieces))
        assert (first == second).all(), name


def test_tables_and_the_integral_stand_side_by_side() -> None:
    """Too many N for tables: those below EXACT_TO have one all the same."""
    trials = np.array([3.0, 5000.0, 1e13, 2e13])
    found = Tails(trials)(np.array([2.0, 2500.0, 5e12, 2e13 + 1]))
    assert found[0] == 0.5
    assert found[1] == pytest.approx(float(tail_in_balls(5000, 2500)), rel=ACCURACY)
    assert found[2] == pytest.approx(float(tail_in_balls(10**13, 5 * 10**12)), rel=ACCURACY)
    assert found[3] == 0


def test_a_tie_counts_as_much_as_m_makes_it() -> None:
    """At m = 1e20 a tie of 2e-19 is the whole answer."""
    point = {**SPIKE, "n": 6000, "d": 62, "m": 10**20, "tau": "5400061/18000100"}
    found, truth = (verdict("spike", "linear", point, engine=engine) for engine in ("closed", "certified"))
    assert found.word == truth.word == "distinguishes"
    assert found.outcome.p0 == truth.outcome.p0 == 0


def test_ties_beyond_counting_are_decided_where_they_matter() -> None:
    """More ties than are handed on, most of them too small for their m: those keep their numbers."""
    ties = [6000 * k for k in range(1, 40)]
    point = {**SPIKE, "d": 62, "tau": "5400061/18000100"}
    grid = Grid({k: v for k, v in point.items() if k != "m"}, ({"m": [1, 10**20]}, {"n": ties}))
    before = closed.MOST_RESOLVED
    try:
        closed.MOST_RESOLVED = 1
        found = closed.evaluate(construction_named("spike"), mechanism_named("linear"), grid)
    finally:
        closed.MOST_RESOLVED = before
    assert not found.undecided.any()
    low, high = found.bounds
    for index in ((0, 0), (1, 0), (0, 7), (1, 7)):
        truth = certified.solve(
            construction_named("spike")(grid.at(construction_named("spike").schema, index)), mechanism_named("linear")
        )
        assert low[index] <= truth.distinguish <= high[index]


def test_undecided_points_have_no_p() -> None:
    """They used to count as P = 0 in maps."""
    fixed = {"d": 400_002, "m": 12, "a0": "0.05", "a1": "1.2", "b": "20", "c": "0.05", "n": 400_000}
    found = closed.evaluate(construction_named("spike"), mechanism_named("linear"), Grid(fixed))
    assert found.undecided
    assert np.isnan(found.distinguish)
    assert np.isnan(found.bounds).all()


def random_point(pick: random.Random) -> tuple[str, dict[str, object]]:
    m = 10 ** pick.randrange(31)
    if pick.random() < 0.3:
        tau = Fraction(pick.randrange(1, 400), 1000)
        return "plain", {"n": pick.randrange(3, 3000), "m": m, "tau": tau}
    d = pick.choice([4, 5, 9, 30, 62, 102, 400, 3000])
    amplitudes = {name: Fraction(pick.randrange(1, 1500), 1000) for name in ("b", "c")}
    spikes = sorted(pick.sample(range(1, 1500), 2))
    n = (d - 2) * int(10 ** pick.uniform(0, 15) + 1)
    return "spike", {
        "n": n,
        "d": d,
        "m": m,
        "a0": Fraction(spikes[0], 1000),
        "a1": Fraction(spikes[1], 1000),
        **amplitudes,
        "form": pick.choice(["ones", "identity"]),
    }


def test_the_bounds_hold_the_truth_at_every_m() -> None:
    """And are narrow: float64 is good to 1e-11 wherever it answers."""
    pick = random.Random(7)
    kernels = ["softmax", "linear", "power:beta=3", "taylor:order=4", "taylor:order=60"]
    for _ in range(150):
        name, point = random_point(pick)
        made, kernel = construction_named(name).read(point), mechanism_named(pick.choice(kernels))
        truth = certified.solve(made, kernel)
        assert isinstance(truth.p0, Fraction)
        found = closed.solve(made, kernel)
        assert abs(found.distinguish - truth.distinguish) <= found.error, (name, point, kernel.spelled)
        assert found.error <= 1e-11


def entmax_weights(logits: list[float], copies: list[float], a: mpmath.mpf) -> list[mpmath.mpf]:
    """By bisection in 400 digits."""
    top = max(map(mpmath.mpf, logits))
    groups = [(mpmath.mpf(c), a * (mpmath.mpf(z) - top)) for z, c in zip(logits, copies, strict=True)]

    def weights(tau: mpmath.mpf) -> list[mpmath.mpf]:
        return [c * (tau + z) ** (1 / a) if tau + z > 0 else mpmath.mpf(0) for c, z in groups]

    low, high = mpmath.mpf(0), mpmath.mpf(1)
    while high - low > mpmath.mpf(10) ** -380:
        middle = (low + high) / 2
        low, high = (low, middle) if sum(weights(middle)) > 1 else (middle, high)
    return weights(low)


ENTMAX = [
    ("2", [0.0, 0.0], [1e300, 3.0]),
    ("1.9", [0.1, 0.0, 1e-13], [1.0, 1e20, 1e12]),
    ("1.5", [2.0, 1.999999, 0.3], [7.0, 1e60, 1e300]),
    ("1.25", [0.5, 0.0, 3.9, 3.9], [1e300, 1e300, 1e3, 2.0]),
    ("1.000001", [600.0, 0.0, 300.0], [1.0, 1e300, 1e100]),
]


@pytest.mark.parametrize(("alpha", "logits", "copies"), ENTMAX)
def test_entmax_of_any_number_of_tokens(alpha: str, logits: list[float], copies: list[float]) -> None:
    """Digits were lost from 1e12 tokens on; at 1e20 weights summed to 3e18."""
    given = (torch.tensor([each], dtype=torch.float64) for each in (logits, copies))
    found = mechanism_named(f"entmax:alpha={alpha}").weights(*given)[0].tolist()
    with mpmath.workdps(400):
        exponent = mpmath.mpf(Fraction(alpha).numerator) / Fraction(alpha).denominator - 1
        truth = entmax_weights(logits, copies, exponent)
        assert max(abs(x - y) for x, y in zip(found, truth, strict=True)) < 1e-12


def test_averaging_by_entmax_stays_within_its_values() -> None:
    for n in ("1e12", "1e20", "1e300"):
        found = verdict("averaging", "entmax:alpha=1.9", {"n": n, "m": 12}, engine="closed")
        assert found.outcome.margin == pytest.approx(1)


def test_a_mechanism_that_loses_its_digits_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that do not sum to 1, or that rounding throws about, decide nothing and have no margin."""
    logn = mechanism_named("logn-softmax")
    weights = type(logn).weights
    monkeypatch.setattr(type(logn), "weights", lambda *given: 3.4e18 * weights(*given))
    found = verdict("averaging", "logn-softmax", {"n": 1000, "m": 12})
    assert found.word == "undecided"
    assert found.outcome.engine == "closed"
    assert math.isnan(found.outcome.margin)
    assert "loses precision" in found.outcome.evidence


def test_rounding_of_large_logits_is_seen() -> None:
    """Logits of 1e9 are off by 1e-7, more than the usual slack; float64 alone knows no side of this tie."""
    point = {"n": "1e300", "m": 12, "gamma": "1000000", "rho": "0.999999", "tau": "0.5000000001"}
    made = construction_named("critical").read(point)
    found, truth = (verdict("critical", "softmax", point, engine=engine) for engine in ("closed", "certified"))
    assert (found.outcome.p0, found.outcome.p1) == (truth.outcome.p0, truth.outcome.p1)
    assert "ties decided exactly" in found.outcome.evidence
    assert float(enumerated._measure_attention(made, mechanism_named("softmax"), 1).errors.max()) > 1e-7


KERNELS = ["softmax:temperature=1/7", "linear", "power:beta=1e5", "taylor:order=2", "taylor:order=300"]


@pytest.mark.parametrize("spelling", [*KERNELS, "taylor:order=1000"])
def test_kernels_round_no_more_than_they_say(spelling: str) -> None:
    kernel, pick = mechanism_named(spelling), random.Random(3)
    assert isinstance(kernel, ScoreMechanism)
    for _ in range(30):
        base, step = (float(int(10 ** pick.uniform(0, 12))) / 2**20 for _ in range(2))
        with ctx.workprec(400):
            ratio = kernel.ratio(*(LogForm.constant(rational(Fraction(x))) for x in (base, step)))
            truth = arb(ratio).log()
            off = abs(arb(float(kernel.log_ratio(np.array(base), np.array(step)))) - truth)
        assert off <= kernel.roundings * 2.0**-52 * truth, (base, step)


PLAIN = [
    {"peak": "1", "base": "500000"},
    {"peak": "1", "base": "1000.000001"},
    {"peak": "1", "base": "999.9999999999999"},
    {"peak": "4", "base": "1.000000000000001"},
    {"peak": "1/1000000", "base": "1.0001"},
]


@pytest.mark.parametrize("spelling", KERNELS)
@pytest.mark.parametrize("logits", PLAIN)
def test_logarithms_that_cancel_are_bounded_too(logits: dict[str, str], spelling: str) -> None:
    """The one score may be below the others, or hardly differ from them, or these be next to nothing."""
    for tau in ("1/4", "1/10", "11/1000"):
        made = construction_named("plain").read({"n": 1000, "m": 10**6, "tau": tau, **logits})
        found, truth = (engine.solve(made, mechanism_named(spelling)) for engine in (closed, certified))
        assert abs(found.distinguish - truth.distinguish) <= found.error
