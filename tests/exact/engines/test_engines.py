"""Four engines, one answer."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from cases import BASE, spike
from separatrix.checker import check
from separatrix.constructions import Construction, construction_named
from separatrix.core.parameters import Grid, UsageError
from separatrix.exact.engines import EngineRefusal, Outcome, Sampling, certified, closed, dense, grouped, solve
from separatrix.exact.engines.certified import TailCounts
from separatrix.exact.engines.tails import Tails
from separatrix.exact.engines.tally import binomial_interval
from separatrix.exact.outputs.attention import View
from separatrix.exact.verdicts import certify
from separatrix.mechanisms import Mechanism, ScoreMechanism, Softmax, examples, mechanism_named

SPELLINGS = [
    *(each.spelled for each in examples() if isinstance(each, ScoreMechanism)),
    *("softmax:temperature=0.7", "power:beta=3", "power:beta=1/2", "taylor:order=3"),
]
hundredths = st.integers(1, 250).map(lambda k: Fraction(k, 100))


@st.composite
def points(draw: st.DrawFn, largest_block: int = 10**200) -> Construction:
    """Valid points of every construction that has a closed form."""
    name = draw(st.sampled_from(["spike", "spike", "cross", "plain"]))
    if name == "plain":
        values: dict[str, object] = {"n": draw(st.integers(3, 400)), "m": draw(st.integers(1, 40))}
        values["peak"] = draw(hundredths)
        return construction_named(name).read(values)
    d = draw(st.integers(4, 60))
    a0, a1 = sorted(draw(st.lists(hundredths, min_size=2, max_size=2, unique=True)))
    n = (d - 2) * draw(st.integers(1, largest_block))
    assume(n >= 3)
    values = {"n": n, "d": d, "m": draw(st.integers(1, 40)), "a0": a0, "a1": a1}
    values |= {"b": draw(hundredths), "c": draw(hundredths)}
    if name == "cross":
        values["r_Q"] = draw(hundredths)
    else:
        values["form"] = draw(st.sampled_from(["ones", "identity"]))
    if draw(st.booleans()):
        values["tau"] = draw(hundredths)
    return construction_named(name).read(values)


mechanisms = st.sampled_from(SPELLINGS).map(mechanism_named)


@given(point=points(), mechanism=mechanisms)
def test_exact_is_certified_in_floats(point: Construction, mechanism: Mechanism) -> None:
    truth = certified.solve(point, mechanism)
    found = closed.solve(point, mechanism)
    assert found.p0 == pytest.approx(float(truth.p0), rel=1e-9, abs=1e-14)
    assert found.p1 == pytest.approx(float(truth.p1), rel=1e-9, abs=1e-14)
    assert found.fire_d0 == pytest.approx(truth.fire_d0, rel=1e-9, abs=1e-12)
    assert found.fire_d1 == pytest.approx(truth.fire_d1, rel=1e-9, abs=1e-12)
    assert found.distinguish == pytest.approx(truth.distinguish, rel=1e-8, abs=1e-12)
    assert found.v0 == pytest.approx(truth.v0, rel=1e-12)
    assert found.margin == pytest.approx(truth.margin, rel=1e-6, abs=1e-14)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(point=points(largest_block=8), mechanism=mechanisms, seed=st.integers(0, 10**6))
def test_sampling_agrees_with_certified(point: Construction, mechanism: Mechanism, seed: int) -> None:
    truth = certified.solve(point, mechanism)
    for engine in ("grouped", "dense"):
        found = solve(point, mechanism, engine, Sampling(draws=200, seed=seed, confidence=0.999999))
        low, high = found.interval
        assert low - 1e-12 <= truth.distinguish <= high + 1e-12
        assert found.margin == pytest.approx(truth.margin, rel=1e-7, abs=1e-12)


@settings(max_examples=40)
@given(point=points(largest_block=6), mechanism=mechanisms, spike_at=st.integers(0, 10**6))
def test_where_the_spike_stands_changes_nothing(point: Construction, mechanism: Mechanism, spike_at: int) -> None:
    tokens = [point.dense(1, position, torch.float64) for position in (0, spike_at % point.n)]
    probes = [mechanism(x.queries[None, None], x.keys[None, None], x.probe[None, None, :, None]) for x in tokens]
    torch.testing.assert_close(*(probe.flatten().sort().values for probe in probes))


@given(point=points(), mechanism=mechanisms)
def test_a_larger_threshold_fires_less(point: Construction, mechanism: Mechanism) -> None:
    """p0 and p1 do not increase with tau."""
    tau = point.parameters.complete_values()["tau"]
    lax, strict = (_with(point, tau=tau + add) for add in (0, Fraction(1, 20)))
    low, high = certified.count(strict, mechanism).low, certified.count(lax, mechanism).low
    assert low.p0 <= high.p0
    assert low.p1 <= high.p1


@given(point=points(), mechanism=mechanisms)
def test_more_sign_vectors_fire_more(point: Construction, mechanism: Mechanism) -> None:
    """A neuron does not depend on m, and the network fires more often with more of them."""
    few, many = (_with(point, m=point.m * factor) for factor in (1, 3))
    one, other = certified.solve(few, mechanism), certified.solve(many, mechanism)
    assert (one.p0, one.p1) == (other.p0, other.p1)
    assert one.fire_d0 <= other.fire_d0
    assert one.fire_d1 <= other.fire_d1


@given(point=points(), mechanism=mechanisms)
def test_margins_are_positive(point: Construction, mechanism: Mechanism) -> None:
    """D1's spike is larger, gets at least as much attention, and so gives the larger pre-activation."""
    assume(point.name != "plain" or float(point.parameters.peak) * math.log(point.n) > math.log(1.5))
    assert certified.solve(point, mechanism).margin > 0


@given(point=points(), mechanism=mechanisms)
def test_distinguishing_needs_firing(point: Construction, mechanism: Mechanism) -> None:
    """P(tells apart) is at most P(fires on D1) and at most P(silent on D0)."""
    found = certified.solve(point, mechanism)
    assert 0 <= found.distinguish <= min(found.fire_d1, 1 - found.fire_d0) + 1e-12


def _with(point: Construction, **changes: object) -> Construction:
    kept = {name: value for name, value in point.parameters.complete_values().items() if value is not None}
    return type(point).read({**kept, **changes})


def test_a_grid_is_its_points() -> None:
    fixed = {name: value for name, value in BASE.items() if name not in ("a1", "b", "n", "d")}
    axes = (
        {"a1": [Fraction(k, 10) for k in range(5, 16)]},
        {"n": [1000, 10**6, 10**18], "d": [102, 12, 1002]},
        {"b": ["0.1", "0.2", "1/3"]},
    )
    for form in ("ones", "identity"):
        grid = Grid({**fixed, "form": form}, axes)
        kind = construction_named("spike")
        found = closed.evaluate(kind, Softmax(), grid)
        assert found.p1.shape == (11, 3, 3)
        assert not found.undecided.any()
        for index in np.ndindex(grid.shape):
            truth = certified.solve(kind(grid.at(kind.schema, index)), Softmax())
            assert found.p0[index] == pytest.approx(float(truth.p0), rel=1e-10, abs=1e-15)
            assert found.p1[index] == pytest.approx(float(truth.p1), rel=1e-10)
            assert found.distinguish[index] == pytest.approx(truth.distinguish, rel=1e-10, abs=1e-15)


def test_large_grids_are_computed_in_pieces() -> None:
    fixed = {name: value for name, value in BASE.items() if name not in ("a1", "n")}
    a1 = [Fraction(1, 2) + Fraction(k, 299) for k in range(300)]
    n = [100 * 3**k for k in range(1, 38) for _ in range(10)]
    whole = closed.evaluate(construction_named("spike"), Softmax(), Grid(fixed, ({"a1": a1}, {"n": n})))
    assert whole.p1.size > closed.CHUNK
    for row in (0, 150, 299):
        part = closed.evaluate(construction_named("spike"), Softmax(), Grid({**fixed, "a1": a1[row]}, ({"n": n},)))
        np.testing.assert_array_equal(whole.p1[row], part.p1)
        np.testing.assert_array_equal(whole.distinguish[row], part.distinguish)


def test_amplitudes_that_are_no_short_decimals() -> None:
    """Without a common denominator below 2^53 the sums are bounded in error instead, and still right."""
    changes = {"a1": "1.2345678901234567", "b": "0.2000000000000001", "c": "0.1000000000000003"}
    truth = certified.solve(spike(**changes), Softmax())
    found = closed.solve(spike(**changes), Softmax())
    assert found.p1 == pytest.approx(float(truth.p1), rel=1e-12)
    assert found.p0 == pytest.approx(float(truth.p0), rel=1e-9)


def test_ties_on_a_whole_line_are_resolved_by_certified() -> None:
    """a = 0.1 - c makes the linear correction vanish identically: every n is an exact tie."""
    fixed = {"d": 102, "m": 12, "a0": "0.05", "a1": "1.2", "b": "0.2", "c": "0.05"}
    kind, linear = construction_named("spike"), mechanism_named("linear")
    grid = Grid(fixed, ({"n": [1000, 10**6, 10**9]},))
    found = closed.evaluate(kind, linear, grid)
    assert not found.undecided.any()
    for index in np.ndindex(grid.shape):
        truth = certified.count(kind(grid.at(kind.schema, index)), linear)
        assert truth.is_decided
        assert found.p0[index] == pytest.approx(float(truth.low.p0), rel=1e-12)


def test_ties_beyond_the_limit_stay_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closed, "MOST_RESOLVED", 1)
    fixed = {"d": 102, "m": 12, "a0": "0.05", "a1": "1.2", "b": "0.2", "c": "0.05"}
    grid = Grid(fixed, ({"n": [1000, 10**6, 10**9]},))
    found = closed.evaluate(construction_named("spike"), mechanism_named("linear"), grid)
    assert found.undecided.sum() == 2
    assert np.isnan(found.p0[found.undecided]).all()


def test_a_tie_with_too_many_blocks_for_fractions_stays_undecided() -> None:
    """The rest of the grid is answered all the same."""
    fixed = {"d": 400_002, "m": 12, "a0": "0.05", "a1": "1.2", "b": "20", "c": "0.05"}
    grid = Grid(fixed, ({"n": [400_000 * k for k in (1, 10)]},))
    found = closed.evaluate(construction_named("spike"), mechanism_named("linear"), grid)
    assert found.undecided.all()
    assert np.isnan(found.p0).all()


def test_plain_at_any_n() -> None:
    found = closed.solve(construction_named("plain").read({"n": "1e18", "m": 8}), Softmax())
    assert found.p0 == 0
    assert found.p1 == pytest.approx(0.5)
    assert found.distinguish == pytest.approx(1 - 2**-8)


def test_tables_of_tails() -> None:
    many = Tails(np.array([3, 5000, 3, 100]))
    assert many(np.array([2, 2500, 4, 0])).tolist() == [0.5, Tails(np.array(5000))(np.array(2500)), 0.0, 1.0]


def test_certified_tails_are_sums_of_binomials() -> None:
    for trials in (1, 2, 9, 10, 301):
        tails = TailCounts(trials)
        for k in range(-1, trials + 3):
            assert tails(k) == sum(math.comb(trials, i) for i in range(max(k, 0), trials + 1))


@settings(max_examples=60)
@given(point=points(largest_block=10**30), mechanism=mechanisms)
def test_the_checker_agrees(point: Construction, mechanism: Mechanism) -> None:
    """Separate code with separate arithmetic verifies every statement of a certificate."""
    _, certificate = certify(point, mechanism, Fraction(1, 100))
    report = check(certificate)
    assert report.failed == []


VANISHING = [
    ("taylor:order=1", {"n": 10, "d": 12, "a0": "11/7", "a1": "18/7", "b": "9/7", "c": "11/7", "tau": "20/7"}),
    ("softmax", {"n": 300, "d": 302, "a0": "2", "a1": "16/7", "b": "13/7", "c": "20/7", "tau": "19/7"}),
    ("power:beta=1/2", {"n": 12, "d": 6, "a0": "0.6", "a1": "2.2", "b": "0.3", "c": "0.3", "form": "identity"}),
]


@pytest.mark.parametrize(("spelling", "changes"), VANISHING)
def test_ties_among_irrational_weights_are_decided(spelling: str, changes: dict[str, object]) -> None:
    """The coefficient of an irrational weight vanishes and leaves an exact tie: balls alone never see it."""
    point, mechanism = spike(**changes), mechanism_named(spelling)
    assert certified.count(point, mechanism).is_decided
    assert check(certify(point, mechanism, Fraction(1, 100))[1]).failed == []


def test_an_undecided_comparison_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """At low precision the near-tie at n=1e18 cannot be decided: bounds are given, nothing is guessed."""
    truth = certified.solve(spike(n="1e18"), Softmax())
    monkeypatch.setattr(certified, "PRECISIONS", (40,))
    found = certified.count(spike(n="1e18"), Softmax())
    assert not found.is_decided
    assert found.low.p0 < found.high.p0
    assert found.low.p0 <= Fraction(truth.p0) <= found.high.p0
    outcome = certified.outcome(spike(n="1e18"), found)
    assert outcome.interval[0] <= truth.distinguish <= outcome.interval[1]
    assert "undecided" in outcome.evidence


def test_interval_coverage() -> None:
    """Over many seeds the 95% interval covers the exact value at least 93% of the time."""
    point = spike(n=200, d=22, m=1)
    truth = certified.solve(point, Softmax()).distinguish
    assert 0.1 < truth < 0.9
    seeds = 400
    found = [grouped.solve(point, Softmax(), Sampling(draws=40, seed=seed)).interval for seed in range(seeds)]
    covered = sum(low <= truth <= high for low, high in found)
    assert covered >= 0.93 * seeds


@pytest.mark.parametrize("m", [1, 12])
def test_interval_coverage_with_early_stopping(m: int) -> None:
    """Stopping as soon as the verdict is clear leaves the interval what it says it is."""
    point, bounds = spike(n=200, d=22, m=m), (Fraction(1, 100), Fraction(99, 100))
    truth = certified.solve(point, Softmax()).distinguish
    seeds = 200
    found = [grouped.solve(point, Softmax(), Sampling(draws=400, seed=seed, decide=bounds)) for seed in range(seeds)]
    covered = sum(each.interval[0] <= truth <= each.interval[1] for each in found)
    assert covered >= 0.93 * seeds
    assert all("95% Clopper-Pearson interval, adjusted for " in each.evidence for each in found)
    if m == 1:
        assert 0.1 < truth < 0.9
        assert all(each.evidence.startswith("25 draws, 95% Clopper-Pearson interval") for each in found)


def test_looks_share_the_doubt() -> None:
    for draws in (1, 25, 26, 400, 6400):
        looks = Sampling(draws=draws, decide=(Fraction(1, 2),)).looks()
        assert looks[-1][0] == draws
        assert sum(1 - confidence for _, confidence in looks) == pytest.approx(0.05)
    assert Sampling(draws=400).looks() == [(400, 0.95)]


def test_a_sampled_word_needs_enough_draws() -> None:
    """400 draws without a hit are enough for `blind`, although some of the doubt went to early looks."""
    point, bounds = spike(n=200, d=22, a1="0.02"), (Fraction(1, 100), Fraction(99, 100))
    found = dense.solve(point, mechanism_named("linear"), Sampling(draws=400, decide=bounds))
    assert found.distinguish == 0
    assert found.interval[1] <= 0.01


def test_intervals_are_those_of_clopper_and_pearson() -> None:
    for hits, draws in ((0, 400), (400, 400), (1, 2), (3, 25), (17, 6400)):
        for confidence in (0.95, 0.9975):
            known = binomtest(hits, draws).proportion_ci(confidence, method="exact")
            found = binomial_interval(hits, draws, confidence)
            assert found == pytest.approx((known.low, known.high), abs=1e-9)


def test_too_close_to_call_widens_the_interval() -> None:
    """On the exact tie of theory 3.3 float64 would guess; the draws on the tie are counted both ways."""
    point = spike(n=16, d=6, m=1, a0="0", a1="0.05", b="0.55", c="0.3", form="identity")
    linear = mechanism_named("linear")
    truth = certified.solve(point, linear).distinguish
    for engine in ("dense", "grouped"):
        found = solve(point, linear, engine, Sampling(draws=4000))
        assert "too close to call" in found.evidence
        assert found.interval[0] <= truth <= found.interval[1]
        assert found.p1 == pytest.approx(float(certified.solve(point, linear).p1), abs=0.04)


def test_few_and_many_signs_are_the_same_thing() -> None:
    """Signs applied to the values before attending, or after."""
    point, rng = spike(n=200, d=22), torch.Generator().manual_seed(0)
    tokens = point.dense(1, 5, torch.float64)
    signs = (2 * torch.randint(0, 2, (40, 22), generator=rng) - 1).double()
    before, after = View(Softmax(), tokens, columns=1), View(Softmax(), tokens, columns=40)
    seen = [view.peaks(lambda t: t.values @ signs.T, signs) for view in (before, after)]
    torch.testing.assert_close(*seen)
    assert before.probe == pytest.approx(after.probe)


@pytest.mark.parametrize("engine", ["dense", "grouped"])
def test_seeds_decide_everything(engine: str) -> None:
    first, again, other = (solve(spike(a1="0.8"), Softmax(), engine, Sampling(seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


class Opaque(Mechanism):
    """Softmax without a kernel, and without counts, as a stranger's mechanism may be."""

    name = "opaque"
    formula = source = family = "-"
    takes_counts = False
    permutation_equivariant = False
    streams = False

    def definition(self, q, k, v, counts=None, causal=False):  # type: ignore[no-untyped-def]
        return Softmax().definition(q, k, v, None, causal)


SPREAD = construction_named("plain").read({"n": 50, "m": 5, "spread": "0.1"})


def test_auto_takes_the_strongest_that_applies() -> None:
    assert solve(spike(), Softmax()).engine == "certified"
    assert solve(spike(d=400_002, n=800_000), Softmax()).engine == "closed"
    assert solve(SPREAD, Softmax()).engine == "dense"
    small = spike(n=200, d=22)
    found = solve(small, Opaque(), sampling=Sampling(draws=50))
    assert found.engine == "dense"
    assert found.interval[0] <= certified.solve(small, Softmax()).distinguish <= found.interval[1]


@pytest.mark.parametrize(
    ("engine", "point", "mechanism", "complaint"),
    [
        ("dense", spike(n="1e9"), Softmax(), r"need [\d,.]+ GiB for n=1,000,000,000 .*; engine grouped would do"),
        ("grouped", spike(n="1e6", d=1_000_002), Softmax(), r"would need [\d,.]+ GiB .*; engine closed would do"),
        ("grouped", spike(), Opaque(), r"does not accept counts; engine dense"),
        ("closed", spike(), Opaque(), r"no scalar kernel"),
        ("certified", spike(), Opaque(), r"no scalar kernel"),
        ("certified", spike(d=400_002, n=400_000), Softmax(), r"399,999 binary digits.*; engine closed would do"),
        ("closed", spike(n=10**302), Softmax(), r"end at n=1e300; engine certified"),
        ("closed", construction_named("plain").read({"n": 9, "m": 2, "spread": "0.1"}), Softmax(), r"no closed form"),
    ],
)
def test_refusals_say_what_to_do(engine: str, point: Construction, mechanism: Mechanism, complaint: str) -> None:
    with pytest.raises(EngineRefusal, match=complaint):
        solve(point, mechanism, engine)


@pytest.mark.parametrize(
    ("spelling", "changes"),
    [
        ("softmax", {"a1": "123456.789"}),
        ("softmax", {"a1": "1000000", "form": "identity"}),
        ("power:beta=1000000", {"tau": "0.21", "form": "identity"}),
        ("softmax", {"n": 10**3990, "tau": "0.21"}),
        ("linear", {"n": 10**3990, "tau": "0.21"}),
        ("softmax", {"n": 200_000, "d": 20_002}),
    ],
)
def test_extremes_are_answered_and_certified(spelling: str, changes: dict[str, object]) -> None:
    found, certificate = certify(spike(**changes), mechanism_named(spelling), Fraction(1, 100))
    assert 0 <= found.outcome.distinguish <= 1
    assert check(certificate).failed == []
    assert found.as_json()["neuron"]["p1"].count("/") == 1


def test_logarithms_of_powers_of_one_number_are_commensurable() -> None:
    """log 16 and log 8 have a rational quotient, so this tie is decided."""
    point = construction_named("plain").read({"n": 16, "m": 2, "peak": "3/4", "base": 8, "tau": "1/2"})
    assert certified.count(point, mechanism_named("power:beta=1/2")).is_decided


def test_certified_has_no_largest_n() -> None:
    found: Outcome = certified.solve(spike(n=10**400), Softmax())
    assert found.distinguish == pytest.approx(0.99975, abs=1e-4)


def test_overflow_is_refused_and_never_read_as_silence() -> None:
    """The scores of this kernel leave float64; the closed form does not mind."""
    point, taylor = spike(n=40, d=12, m=4, a1="1000"), mechanism_named("taylor:order=300")
    for engine in ("grouped", "dense"):
        with pytest.raises(EngineRefusal, match="overflows the number format"):
            solve(point, taylor, engine)
    truth = certified.solve(point, taylor).distinguish
    assert truth == pytest.approx(0.839, abs=1e-3)
    assert closed.solve(point, taylor).distinguish == pytest.approx(truth)


def test_sixteen_bits_give_the_formats_own_answer() -> None:
    point = spike(n=40, d=12, m=4)
    found = dense.solve(point, Softmax(), Sampling(dtype="bfloat16"))
    assert found.p0 == pytest.approx(float(certified.solve(point, Softmax()).p0), abs=0.02)


def test_no_engine_says_why_each_refused() -> None:
    point = construction_named("plain").read({"n": "1e300", "m": 5, "spread": "0.1"})
    with pytest.raises(EngineRefusal, match=r"dense: .*grouped: .*closed: .*certified: "):
        solve(point, Softmax())


def test_wrong_sampling() -> None:
    for changes in ({"draws": 0}, {"confidence": 1.0}, {"seed": -1}, {"dtype": "int8"}):
        with pytest.raises(UsageError):
            Sampling(**changes)
    with pytest.raises(UsageError, match=r"no engine densee \(did you mean dense\?\)"):
        solve(spike(), Softmax(), "densee")
